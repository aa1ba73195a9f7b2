use super::*;
use crate::ping_pong::Reading;

/// By hand: one cycle in order; one in which the second process runs within the send (1,2) and
/// answers before point 2, so that (1,2) holds its points, and from 11 to 2 and from 4 to 5 time
/// goes back; one that only the next cycle ends.
#[test]
fn intervals_that_are_not_those_of_the_figure() {
    let cycle = |fine: [u64; POINTS]| fine.map(|fine| Reading { ticks: 0, fine });
    let in_order = cycle([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    let preempted = cycle([21, 28, 29, 30, 22, 23, 24, 25, 26, 27, 31, 32]);
    let last = cycle([41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52]);
    let repetition = |end| Repetition {
        cycles: vec![in_order, preempted, last],
        end: Reading {
            ticks: 0,
            fine: end,
        },
    };
    let found = disordered(&[repetition(61)]);
    assert_eq!(found.cycles, 1);
    let named: Vec<usize> = (0..=POINTS).filter(|&i| found.of_interval[i] > 0).collect();
    // (1,2); (4,5); and (10,11), in which points 2 to 4 lie.
    assert_eq!(named, [1, 4, 10]);
    let early = disordered(&[repetition(51)]);
    assert_eq!(
        (early.cycles, early.of_interval[12]),
        (2, 1),
        "(12,1) ends before it begins"
    );
}

/// A run of two repetitions of 1000 cycles of 120 us; the thirteen intervals take 120 and 10 us. In
/// `swapped` cycles of the first, the points 5 and 6 come in the other order.
fn run(swapped: usize) -> Run {
    let repetition = |swapped: usize| {
        let cycle = |number: usize| {
            let begin = number as u64 * 120_000;
            let mut points: [u64; POINTS] = core::array::from_fn(|i| begin + i as u64 * 10_000);
            if number % 300 == 7 && number / 300 < swapped {
                points.swap(4, 5);
            }
            points.map(|fine| Reading {
                ticks: fine / 1_000_000,
                fine,
            })
        };
        Repetition {
            cycles: (0..1000).map(cycle).collect(),
            end: Reading {
                ticks: 120,
                fine: 120_000_000,
            },
        }
    };
    Run {
        repetitions: vec![repetition(swapped), repetition(0)],
        tick_ns: 1e6,
        fine_ns: 1.0,
        clock_share: 0.0,
        clock_missed: 0,
        apart: true,
        policy: "SCHED_FIFO",
        interrupted: false,
    }
}

/// Of 2000 cycles, two out of order are one in a thousand, and three are more: then the interval is
/// refused, and has no figure. Between the swapped points lie the fourth to the sixth interval.
#[test]
fn an_interval_out_of_order_in_more_than_one_of_a_thousand_cycles_is_refused() {
    let refused = |swapped: usize| -> Vec<usize> {
        let here = Here::from_run(&run(swapped), 0.95);
        let is_refused = |i: &usize| {
            let row = here.row(*i, "an interval");
            let says = row.last().unwrap().starts_with("refused: out of order");
            let has_figures = row[2..row.len() - 1].iter().any(|cell| cell != "–");
            assert_ne!(says, has_figures, "{row:?}");
            says
        };
        (0..TABLE_17.len()).filter(is_refused).collect()
    };
    assert_eq!(refused(2), [0; 0]);
    assert_eq!(refused(3), [4, 5, 6]);
    let here = Here::from_run(&run(3), 0.95);
    let findings = here.findings(&run(3)).join("\n");
    assert!(
        findings.contains("3 of 13 intervals are refused"),
        "{findings}"
    );
}

/// The interval of the observed deviation is 1 to 2 us; (11) gives 1.5 in twelve of the thirteen, (10a)
/// 5 us in all but one.
#[test]
fn what_11_is_worth_is_counted() {
    let mut here = Here::from_run(&run(0), 0.95);
    for (index, one) in here.of_interval.iter_mut().enumerate() {
        one.error_spread.interval = Interval::new(1.0, 2.0);
        one.modelled = if index == 3 { 0.9 } else { 1.5 };
        one.predicted = if index == 5 { 2.0 } else { 5.0 };
    }
    let findings = here.findings(&run(0)).join("\n");
    assert!(
        findings.contains("(11), with the dependence measured, in 12 of 13 intervals"),
        "{findings}"
    );
    assert!(findings.contains("independent counts, in 1;"), "{findings}");
}
