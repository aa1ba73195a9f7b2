//! A ring whose program writes arbitrary values anywhere in its header while it is read.

use std::sync::atomic::Ordering;

use undertick_format::block::{self, BlockHeader};
use undertick_ring::layout::{SEGMENT_BYTES, ring};
use undertick_ring::{Mapped, Memory, Reader, Record};

const SEGMENTS: u32 = 3;
const HEAD_WORDS: usize = ring::HEAD_BYTES as usize / 8;
const WORDS: usize = HEAD_WORDS + SEGMENTS as usize * SEGMENT_BYTES as usize / 8;

/// Fields that the reader uses.
const FIELDS: [usize; 7] = [
    ring::OFF_HEAD,
    ring::OFF_HEAD,
    ring::OFF_OLDEST,
    ring::OFF_TAIL,
    ring::OFF_USES,
    ring::OFF_USES + 8,
    ring::OFF_USES + 16,
];

/// Runs steps of ten bytes: kind, field, number.
pub fn ring(bytes: &[u8]) {
    thread_local! {
        static WORDS_OF_RING: std::cell::RefCell<Vec<u64>> = std::cell::RefCell::new(vec![0; WORDS]);
    }
    WORDS_OF_RING.with_borrow_mut(|words| {
        for field in FIELDS {
            words[field / 8] = 0;
        }
        run(words, bytes);
    });
}

fn run(words: &mut [u64], bytes: &[u8]) {
    let head = words.as_mut_ptr();
    // SAFETY: so many words, borrowed until after the last use.
    let mut memory = unsafe {
        let first = head.add(HEAD_WORDS);
        Mapped::new(head.cast(), first.cast(), SEGMENTS, SEGMENTS)
    };
    let mut reader = Reader::new(memory);
    let mut copied = Vec::new();
    let mut encoded = Vec::new();
    let mut decoded = Vec::new();
    for step in bytes.chunks_exact(10) {
        let number = u64::from_le_bytes(step[2..10].try_into().expect("eight bytes"));
        match step[0] % 4 {
            0 => {
                let field = FIELDS[usize::from(step[1]) % FIELDS.len()];
                memory.field_u64(field).store(number, Ordering::Relaxed);
            }
            1 => {
                // Likely numbers: a little more than before, in whole records.
                let field = FIELDS[usize::from(step[1]) % FIELDS.len()];
                let before = memory.field_u64(field).load(Ordering::Relaxed);
                let more = before.wrapping_add((number % (2 * SEGMENT_BYTES)) & !15);
                memory.field_u64(field).store(more, Ordering::Relaxed);
            }
            2 => {
                let at = number % (u64::from(SEGMENTS) * SEGMENT_BYTES / 16) * 16;
                let word = u64::from(step[1]) << 56 | number;
                memory.enter((at / SEGMENT_BYTES) as u32);
                memory.store_record(at % SEGMENT_BYTES, [number, word]);
            }
            _ => {
                let before = reader.position();
                let head = reader.look() + before;
                let chunk = match reader.seen_chunk() {
                    Ok(Some(chunk)) => chunk,
                    Ok(None) => continue,
                    Err(corrupt) => {
                        assert!(!corrupt.to_string().is_empty());
                        break;
                    }
                };
                assert!(chunk.position >= before && chunk.bytes.is_multiple_of(16));
                assert!((16..=SEGMENT_BYTES).contains(&chunk.bytes));
                assert!(chunk.at + chunk.bytes <= u64::from(SEGMENTS) * SEGMENT_BYTES);
                assert!(chunk.position + chunk.bytes <= head);
                // Reads only a few of them: the content of the records is not tested here.
                let records = (chunk.bytes / 16).min(64);
                copied.clear();
                copied.extend((0..records).map(|r| memory.load_record(chunk.at + 16 * r)));
                let _ = reader.is_whole(&chunk);
                let header = BlockHeader {
                    ring: 1,
                    pid: 2,
                    tid: 3,
                    position: chunk.position,
                    records: records as u32,
                };
                encoded.clear();
                let continuations = block::encode(header, &copied, &mut encoded);
                let next = block::decode(&encoded, &mut decoded);
                assert_eq!(next, block::Next::Block(header, encoded.len()));
                assert!(
                    copied
                        .iter()
                        .map(|&words| Record::from_words(words))
                        .eq(decoded.iter().copied())
                );
                reader.release(&chunk, continuations);
                assert_eq!(reader.position(), chunk.position + chunk.bytes);
                assert!(reader.overwritten() <= u64::MAX / 16);
            }
        }
    }
}
