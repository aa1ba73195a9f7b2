//! Future events, in order of time.

use super::Moment;

/// Number of children of a node. Four lie in two cache lines or less, and the tree is half as deep
/// as a binary one (measured by `cargo xtask bench cmstar`).
const ARITY: usize = 4;

/// Future events, by time; those of one moment in the order in which they were entered.
///
/// ```
/// use undertick_cmstar::engine::{Agenda, Moment};
///
/// let mut agenda = Agenda::new();
/// agenda.enter(Moment::from_us(2), 'b');
/// agenda.enter(Moment::from_us(1), 'a');
/// agenda.enter(Moment::from_us(2), 'c');
/// let order: String = std::iter::from_fn(|| agenda.next()).map(|(_, e)| e).collect();
/// assert_eq!(order, "abc");
/// ```
///
/// It is a heap whose root may be vacant: an event that is taken off is mostly followed by one that
/// is entered, which then passes through the heap once and not twice.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    heap: Vec<Entry<E>>,
    root_is_vacant: bool,
    entered: u64,
    now: Moment,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: u64,
    order: u64,
    event: E,
}

impl<E> Entry<E> {
    /// Returns time, then order of entering, as one number: compared without a branch.
    fn key(&self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.order)
    }
}

impl<E: Copy> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Agenda<E> {
    /// Returns an empty agenda, at the start.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            heap: Vec::new(),
            root_is_vacant: false,
            entered: 0,
            now: Moment::START,
        }
    }

    /// Returns the moment of the last event taken off.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.now
    }

    /// Returns the number of events entered since the beginning.
    #[must_use]
    pub const fn entered(&self) -> u64 {
        self.entered
    }

    /// Returns the number of future events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.root_is_vacant)
    }

    /// Returns whether there are no future events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Enters an event.
    ///
    /// # Panics
    /// If the moment is past.
    #[inline]
    pub fn enter(&mut self, at: Moment, event: E) {
        assert!(at >= self.now, "an event at {at}, and it is {}", self.now);
        let entry = Entry {
            at: at.ns(),
            order: self.entered,
            event,
        };
        self.entered += 1;
        if self.root_is_vacant {
            self.root_is_vacant = false;
            self.sink(entry);
        } else {
            self.heap.push(entry);
            self.rise(entry);
        }
    }

    /// Returns the moment of the next event.
    #[inline]
    pub fn next_at(&mut self) -> Option<Moment> {
        self.fill_root();
        self.heap.first().map(|entry| Moment::from_ns(entry.at))
    }

    /// Takes off the next event, and advances to its moment.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "events come while it runs")]
    pub fn next(&mut self) -> Option<(Moment, E)> {
        self.fill_root();
        let entry = *self.heap.first()?;
        self.root_is_vacant = true;
        self.now = Moment::from_ns(entry.at);
        Some((self.now, entry.event))
    }

    /// Advances to a moment at which nothing happens.
    ///
    /// # Panics
    /// If the moment is past, or an event would be skipped.
    pub fn advance(&mut self, to: Moment) {
        assert!(to >= self.now && self.next_at().is_none_or(|next| next >= to));
        self.now = to;
    }

    #[inline]
    fn fill_root(&mut self) {
        if self.root_is_vacant {
            self.root_is_vacant = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sink(last);
            }
        }
    }

    /// Inserts an entry at the root, which is vacant.
    #[inline]
    fn sink(&mut self, entry: Entry<E>) {
        let key = entry.key();
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let first = ARITY * hole + 1;
            let least = match heap.get(first..first + ARITY) {
                Some(children) => first + least_of(children),
                None if first < heap.len() => first + least_of(&heap[first..]),
                None => break,
            };
            if heap[least].key() > key {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
    }

    /// Moves an entry up from the end.
    #[inline]
    fn rise(&mut self, entry: Entry<E>) {
        let key = entry.key();
        let heap = self.heap.as_mut_slice();
        let mut hole = heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if heap[parent].key() < key {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
    }
}

/// Returns the index of the smallest of up to [`ARITY`] entries.
#[inline]
fn least_of<E>(entries: &[Entry<E>]) -> usize {
    let mut least = 0;
    let mut key = entries[0].key();
    for (index, entry) in entries.iter().enumerate().skip(1) {
        let other = entry.key();
        least = if other < key { index } else { least };
        key = key.min(other);
    }
    least
}
