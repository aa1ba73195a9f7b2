use super::*;

fn layout() -> PageLayout {
    PageLayout::parse(
        "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
             field: char data;\toffset:16;\tsize:112;\tsigned:0;\n",
    )
    .unwrap()
}

fn page(time: u64, flags: u64, words: &[u32], after: &[u8]) -> Vec<u8> {
    let mut page = time.to_le_bytes().to_vec();
    page.extend_from_slice(&(flags | (4 * words.len() as u64)).to_le_bytes());
    words
        .iter()
        .for_each(|word| page.extend_from_slice(&word.to_le_bytes()));
    page.extend_from_slice(after);
    page.resize(128, 0xaa);
    page
}

fn items(page: &[u8]) -> Vec<(u64, Vec<u8>, i64)> {
    let mut all = Vec::new();
    read(page, &layout(), |item| match item {
        PageItem::Lost(time, count) => all.push((time, Vec::new(), count)),
        PageItem::Event(time, data) => all.push((time, data.to_vec(), 0)),
    });
    all
}

#[test]
fn every_kind_of_event() {
    let header = |kind: u32, delta: u32| kind | delta << 5;
    let words = [
        header(1, 10), // one word of data
        0x0403_0201,
        header(0, 5), // length in the next word
        8,
        0x0807_0605,
        header(TIME_EXTEND, 7),
        1, // 1 << 27 | 7
        header(PADDING, 3),
        8, // discarded: its length with this word
        0,
        header(1, 2),
        9,
        header(TIME_STAMP, 100),
        2,
        header(1, 1),
        11,
        header(PADDING, 0),
        77,
    ];
    let start = (5 << STAMP_BITS) + 1000;
    let after_stamp = (5 << STAMP_BITS) + (2 << 27) + 101;
    let later = start + 15 + (1 << 27) + 7 + 3 + 2;
    assert_eq!(
        items(&page(start, 0, &words, &[])),
        [
            (start + 10, vec![1, 2, 3, 4], 0),
            (start + 15, vec![5, 6, 7, 8], 0),
            (later, vec![9, 0, 0, 0], 0),
            (after_stamp, vec![11, 0, 0, 0], 0),
        ]
    );
}

#[test]
fn losses_counted_and_not() {
    let words = [1 | 4 << 5, 1];
    let counted = page(50, LOST | LOST_COUNTED, &words, &77_u64.to_le_bytes());
    assert_eq!(
        items(&counted),
        [(50, vec![], 77), (54, vec![1, 0, 0, 0], 0)]
    );
    assert_eq!(items(&page(50, LOST, &words, &[]))[0], (50, vec![], -1));
}

#[test]
fn no_bytes_make_it_panic() {
    let mut state = 3_u64;
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..128)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(99);
                (state >> 33) as u8
            })
            .collect();
        items(&bytes);
        items(&bytes[..(state >> 40) as usize % 128]);
    }
}
