//! The latch under the model checker: every interleaving and every reordering that the memory
//! orders allow. Run with `RUSTFLAGS="--cfg loom"`.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::thread;
use undertick_clock::wide::latched::{Cells, read, write};

struct Page {
    sequence: AtomicU32,
    words: [AtomicU32; 2],
    begun: AtomicU32,
    ended: AtomicU32,
}

impl Cells for Page {
    fn sequence_acquire(&self) -> u32 {
        self.sequence.load(Ordering::Acquire)
    }
    fn sequence(&self) -> u32 {
        self.sequence.load(Ordering::Relaxed)
    }
    fn set_sequence(&self, sequence: u32) {
        self.sequence.store(sequence, Ordering::Relaxed);
    }
    fn set_sequence_release(&self, sequence: u32) {
        self.sequence.store(sequence, Ordering::Release);
    }
    fn word(&self, index: usize) -> u32 {
        self.words[index].load(Ordering::Relaxed)
    }
    fn set_word(&self, index: usize, word: u32) {
        self.words[index].store(word, Ordering::Relaxed);
    }
    fn fence_acquire(&self) {
        fence(Ordering::Acquire);
    }
    fn fence_release(&self) {
        fence(Ordering::Release);
    }
}

/// The clock goes 0x0_ffffffff, 0x1_00000000, 0x1_00000001: a wrap, then a step.
const VALUES: [u64; 3] = [0xffff_ffff, 0x1_0000_0000, 0x1_0000_0001];

#[test]
fn a_value_is_never_outside_the_call() {
    loom::model(|| {
        let page = Arc::new(Page {
            sequence: AtomicU32::new(0),
            words: [AtomicU32::new(VALUES[0] as u32), AtomicU32::new(0)],
            begun: AtomicU32::new(0),
            ended: AtomicU32::new(0),
        });
        let writer = {
            let page = Arc::clone(&page);
            thread::spawn(move || {
                for (i, &value) in (1..).zip(&VALUES[1..]) {
                    page.begun.store(i, Ordering::Relaxed);
                    write(&*page, value);
                    page.ended.store(i, Ordering::Release);
                }
            })
        };
        let at_start = page.ended.load(Ordering::Acquire);
        if let Ok(value) = read(&*page, 1) {
            let at_end = page.begun.load(Ordering::Relaxed);
            let which = VALUES.iter().position(|v| *v == value);
            let which = which.unwrap_or_else(|| panic!("{value:x} was never shown")) as u32;
            assert!(
                at_start <= which && which <= at_end,
                "{at_start} {which} {at_end}"
            );
        }
        writer.join().unwrap();
    });
}
