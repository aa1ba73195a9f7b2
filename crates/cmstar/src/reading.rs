//! Reading a clock a reference at a time, by the readers of [`undertick_clock::wide`].
//!
//! Those readers ask for word after word and return when they have all. A simulated process cannot
//! wait inside of one. So the reader runs against the words that have been fetched so far. Where it
//! asks for one that has not been fetched, the run is discarded and that word is fetched next. A
//! reader of four words runs five times, which takes some tens of nanoseconds of real time.

use undertick_clock::wide::{OneRead, Shape, Words, four_read, varying_read};

use crate::engine::Moment;

/// How a clock is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// Varying-Read: three references or four.
    Varying,
    /// 4-Read.
    Four,
    /// 1-Read: the low word, and a memory of the rest that each process keeps for itself.
    One,
    /// All words by one reference, as the paper recommends: a latch at the clock.
    Latched,
    /// From the Cm's own memory, as if the clock's value were broadcast to every Cm.
    Broadcast,
}

impl Routine {
    /// All routines.
    pub const ALL: [Self; 5] = [
        Self::Varying,
        Self::Four,
        Self::One,
        Self::Latched,
        Self::Broadcast,
    ];

    /// Returns its name, as in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Varying => "Varying-Read",
            Self::Four => "4-Read",
            Self::One => "1-Read",
            Self::Latched => "Latched-Read",
            Self::Broadcast => "Broadcast",
        }
    }
}

/// A reading of a clock, and the truth about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value that the reader returned, ticks of the clock; `None` if it reported that it was
    /// too slow.
    pub ticks: Option<u64>,
    /// When it was called.
    pub called: Moment,
    /// When the low word that it returned was sampled: the time that the value shows.
    pub sampled: Moment,
    /// When it returned.
    pub returned: Moment,
}

impl Reading {
    /// Returns how old the value was when it was returned, ns.
    #[must_use]
    pub const fn age_ns(&self) -> i64 {
        self.returned.ns_since(self.sampled)
    }
}

/// A reading that is under way.
#[derive(Clone, Debug)]
pub struct Reader {
    shape: Shape,
    routine: Routine,
    /// Words as they came: index, value, moment of sampling.
    fetched: Vec<(usize, u64, Moment)>,
    /// The word that was requested last.
    wanted: usize,
    one: OneRead,
}

/// The next requirement of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A word of the clock.
    Fetch(usize),
    /// All words at one instant, as one number.
    FetchAll,
    /// Nothing: the value read (`None`: it was too slow), and when the word was sampled.
    Done(Option<u64>, Moment),
}

/// The words fetched so far, as a clock.
struct Replay<'a> {
    fetched: &'a [(usize, u64, Moment)],
    asked: usize,
    missing: Option<usize>,
}

impl Words for Replay<'_> {
    fn read_word(&mut self, index: usize) -> u64 {
        let fetched = self.fetched.get(self.asked);
        self.asked += 1;
        match fetched {
            Some(&(_, value, _)) => value,
            None => {
                self.missing.get_or_insert(index);
                0
            }
        }
    }
}

impl Reader {
    /// Creates a reader for clocks of this shape. `start_ticks` is the current reading of the
    /// clock: the memory of 1-Read begins there.
    #[must_use]
    pub fn new(shape: Shape, start_ticks: u64) -> Self {
        Self {
            shape,
            routine: Routine::Four,
            fetched: Vec::new(),
            wanted: 0,
            one: OneRead::new(shape.width_bits(), start_ticks),
        }
    }

    /// Begins a reading.
    pub fn begin(&mut self, routine: Routine) -> Step {
        self.routine = routine;
        self.fetched.clear();
        self.step()
    }

    /// Continues with the word that it asked for: `value` was sampled at `sampled`.
    pub fn give(&mut self, value: u64, sampled: Moment) -> Step {
        self.fetched.push((self.wanted, value, sampled));
        self.step()
    }

    fn step(&mut self) -> Step {
        if let Routine::Latched | Routine::Broadcast = self.routine {
            return match self.fetched.first() {
                Some(&(_, ticks, sampled)) => Step::Done(Some(ticks), sampled),
                None => {
                    self.wanted = 0;
                    Step::FetchAll
                }
            };
        }
        let mut replay = Replay {
            fetched: &self.fetched,
            asked: 0,
            missing: None,
        };
        let mut one = self.one;
        let ticks = match self.routine {
            Routine::Varying => Some(varying_read(self.shape, &mut replay)),
            Routine::Four => four_read(self.shape, &mut replay).ok(),
            _ => Some(one.extend(replay.read_word(0))),
        };
        match replay.missing {
            Some(index) => {
                self.wanted = index;
                Step::Fetch(index)
            }
            None => {
                self.one = one;
                Step::Done(ticks, self.significant())
            }
        }
    }

    /// Returns when the low word that was returned was sampled: for 4-Read the first one, for
    /// Varying-Read the last one.
    fn significant(&self) -> Moment {
        let mut low = self.fetched.iter().filter(|(index, ..)| *index == 0);
        let word = match self.routine {
            Routine::Varying => low.next_back(),
            _ => low.next(),
        };
        word.map_or(Moment::START, |&(_, _, sampled)| sampled)
    }
}
