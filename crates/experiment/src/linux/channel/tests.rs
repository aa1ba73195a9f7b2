use std::time::Duration;

use super::*;
use crate::linux::test_harness::{self, RunAs};
use crate::script::Words;

const MESSAGES: u64 = 1000;
const MIB: u64 = 131_072;

fn kinds() -> impl Iterator<Item = ChannelKind> {
    ChannelKind::WORDS.iter().map(|(_, kind)| *kind)
}

fn memory() -> SharedMemory {
    SharedMemory::new(1 << 16).unwrap()
}

/// The words of a message: each encodes its message and its position.
fn written(message: u64, words: u64) -> impl Iterator<Item = u64> {
    (0..words).map(move |at| message.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at)
}

fn send_all(channel: &Channel, lengths: impl Iterator<Item = u64>) {
    let desk = Desk::new();
    for (message, words) in lengths.enumerate() {
        desk.set_own(&written(message as u64, words).collect::<Vec<_>>());
        channel.sender(words, &desk)();
    }
}

fn receive_all(channel: &Channel, lengths: impl Iterator<Item = u64>, pause: Duration) {
    let desk = Desk::new();
    let mut receive = channel.receiver(Sign::UNSEEN, &desk);
    for (message, words) in lengths.enumerate() {
        receive();
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let found = desk.last();
        assert_eq!(found.len() as u64, words, "message {message}");
        let expected = written(message as u64, words);
        assert!(
            found.iter().copied().eq(expected),
            "message {message}: content"
        );
        desk.access(words + 1)();
    }
}

/// The sender runs ahead as far as it can; the receiver takes the messages as they come.
fn transfer(kind: ChannelKind, words: u64, messages: u64, run_as: RunAs, on: &[usize]) {
    let memory = memory();
    let channel = Channel::create(kind, &[words], &memory).unwrap();
    let lengths = || std::iter::repeat_n(words, messages as usize);
    test_harness::run(run_as, 2, on, |me| match me {
        0 => send_all(&channel, lengths()),
        _ => receive_all(&channel, lengths(), Duration::ZERO),
    });
}

fn everywhere(kind: ChannelKind) {
    for (run_as, on) in test_harness::configurations() {
        for words in [0, 1, 200] {
            transfer(kind, words, MESSAGES, run_as, &on);
        }
        // That many only once, because they are a gigabyte.
        let messages = if run_as == RunAs::Processes && on.len() > 1 {
            MESSAGES
        } else {
            30
        };
        transfer(kind, MIB, messages, run_as, &on);
    }
}

#[test]
fn all_messages_come_pipe() {
    everywhere(ChannelKind::Pipe);
}

#[test]
fn all_messages_come_unix() {
    everywhere(ChannelKind::Unix);
}

#[test]
fn all_messages_come_tcp() {
    everywhere(ChannelKind::Tcp);
}

#[test]
fn all_messages_come_queue() {
    everywhere(ChannelKind::Queue);
}

#[test]
fn all_messages_come_eventfd() {
    everywhere(ChannelKind::Eventfd);
}

#[test]
fn all_messages_come_futex() {
    everywhere(ChannelKind::Futex);
}

#[test]
fn nobody_sleeps_for_ever_over_shared_memory() {
    // Tests the race in which one side checks whether the other waits while that one goes to sleep.
    // It is rare, hence the large number of messages.
    let Some((_, on)) = test_harness::configurations()
        .into_iter()
        .find(|(_, on)| on.len() > 1)
    else {
        return;
    };
    for kind in [ChannelKind::Futex, ChannelKind::Eventfd] {
        let memory = memory();
        let there = Channel::create(kind, &[0], &memory).unwrap();
        let back = Channel::create(kind, &[0], &memory).unwrap();
        test_harness::processes(2, &on, |me| {
            let desk = Desk::new();
            let (sends, receives) = if me == 0 {
                (&there, &back)
            } else {
                (&back, &there)
            };
            let mut send = sends.sender(0, &desk);
            let mut receive = receives.receiver(Sign::UNSEEN, &desk);
            for round in 0..30_000_u32 {
                // Sometimes two in succession: the second may have to wait for room.
                let messages = 1 + u32::from(round % 3 == 0);
                if me == 1 {
                    (0..messages).for_each(|_| receive());
                }
                (0..messages).for_each(|_| send());
                if me == 0 {
                    (0..messages).for_each(|_| receive());
                }
            }
        });
    }
}

#[test]
fn messages_of_different_lengths_stay_apart() {
    // The second list fits into one message of a queue.
    for all in [[200, 0, 1, MIB, 5000], [3, 0, 200, 1, 1024]] {
        for kind in kinds() {
            let memory = memory();
            let channel = Channel::create(kind, &all, &memory).unwrap();
            let lengths = || all.into_iter().cycle().take(100);
            test_harness::processes(2, &[], |me| match me {
                0 => send_all(&channel, lengths()),
                _ => receive_all(&channel, lengths(), Duration::ZERO),
            });
        }
    }
}

#[test]
fn a_message_stays_until_the_next_is_asked_for() {
    // The sender is as far ahead as possible while the receiver checks.
    for kind in kinds() {
        let memory = memory();
        let channel = Channel::create(kind, &[200], &memory).unwrap();
        let lengths = || std::iter::repeat_n(200, 30);
        test_harness::processes(2, &[], |me| match me {
            0 => send_all(&channel, lengths()),
            _ => receive_all(&channel, lengths(), Duration::from_millis(1)),
        });
    }
}

#[test]
fn questions_are_answered() {
    for kind in kinds() {
        for (run_as, on) in test_harness::configurations() {
            let memory = memory();
            let there = Channel::create(kind, &[50], &memory).unwrap();
            let back = Channel::create(kind, &[7], &memory).unwrap();
            test_harness::run(run_as, 2, &on, |me| {
                let desk = Desk::new();
                let (sends, receives) = if me == 0 {
                    (&there, &back)
                } else {
                    (&back, &there)
                };
                let words = if me == 0 { 50 } else { 7 };
                let mut send = sends.sender(words, &desk);
                let mut receive = receives.receiver(Sign::UNSEEN, &desk);
                for round in 0..2000 {
                    if me == 1 {
                        receive();
                        assert!(desk.last().into_iter().eq(written(round, 50)));
                    }
                    desk.set_own(&written(round, words).collect::<Vec<_>>());
                    send();
                    if me == 0 {
                        receive();
                        assert!(desk.last().into_iter().eq(written(round, 7)));
                    }
                }
            });
        }
    }
}

#[test]
fn two_steps_of_one_process_share_a_channel() {
    // The counts belong to the channel, not to a step.
    for kind in kinds() {
        let memory = memory();
        let channel = Channel::create(kind, &[3], &memory).unwrap();
        test_harness::processes(2, &[], |me| {
            let desk = Desk::new();
            desk.set_own(&[7, 8, 9]);
            let mut send = [channel.sender(3, &desk), channel.sender(3, &desk)];
            let mut receive = [
                channel.receiver(Sign::UNSEEN, &desk),
                channel.receiver(Sign::UNSEEN, &desk),
                channel.receiver(Sign::UNSEEN, &desk),
            ];
            for step in 0..300 {
                if me == 0 {
                    send[step % 2]();
                } else {
                    receive[step % 3]();
                    assert_eq!(desk.last(), [7, 8, 9]);
                }
            }
        });
    }
}

#[test]
fn a_receiver_that_waits_is_seen_to_be_blocked() {
    for kind in kinds() {
        let memory = memory();
        let channel = Channel::create(kind, &[3], &memory).unwrap();
        let blocked = crate::linux::wait::Blocked::create(&[false, true], &memory);
        test_harness::processes(2, &[], |me| {
            let desk = Desk::new();
            let mut send = channel.sender(3, &desk);
            let mut receive = channel.receiver(blocked.sign(me), &desk);
            let mut until = blocked.until(1, Duration::from_micros(100));
            for _ in 0..100 {
                if me == 0 {
                    until();
                    send();
                } else {
                    receive();
                }
            }
        });
    }
}

#[test]
fn a_queue_has_no_name() {
    let memory = memory();
    let _channel = Channel::create(ChannelKind::Queue, &[200], &memory).unwrap();
    match std::fs::read_dir("/dev/mqueue") {
        Ok(all) => {
            let name = format!("undertick-{}-", std::process::id());
            let mine = all.filter(|entry| {
                let entry = entry.as_ref().unwrap().file_name();
                entry.to_string_lossy().starts_with(&name)
            });
            assert_eq!(mine.count(), 0);
        }
        Err(why) => println!("skipped: names of message queues, /dev/mqueue: {why}"),
    }
}

#[test]
fn too_many_queues_are_refused_with_a_mend() {
    let memory = memory();
    test_harness::processes(1, &[], |_| {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the limit is a live local.
        let set = unsafe { libc::setrlimit(libc::RLIMIT_MSGQUEUE, &raw const none) };
        assert_eq!(set, 0);
        let why = Channel::create(ChannelKind::Queue, &[200], &memory).unwrap_err();
        assert!(why.to_string().contains("ulimit -q"), "{why}");
    });
}
