use super::*;

fn decoder() -> Decoder {
    let layout = PageLayout::parse(
        "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
             field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
             field: char data;\toffset:16;\tsize:1008;\tsigned:0;\n",
    )
    .unwrap();
    let format = |id: u16| {
        Format::parse(&format!(
            "ID: {id}\nfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                 field:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
                 field:int one;\toffset:8;\tsize:4;\tsigned:1;\n\
                 field:int two;\toffset:12;\tsize:4;\tsigned:1;\n\
                 field:int three;\toffset:16;\tsize:4;\tsigned:1;\n"
        ))
        .unwrap()
    };
    let mut decoder = Decoder::new(layout, &format(0), true).unwrap();
    for (id, event) in [
        (1, Event::Switch),
        (2, Event::Waking),
        (3, Event::NewTask),
        (4, Event::Enter(Over::Vector)),
        (5, Event::Leave(Over::Vector)),
        (6, Event::Enter(Over::Soft)),
        (7, Event::Leave(Over::Soft)),
        (8, Event::Fault),
    ] {
        assert!(decoder.add(event, &format(id), &["one", "two", "three"]));
    }
    assert!(!decoder.add(Event::Exit, &format(9), &["four"]));
    decoder
}

/// A page of events `(id, flags, current, fields)`, 10 apart.
fn page(events: &[(u16, u8, i32, [i32; 3])]) -> Vec<u8> {
    let mut page = 1000_u64.to_le_bytes().to_vec();
    page.extend_from_slice(&(24 * events.len() as u64).to_le_bytes());
    for &(id, flags, current, fields) in events {
        page.extend_from_slice(&(5_u32 | 10 << 5).to_le_bytes());
        page.extend_from_slice(&id.to_le_bytes());
        page.extend_from_slice(&[flags, 0]);
        page.extend_from_slice(&current.to_le_bytes());
        (fields.iter()).for_each(|field| page.extend_from_slice(&field.to_le_bytes()));
    }
    page.resize(1024, 0);
    page
}

#[test]
fn events_by_hand() {
    let mut decoder = decoder();
    let mut out = Vec::new();
    let page = page(&[
        (1, 0, 7, [7, 9, 0x101]),
        (2, 0, 7, [9, 0, 0]),
        (2, 8, 7, [9, 0, 0]),
        (3, 0, 7, [12, 0x1_0000, 0]),
        (3, 0, 7, [13, 0x11, 0]),
        (6, 0, 7, [1, 0, 0]), // at 1060
        (4, 0, 7, [236, 0, 0]),
        (5, 0, 7, [236, 0, 0]),
        (7, 0, 7, [1, 0, 0]), // at 1090
        (7, 0, 7, [1, 0, 0]), // of nothing
        (99, 0, 7, [1, 1, 1]),
        (8, 0, 7, [0, 0, 0]),
    ]);
    decoder.page(3, &page, |record| out.push(record));
    let short: Vec<_> = out
        .iter()
        .map(|r| (r.kind, r.time, r.tid, r.pid, r.a, r.payload))
        .collect();
    assert_eq!(
        short,
        [
            (RecordKind::Switch, 1010, 7, 9, 0x101, 0),
            (RecordKind::Waking, 1020, 9, 7, 0, 0),
            (RecordKind::Waking, 1030, 9, 0, 0, 0),
            (RecordKind::NewTask, 1040, 12, 7, 1, 0),
            (RecordKind::NewTask, 1050, 13, 7, 0, 0),
            (RecordKind::Interrupt, 1070, 7, 0, (1 << 15) + 236, 10),
            (RecordKind::SoftInterrupt, 1060, 7, 0, 1, 30),
            (RecordKind::Fault, 1120, 7, 0, 0, 0),
        ]
    );
    assert!(out.iter().all(|record| record.mapped && record.cpu == 3));
}

/// The thread that comes on a CPU is named when it takes it from one that could have run on, once.
#[test]
fn names_of_threads_that_come_in_place_of_others() {
    let mut decoder = decoder();
    let switch = Format::parse(
        "ID: 1\nfield:int one;\toffset:8;\tsize:4;\tsigned:1;\n\
             field:int two;\toffset:12;\tsize:4;\tsigned:1;\n\
             field:int three;\toffset:16;\tsize:4;\tsigned:1;\n\
             field:char next_comm[16];\toffset:4;\tsize:16;\tsigned:0;\n",
    )
    .unwrap();
    assert!(decoder.add(Event::Switch, &switch, &["one", "two", "three"]));
    // The name's bytes are those of `current` and the fields, so that it fits the page by hand.
    let name = i32::from_le_bytes(*b"hog\0");
    let mut out = Vec::new();
    let page = page(&[
        (1, 0, name, [7, 9, 0]),
        (1, 0, name, [7, 9, 0]),
        (1, 0, name, [7, 9, 1]),
        (1, 0, i32::from_le_bytes(*b"cat\0"), [7, 9, 0]),
        (1, 0, name, [7, 0, 0]),
    ]);
    decoder.page(3, &page, |record| out.push(record));
    let short: Vec<_> = (out.iter())
        .map(|r| match r.kind {
            RecordKind::Name => (r.time, format!("{} {}", r.tid, r.name())),
            _ => (r.time, "switch".to_owned()),
        })
        .collect();
    let switch = |time: u64| (time, "switch".to_owned());
    assert_eq!(
        short,
        [
            (1009, "9 hog".to_owned()),
            switch(1010),
            switch(1020),
            switch(1030),
            (1039, "9 cat".to_owned()),
            switch(1040),
            switch(1050),
        ]
    );
}
