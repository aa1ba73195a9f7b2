//! The costs of operations on a machine, ns.

use crate::engine::{Delay, Law};
use crate::parameters::{Contention, Parameters, System};

/// Share of a reading's local work that comes before its references: the call takes less than
/// combining the words and returning. This is an assumption that does not change any interval
/// between two readings.
const SHARE_BEFORE: f64 = 0.4;

#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub issue: f64,
    pub slocal: u64,
    pub map_bus: u64,
    pub own_kmap_out: Delay,
    pub bus: u64,
    pub far_kmap: Delay,
    pub memory: u64,
    pub own_kmap_back: Delay,
    pub near_kmap: Delay,
    pub local: f64,
    pub leg: Delay,
    /// Mean time to the next try of a request that was turned away.
    pub again: Delay,
    pub refused: u64,
    /// Capacity of a Kmap; `None`: no limit.
    pub room: Option<usize>,
    pub before_reading: f64,
    pub after_reading: f64,
    pub poll: f64,
    pub null: f64,
    pub turn: f64,
    pub prepared_word: f64,
    pub accessed_word: f64,
    pub send: f64,
    pub receive: f64,
    pub pieces: u32,
    pub piece: u64,
    pub gap: Delay,
    pub word: f64,
    /// Additional pieces for each word.
    pub pieces_per_word: f64,
    pub capacity: usize,
    pub quantum: f64,
    pub dispatch: f64,
    pub wakeup: f64,
    pub block: f64,
    pub event: f64,
    pub notify_each: f64,
    pub sleep: f64,
    pub give_way: f64,
}

fn exponential(us: f64) -> Delay {
    Delay {
        mean_ns: 1e3 * us,
        law: Law::Exponential,
    }
}

fn whole(us: f64) -> u64 {
    (1e3 * us).round() as u64
}

impl Costs {
    pub fn new(parameters: &Parameters, system: &System) -> Self {
        let (r, cm) = (&parameters.reference, &parameters.cm);
        let (m, s) = (&system.messages, &system.scheduling);
        let kmap = |us: f64| Delay {
            mean_ns: 1e3 * us,
            law: r.kmap_law,
        };
        let (room, again, refused) = match system.contention {
            Contention::Queue => (None, 0.0, 0.0),
            Contention::Retry {
                contexts,
                again,
                refused,
            } => (Some(contexts), again, refused),
        };
        Self {
            issue: 1e3 * r.issue,
            slocal: whole(r.slocal),
            map_bus: whole(r.map_bus),
            own_kmap_out: kmap(r.own_kmap_out),
            bus: whole(r.intercluster_bus),
            far_kmap: kmap(r.far_kmap),
            memory: whole(r.memory),
            own_kmap_back: kmap(r.own_kmap_back),
            near_kmap: kmap(r.near_kmap),
            local: 1e3 * r.local,
            leg: exponential(system.leg_scatter),
            again: exponential(again),
            refused: whole(refused),
            room,
            before_reading: 1e3 * SHARE_BEFORE * system.reading,
            after_reading: 1e3 * (1.0 - SHARE_BEFORE) * system.reading,
            poll: 1e3 * system.poll,
            null: 1e3 * cm.null,
            turn: 1e3 * cm.turn,
            prepared_word: 1e3 * cm.prepared_word,
            accessed_word: 1e3 * cm.accessed_word,
            send: 1e3 * m.send,
            receive: 1e3 * m.receive,
            pieces: m.kmap_pieces,
            piece: whole(m.kmap_piece),
            gap: exponential(m.kmap_gap),
            word: 1e3 * m.word,
            pieces_per_word: if m.kmap_piece > 0.0 {
                m.kmap_word / m.kmap_piece
            } else {
                0.0
            },
            capacity: m.capacity,
            quantum: 1e3 * s.quantum,
            dispatch: 1e3 * s.dispatch,
            wakeup: 1e3 * s.wakeup,
            block: 1e3 * s.block,
            event: 1e3 * s.event,
            notify_each: 1e3 * s.notify_each,
            sleep: 1e3 * s.sleep,
            give_way: 1e3 * s.give_way,
        }
    }

    /// Returns the number of pieces of a Kmap's work for a message of that many words.
    pub fn pieces_of(&self, words: u32) -> u32 {
        self.pieces + (self.pieces_per_word * f64::from(words)).ceil() as u32
    }
}
