//! An invented timeline.

use undertick_document::timeline::{Detail, Lane, LaneKind, OFF_CPU, Row, Span, Timeline};

/// A second of two threads and a CPU, with a loss, and a span furthest over its median.
pub fn second() -> Timeline {
    let lane = |kind, label: &str, rows, losses| Lane {
        kind,
        label: label.to_owned(),
        spans: 600,
        busy: 0.25,
        rows,
        losses,
    };
    let row = |row, cells: &[u32]| Row {
        row,
        cells: cells.to_vec(),
    };
    let writer = vec![
        row(
            0,
            &[0, 0, 1000, 12, 1, 0, 400, 3, 5, 1, 1000, 1, 6, 1, 1000, 0],
        ),
        row(1, &[0, 2, 700, 40, 5, 2, 900, 1]),
        row(OFF_CPU, &[2, 3, 1000, 1, 3, 3, 1000, 0]),
    ];
    let reader = vec![row(0, &[1, 2, 900, 500, 9, 2, 100, 40])];
    let slowest: Span = (0, 0, 5.0e8, 1.9e8, 1, 1);
    let inner: Span = (0, 1, 5.1e8, 1.0e8, 2, 0);
    Timeline {
        schema_version: 1,
        from_ns: 2e9,
        length_ns: 1e9,
        of_ns: 5e9,
        chosen: "the second that was asked for".to_owned(),
        columns: 10,
        names: [
            "begin",
            "<b>commit",
            "step",
            "off the CPU: waits",
            "writer (7)",
        ]
        .map(str::to_owned)
        .into(),
        dropped: vec![String::new(), "preempted".to_owned()],
        lanes: vec![
            lane(LaneKind::Thread, "writer (7)", writer, vec![(4.0e8, 12)]),
            lane(LaneKind::Thread, "reader </script> (8)", reader, vec![]),
            lane(
                LaneKind::Cpu,
                "CPU 0",
                vec![row(0, &[0, 4, 1000, 1, 5, 4, 1000, 1])],
                vec![],
            ),
        ],
        spans: vec![
            (0, 0, 0.0, 1.4e8, 0, 0),
            slowest,
            inner,
            (1, 0, 1.0e8, 9.0e7, 2, 0),
        ],
        spans_all: 1_203,
        instants: 0,
        lanes_left_out: 0,
        detail: Some(Detail {
            from_ns: 4.0e8,
            length_ns: 4.0e8,
            slowest,
            over_median_ns: 1.88e8,
            spans: vec![slowest, inner],
            shorter_left_out_ns: None,
        }),
        switches: vec![(0.0, 1), (8.0e8, 2), (9.0e8, 3)],
    }
}
