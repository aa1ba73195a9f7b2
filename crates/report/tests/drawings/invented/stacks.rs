//! Invented samples of threads with their stacks.

use undertick_document::{IntervalReport, PathStacks, StackFunction, StackNode, Stacks};

/// Functions of the first and of the last path, of a path that was still open, and outside of spans.
pub(super) fn stacks(intervals: &[IntervalReport]) -> Option<Stacks> {
    let last = intervals.len().checked_sub(1)?;
    let functions = (0..12).map(|at| StackFunction {
        name: format!("shop::function_{at}<std::map<int, std::string>>"),
        file: if at % 3 == 0 {
            String::new()
        } else {
            "/usr/lib/libshop.so.1".to_owned()
        },
    });
    let node = |(caller, function): (Option<u32>, u32), on_cpu, waited_ns| StackNode {
        caller,
        function,
        on_cpu,
        waited_ns,
    };
    // main calls run, which calls two functions; one of them waits.
    let nodes = |scale: u64| {
        vec![
            node((None, 0), 0, 0.0),
            node((Some(0), 1), 10 * scale, 0.0),
            node((Some(1), 2), 60 * scale, 0.0),
            node((Some(1), 3), 25 * scale, 3e6 * scale as f64),
            node((Some(3), 2), 5 * scale, 0.0),
        ]
    };
    let of = |path: Option<usize>, still_open: &[&str], scale: u64| PathStacks {
        path: path.map(|at| at as u32),
        still_open: still_open.iter().map(|name| (*name).to_owned()).collect(),
        on_cpu: 103 * scale,
        waits: 7 * scale,
        waited_ns: 3e6 * scale as f64,
        nodes: nodes(scale),
        left_out: 3 * scale,
    };
    let mut paths = vec![of(Some(0), &[], 9)];
    if last > 0 {
        paths.push(of(Some(last), &[], 3));
    }
    paths.push(of(None, &["requests", "upload"], 2));
    paths.push(of(None, &[], 1));
    Some(Stacks {
        every_ns: 1_000_000,
        in_kernel: true,
        when_waiting: true,
        why: String::new(),
        on_cpu: paths.iter().map(|of| of.on_cpu).sum(),
        waits: paths.iter().map(|of| of.waits).sum(),
        waits_known: 0.97,
        incomplete: 0.02,
        functions: functions.collect(),
        paths,
    })
}
