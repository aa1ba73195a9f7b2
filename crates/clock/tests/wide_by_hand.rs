//! The wide readers, step by step: the order of accesses of a latch's writer and reader, without
//! threads (the model checker has the interleavings), and the texts of the errors.

use std::cell::{Cell, RefCell};

use undertick_clock::wide::latched::{Busy, Cells, read, write};
use undertick_clock::wide::{BadShape, Gap, Shape, TooSlow, Words, four_read};

/// Plain memory that logs the accesses to it.
#[derive(Default)]
struct Plain {
    sequence: Cell<u32>,
    words: [Cell<u32>; 2],
    /// Added to the sequence number after each read of word 1.
    stir: Cell<u32>,
    log: RefCell<Vec<String>>,
}

impl Plain {
    fn note(&self, what: String) {
        self.log.borrow_mut().push(what);
    }
}

impl Cells for Plain {
    fn sequence_acquire(&self) -> u32 {
        self.note("acquire".into());
        self.sequence.get()
    }
    fn sequence(&self) -> u32 {
        self.sequence.get()
    }
    fn set_sequence(&self, sequence: u32) {
        self.note(format!("sequence {sequence}"));
        self.sequence.set(sequence);
    }
    fn set_sequence_release(&self, sequence: u32) {
        self.note(format!("release {sequence}"));
        self.sequence.set(sequence);
    }
    fn word(&self, index: usize) -> u32 {
        if index == 1 {
            let step = self.stir.get();
            self.sequence.set(self.sequence.get() + step);
            self.stir.set(0);
        }
        self.words[index].get()
    }
    fn set_word(&self, index: usize, word: u32) {
        self.note(format!("word {index} {word:#x}"));
        self.words[index].set(word);
    }
    fn fence_acquire(&self) {}
    fn fence_release(&self) {
        self.note("fence".into());
    }
}

#[test]
fn a_writing_is_marked_before_and_after() {
    let page = Plain::default();
    page.sequence.set(u32::MAX - 1);
    write(&page, 0x0123_4567_89ab_cdef);
    assert_eq!(
        *page.log.borrow(),
        [
            "sequence 4294967295",
            "fence",
            "word 0 0x89abcdef",
            "word 1 0x1234567",
            "release 0"
        ]
    );
    assert_eq!(read(&page, 1), Ok(0x0123_4567_89ab_cdef));
}

#[test]
fn words_of_two_writings_are_read_again() {
    let page = Plain::default();
    write(&page, 7 << 32 | 5);
    // A write between the words and the second check: one try is not enough.
    page.stir.set(2);
    assert_eq!(read(&page, 1), Err(Busy));
    page.stir.set(2);
    assert_eq!(read(&page, 2), Ok(7 << 32 | 5));
    // During a write no word is read.
    page.sequence.set(3);
    page.log.borrow_mut().clear();
    assert_eq!(read(&page, 3), Err(Busy));
    assert_eq!(page.log.borrow().len(), 3);
}

/// Words that are read one after the other, as listed.
struct Listed(std::vec::IntoIter<u64>);

impl Words for Listed {
    fn read_word(&mut self, _: usize) -> u64 {
        self.0.next().expect("as many as listed")
    }
}

/// High words 2 and 5: three carries in one call, though both are odd steps.
#[test]
fn three_carries_in_a_call_are_too_slow() {
    let shape = Shape::new(8, 2).unwrap();
    let mut clock = Listed(vec![2, 0x80, 5, 0x90].into_iter());
    assert_eq!(four_read(shape, &mut clock), Err(TooSlow));
    // From the last high word to the first: one carry of the whole clock.
    let mut clock = Listed(vec![0xff, 0xf0, 0, 0x10].into_iter());
    assert_eq!(four_read(shape, &mut clock), Ok(0xfff0));
}

#[test]
fn errors_say_what_happened() {
    for (said, word) in [
        (BadShape.to_string(), "64 bits at most"),
        (TooSlow.to_string(), "longer than a period"),
        (Busy.to_string(), "has it died"),
        (Gap::Ambiguous(3).to_string(), "which of 3 periods"),
        (Gap::Contradiction.to_string(), "was a clock set"),
    ] {
        assert!(said.contains(word), "{said}");
    }
}
