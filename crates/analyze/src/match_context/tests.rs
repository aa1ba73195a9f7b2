use undertick_format::manifest::Name;

use super::*;

#[test]
fn high_event_numbers_of_many_processes_take_no_tables() {
    const PROCESSES: usize = 100_000;
    let names: Vec<Name> = (1..=PROCESSES as i32)
        .map(|pid| Name {
            pid: Some(pid),
            event: 7,
            name: "x".to_owned(),
        })
        .collect();
    let mut context = MatchContext::default();
    context.set_names(Names::new(&names, &[]));
    // Low and high numbers alternate: each keeps its own cell, wherever it lies.
    let events = [65_535, 3, 40_000, 200, 65_534];
    for event in events {
        for set in 1..=PROCESSES {
            context.cell(set, event).instant = set as u32 ^ u32::from(event) << 16;
        }
    }
    for event in events {
        for set in 1..=PROCESSES {
            let instant = context.cell(set, event).instant;
            assert_eq!(instant, set as u32 ^ u32::from(event) << 16);
        }
    }
    let room: usize = context.cells.iter().map(Vec::capacity).sum();
    let bytes = (room + context.cells_beyond.capacity() * 2) * size_of::<Cell>();
    assert!(bytes < 256 << 20, "{bytes} bytes");
}
