use super::*;

#[test]
fn words_are_unique_and_found_again() {
    for (word, mix) in Mix::WORDS {
        assert_eq!(mix.word(), word);
    }
}

#[test]
fn the_chain_comes_by_every_line_once() {
    for lines in [2, 3, 100, 1000] {
        let memory = chain(lines, 1);
        let mut seen = vec![false; lines];
        let mut at = 0;
        for _ in 0..lines {
            assert!(!std::mem::replace(&mut seen[at / WORDS_OF_LINE], true));
            at = memory[at] as usize;
        }
        assert_eq!(at, 0);
    }
}

#[test]
fn a_stream_goes_on_where_it_ended_and_begins_again() {
    let mut ready = Ready::new(Mix::Stream, 8 * 64, 1); // 8 lines
    let mut at = Vec::new();
    for _ in 0..4 {
        ready.work(3);
        at.push(ready.at / WORDS_OF_LINE);
    }
    assert_eq!(at, [3, 6, 1, 4]);
}

#[test]
fn every_mix_works_with_any_region() {
    for (_, mix) in Mix::WORDS {
        for bytes in [0, 1, 64, 4096, 1 << 20] {
            let mut ready = Ready::new(mix, bytes, 3);
            ready.work(0);
            ready.work(1);
            ready.work(10_001);
        }
    }
}

#[test]
fn regions_follow_the_caches() {
    let caches = [(1, 48 << 10), (2, 1 << 20), (3, 32 << 20)];
    assert_eq!(Mix::Stream.footprint_bytes(&caches), 128 << 20);
    assert_eq!(Mix::L3.footprint_bytes(&caches), 16 << 20);
    assert_eq!(Mix::L1.footprint_bytes(&caches), 24 << 10);
    // A machine that does not report its caches.
    assert_eq!(Mix::Chain.footprint_bytes(&[]), 64 << 20);
    assert_eq!(Mix::L2.footprint_bytes(&[]), 256 << 10);
}
