use undertick_cmstar::load::Call;
use undertick_cmstar::{Moment, Reading, Window};

use super::*;

fn reading(ticks: u64) -> Reading {
    Reading {
        ticks: Some(ticks),
        called: Moment::START,
        sampled: Moment::START,
        returned: Moment::START,
    }
}

fn call(check: Option<[u64; 4]>) -> Call {
    Call {
        sent: Moment::START,
        received: Moment::START,
        done: Moment::START,
        server_was_blocked: false,
        readings: None,
        check: check.map(|ticks| ticks.map(reading)),
    }
}

/// By hand. Nothing took 20, 30 and 30 ticks: a variance of 33.33. Less the mean of the own pairs around
/// it, 12, 15 and 15, there remain 8, 15 and 15: 16.33. Less that of the nearest pairs of the clock
/// process, 12 and 12, 10 and 20, 8 and 4, there remain 8, 15 and 24: 64.33, with a mean of 15.667 ticks.
#[test]
fn nothing_measured_after_calls() {
    let run = PairsRun {
        calls: vec![
            call(Some([1000, 1010, 1030, 1044])),
            call(None),
            call(Some([2000, 2020, 2050, 2060])),
            call(Some([3000, 3010, 3040, 3060])),
        ],
        samples: [
            [1000, 1012],
            [2005, 2015],
            [2060, 2080],
            [3012, 3020],
            [3050, 3054],
        ]
        .map(|pair| pair.map(reading))
        .to_vec(),
        window: Window {
            from: Moment::START,
            to: Moment::START,
            near: 0,
            far: 0,
            events: 0,
            kmaps: Vec::new(),
        },
        digest: 0,
    };
    let check = Check::from_run(&run, 2.0).expect("three checks");
    for (is, wanted) in [
        (check.mean_us, 2.0 * 47.0 / 3.0),
        (check.own_k, 33.333_333 / 16.333_333),
        (check.clock_k, 33.333_333 / 64.333_333),
    ] {
        assert!((is - wanted).abs() < 1e-6, "{is} for {wanted}");
    }
}
