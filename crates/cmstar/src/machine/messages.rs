//! Messages: channels that a Kmap manages.

use std::collections::VecDeque;

use super::Machine;
use super::address::ChannelId;
use super::process::{Continuation, Part, State, Target, WordOperation};
use crate::program::{Outcome, Program};

/// A message.
#[derive(Clone, Copy, Debug)]
struct Message {
    words: u32,
    tag: u64,
}

/// A channel for messages.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    /// Cluster of the Kmap that manages it, from 0.
    cluster: usize,
    messages: VecDeque<Message>,
    /// Processes that wait for a message.
    receivers: VecDeque<u32>,
    /// Processes that wait for room, with their messages.
    senders: VecDeque<(u32, Message)>,
}

impl Channel {
    pub const fn new(cluster: usize) -> Self {
        Self {
            cluster,
            messages: VecDeque::new(),
            receivers: VecDeque::new(),
            senders: VecDeque::new(),
        }
    }
}

impl<P: Program> Machine<P> {
    /// Queues the parts of a send: local work, the Kmap's operation, the delivery.
    pub(super) fn send(&mut self, p: u32, channel: ChannelId, words: u32, tag: u64) {
        let costs = self.costs;
        let home = self.channels[channel.0 as usize].cluster;
        let local_ns = costs.send + costs.word * f64::from(words);
        self.put(p, &[Part::Local(local_ns)]);
        if home != self.cm_of(p).cluster {
            let ask = Part::Refer(Target::Cluster(home), WordOperation::Nothing);
            self.put(p, &[ask]);
        }
        let operate = Part::Operate(home, costs.pieces_of(words));
        let deliver = Part::Continue(Continuation::Deliver(channel, words, tag));
        self.put(p, &[operate, deliver]);
    }

    /// Delivers a message to its channel; returns whether the sender continues at once.
    pub(super) fn deliver(&mut self, p: u32, channel: ChannelId, words: u32, tag: u64) -> bool {
        let message = Message { words, tag };
        let capacity = self.costs.capacity;
        let queue = &mut self.channels[channel.0 as usize];
        if let Some(receiver) = queue.receivers.pop_front() {
            self.hand_over(receiver, channel, message, true);
            self.make_ready(receiver);
        } else if queue.messages.len() < capacity {
            queue.messages.push_back(message);
        } else {
            queue.senders.push_back((p, message));
            self.leave(p, State::AtChannel);
            return false;
        }
        true
    }

    /// Lets a process take a message, or wait for one; returns whether it continues at once.
    pub(super) fn take(&mut self, p: u32, channel: ChannelId) -> bool {
        let queue = &mut self.channels[channel.0 as usize];
        let Some(message) = queue.messages.pop_front() else {
            queue.receivers.push_back(p);
            self.leave(p, State::AtChannel);
            return false;
        };
        let sender = queue.senders.pop_front();
        if let Some((sender, waiting)) = sender {
            queue.messages.push_back(waiting);
            self.make_ready(sender);
        }
        self.hand_over(p, channel, message, false);
        true
    }

    /// Completes a receive once there is a message.
    fn hand_over(&mut self, p: u32, channel: ChannelId, message: Message, was_blocked: bool) {
        let costs = self.costs;
        let home = self.channels[channel.0 as usize].cluster;
        let Message { words, tag } = message;
        let local_ns = costs.receive + costs.word * f64::from(words);
        let is_far = home != self.cm_of(p).cluster;
        let process = self.process(p);
        process.outcome = Outcome::Received {
            words,
            tag,
            was_blocked,
        };
        process.first(&[
            Part::Operate(home, costs.pieces_of(words)),
            Part::Local(local_ns),
        ]);
        if is_far {
            process.first(&[Part::Refer(Target::Cluster(home), WordOperation::Nothing)]);
        }
    }
}
