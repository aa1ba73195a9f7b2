use super::*;

/// 10 columns of 10 ticks.
const WINDOW: Window = Window {
    from: 1000,
    to: 1100,
    columns: 10,
};

fn cells(of: &Cells) -> Vec<u32> {
    of.rows(10.0)
        .first()
        .map_or(Vec::new(), |r| r.cells.clone())
}

#[test]
fn a_span_takes_of_each_column_what_lies_in_it() {
    let mut lane = Cells::default();
    lane.add(&WINDOW, 0, 7, 1005, 1023);
    assert_eq!(cells(&lane), [0, 7, 500, 1, 1, 7, 1000, 0, 2, 7, 300, 0]);
    assert_eq!((lane.spans, lane.busy), (1, 18));
    // Cut at the ends of the window, and begun before it.
    let mut cut = Cells::default();
    cut.add(&WINDOW, 0, 1, 900, 1004);
    cut.add(&WINDOW, 0, 1, 1097, 5000);
    assert_eq!(cells(&cut), [0, 1, 400, 0, 9, 1, 300, 1]);
}

#[test]
fn the_name_that_took_most_stands_for_a_column() {
    let mut lane = Cells::default();
    lane.add(&WINDOW, 0, 1, 1000, 1002);
    lane.add(&WINDOW, 0, 2, 1002, 1007);
    lane.add(&WINDOW, 0, 1, 1007, 1008);
    assert_eq!(cells(&lane), [0, 2, 800, 3]);
    // A span of no length is not lost.
    lane.add(&WINDOW, 0, 3, 1055, 1055);
    assert_eq!(cells(&lane)[4..], [5, 3, 0, 1]);
    lane.halve();
    assert_eq!(
        lane.rows(20.0)[0].cells,
        [0, 2, 400, 3, 2, 3, 0, 1],
        "halves of columns twice as long"
    );
}

#[test]
fn columns_that_do_not_divide_the_window_cover_it() {
    let window = Window {
        from: -7,
        to: 13,
        columns: 3,
    };
    for ts in window.from..window.to {
        let column = window.column(ts);
        assert!(window.begin(column) <= ts && ts < window.begin(column + 1));
    }
    let mut lane = Cells::default();
    lane.add(&window, 0, 0, -7, 13);
    let shares: u32 = lane.rows(20.0 / 3.0)[0].cells.chunks(4).map(|c| c[2]).sum();
    assert!((2998..=3002).contains(&shares), "{shares}");
}
