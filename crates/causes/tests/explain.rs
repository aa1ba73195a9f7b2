//! Why single calls took longer, in traces in which every delay was put there.

use std::path::Path;

use undertick_analyze::{Options, analyze};
use undertick_causes::explain::explain;
use undertick_document::StateFact;
use undertick_document::explanation::{ExplainedPath, Explanation, Part, PartCause, SlowCall};
use undertick_format::read::Trace;
use undertick_format::schema::Kind as KernelKind;
use undertick_record::kernel::rows::Row;
use undertick_ring::Kind;

use crate::support;

use support::made::{self, Thread};

const NAMES: [&str; 4] = ["request", "lookup", "flush", "size"];
const REQUEST: u16 = 1;
const LOOKUP: u16 = 2;
const FLUSH: u16 = 3;
const SIZE: u16 = 4;
/// From this size on a request takes longer.
const LARGE: u32 = 950;
const LARGE_NS: i64 = 6_000;

const SERVER: i32 = 7;
const WRITER: i32 = 8;
const HOG: i32 = 900;
const EACH: usize = 100;
const CALLS: usize = 30_000;

/// What is put into a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delay {
    Hog,
    HogInLookup,
    OwnThread,
    Switched,
    WaitsForThread,
    WaitsForInterrupt,
    Queued,
    WokenOnTheWay,
    Interrupt,
    Deferred,
    OwnDeferred,
    Faults,
    SlowLookup,
    Flush,
    Unknown,
}

const DELAYS: [Delay; 15] = [
    Delay::Hog,
    Delay::HogInLookup,
    Delay::OwnThread,
    Delay::Switched,
    Delay::WaitsForThread,
    Delay::WaitsForInterrupt,
    Delay::Queued,
    Delay::WokenOnTheWay,
    Delay::Interrupt,
    Delay::Deferred,
    Delay::OwnDeferred,
    Delay::Faults,
    Delay::SlowLookup,
    Delay::Flush,
    Delay::Unknown,
];

impl Delay {
    /// The first part of the excess, and what it is about.
    fn truth(self) -> (PartCause, Option<&'static str>) {
        match self {
            Self::Hog | Self::HogInLookup => (PartCause::Preempted, Some("hog (900)")),
            Self::OwnThread => (PartCause::OwnThread, Some("writer (8)")),
            Self::Switched => (PartCause::Switched, None),
            Self::WaitsForThread => (PartCause::Waited, Some("writer (8)")),
            Self::WaitsForInterrupt => (PartCause::Waited, Some("an interrupt")),
            Self::Queued => (PartCause::Queued, None),
            Self::WokenOnTheWay => (PartCause::Queued, Some("hog (900)")),
            Self::Interrupt => (PartCause::Interrupt, None),
            Self::Deferred => (PartCause::SoftInterrupt, None),
            Self::OwnDeferred => (PartCause::OwnSoftInterrupt, None),
            Self::Faults => (PartCause::Fault, None),
            Self::SlowLookup => (PartCause::Child, Some("lookup")),
            Self::Flush => (PartCause::Child, Some("flush")),
            Self::Unknown => (PartCause::Unexplained, None),
        }
    }
}

/// A call with a delay: when it began, and how long it was delayed, ns.
#[derive(Clone, Copy, Debug)]
struct Planted {
    delay: Delay,
    start: i64,
    ns: i64,
}

/// The thread, and the kernel's rows about it.
struct Program {
    thread: Thread,
    kernel: Vec<Row>,
    planted: Vec<Planted>,
}

impl Program {
    fn row(&mut self, kind: KernelKind, tid: i32, event: i32, payload: i64) {
        self.row_at(kind, tid, event, payload, self.thread.now);
    }

    fn row_at(&mut self, kind: KernelKind, tid: i32, event: i32, payload: i64, ticks: i64) {
        self.kernel.push(Row {
            ticks,
            pid: 1,
            tid,
            cpu: 0,
            kind,
            event,
            payload,
        });
    }

    /// The thread is off its CPU for `ns`; `payload`, `next`: as the row says. It is woken by
    /// `waker` after the share `woken` of that time.
    fn off(&mut self, ns: i64, payload: i64, next: i32, waker: Option<(i32, f64)>) {
        let since = self.thread.now;
        self.row(KernelKind::SwitchOut, SERVER, next, payload);
        if next == WRITER {
            self.row(KernelKind::SwitchIn, WRITER, 0, 0);
        }
        if let Some((waker, woken)) = waker {
            let at = since + (ns as f64 * woken) as i64;
            self.row_at(KernelKind::Waking, SERVER, 0, i64::from(waker), at);
        }
        self.thread.now += ns;
        if next == WRITER {
            self.row(KernelKind::SwitchOut, WRITER, SERVER, 0);
        }
        self.row(KernelKind::SwitchIn, SERVER, 0, 0);
    }

    /// What happens in the middle of a call.
    fn happens(&mut self, delay: Delay, ns: i64) {
        match delay {
            Delay::Hog | Delay::HogInLookup => self.off(ns, 1, HOG, None),
            Delay::OwnThread => self.off(ns, 1, WRITER, None),
            Delay::Switched => self.off(ns, 2, 0, None),
            Delay::WaitsForThread => self.off(ns, 0, 0, Some((WRITER, 0.99))),
            Delay::WaitsForInterrupt => self.off(ns, 0, 0, Some((0, 0.99))),
            Delay::Queued => self.off(ns, 0, 0, Some((WRITER, 0.01))),
            // A few nanoseconds before it leaves.
            Delay::WokenOnTheWay => self.off(ns, 0, HOG, Some((WRITER, -0.0002))),
            Delay::Interrupt => {
                self.row(KernelKind::Interrupt, SERVER, 33, ns);
                self.thread.now += ns;
            }
            Delay::Deferred => {
                self.row(KernelKind::Interrupt, SERVER, 33, ns / 100);
                self.thread.now += ns / 100;
                self.row(KernelKind::SoftInterrupt, SERVER, 3, ns - ns / 100);
                self.thread.now += ns - ns / 100;
            }
            Delay::OwnDeferred => {
                self.row(KernelKind::SoftInterrupt, SERVER, 3, ns);
                self.thread.now += ns;
            }
            Delay::Faults => {
                for _ in 0..ns / 2_000 {
                    self.row(KernelKind::Fault, SERVER, 0, -1);
                    self.thread.now += 2_000;
                }
            }
            Delay::Flush => {
                self.thread.record(FLUSH, Kind::Begin, 0);
                self.thread.now += ns - 20;
                self.thread.record(FLUSH, Kind::End, 0);
            }
            Delay::SlowLookup => self.thread.now += ns,
            Delay::Unknown => {
                // The hypervisor took half of it.
                self.row(KernelKind::Steal, 0, 0, 0);
                self.thread.now += ns;
                self.row(KernelKind::Steal, 0, 0, ns / 2);
            }
        }
    }

    /// A call of a `size`, with that delay in it.
    fn call(&mut self, size: u32, delay: Option<Delay>) {
        let ns = match delay {
            Some(Delay::Faults) => 2_000 * (10 + (10.0 * self.thread.uniform()) as i64),
            _ => 20_000 + (40_000.0 * self.thread.uniform()) as i64,
        };
        let start = self.thread.now;
        if let Some(delay) = delay {
            self.planted.push(Planted { delay, start, ns });
        }
        let is_in_lookup = matches!(delay, Some(Delay::HogInLookup | Delay::SlowLookup));
        self.thread.record(REQUEST, Kind::Begin, 0);
        self.thread.record(SIZE, Kind::Instant, size);
        if size >= LARGE {
            self.thread.now += LARGE_NS;
        }
        self.thread.spend(500.0);
        self.thread.record(LOOKUP, Kind::Begin, 0);
        self.thread.spend(300.0);
        if let Some(delay) = delay.filter(|_| is_in_lookup) {
            self.happens(delay, ns);
        }
        self.thread.record(LOOKUP, Kind::End, 0);
        if let Some(delay) = delay.filter(|_| !is_in_lookup) {
            self.happens(delay, ns);
        }
        self.thread.record(REQUEST, Kind::End, 0);
        self.thread.now += 100;
    }
}

/// [`CALLS`] calls of which [`EACH`] have each of these delays; with `has_kernel` also the rows of the
/// kernel about them.
fn trace(path: &Path, delays: &[Delay], has_kernel: bool) -> Vec<Planted> {
    let mut program = Program {
        thread: Thread::new(11),
        kernel: Vec::new(),
        planted: Vec::new(),
    };
    let every = CALLS / (EACH * delays.len().max(1));
    for call in 0..CALLS {
        let size = (program.thread.uniform() * 1000.0) as u32;
        let delay = (call % every == every / 2 && program.planted.len() < EACH * delays.len())
            .then(|| delays.get(call / every % delays.len().max(1)))
            .flatten();
        // The cause is one: what is delayed is not large, too.
        let size = if delay.is_some() { size % LARGE } else { size };
        program.call(size, delay.copied());
    }
    let rings = [program.thread.ring(SERVER, "server"), {
        let mut writer = Thread::new(3);
        writer.span(FLUSH, 100.0);
        writer.ring(WRITER, "writer")
    }];
    made::write(path, &NAMES, &rings);
    if has_kernel {
        made::add_kernel(path, program.kernel, &[(HOG, "hog")]);
    }
    program.planted
}

fn explained(path: &Path, slowest: usize) -> Explanation {
    let trace = Trace::open(path).unwrap();
    let options = Options::default();
    let report = analyze(&trace, options.clone(), &mut |_| {}).unwrap();
    let request = report.paths_named("request")[0];
    explain(
        &trace,
        &options,
        &report,
        (&[request], slowest),
        &mut |_| {},
    )
    .unwrap()
}

fn only(explanation: &Explanation) -> &ExplainedPath {
    assert_eq!(explanation.paths.len(), 1);
    &explanation.paths[0]
}

fn at(path: &ExplainedPath, planted: Planted, began: f64) -> Option<&SlowCall> {
    (path.slowest.iter()).find(|call| (call.start_ns + began - planted.start as f64).abs() < 0.5)
}

/// The parts sum to the excess.
#[track_caller]
fn sums(call: &SlowCall) {
    let parts: f64 = call.parts.iter().map(|part| part.ns).sum();
    assert!((parts - call.excess_ns).abs() < 1e-6, "{call:#?}");
}

/// The first event is at 1000 ns of the clock, and times count from there.
const BEGAN: f64 = 1_000.0;

#[test]
fn every_delay_is_attributed_to_what_caused_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.ut");
    let planted = trace(&path, &DELAYS, true);
    assert_eq!(planted.len(), DELAYS.len() * EACH);
    let explanation = explained(&path, planted.len());
    let found = only(&explanation);
    assert_eq!(found.calls, CALLS as u64);
    // 500 and 300 ns in the mean, and the records in it: the middle of that.
    assert!(
        (found.typical.took_ns - 880.0).abs() < 20.0,
        "{:?}",
        found.typical
    );
    for delayed in planted {
        let call = at(found, delayed, BEGAN).unwrap_or_else(|| panic!("{delayed:?} is not there"));
        sums(call);
        // 5 % of the delay, and the scatter of a call.
        let near = |ns: f64| (ns - delayed.ns as f64).abs() < 0.05 * delayed.ns as f64 + 200.0;
        assert!(near(call.excess_ns), "{delayed:?}: {call:#?}");
        let first = &call.parts[0];
        let (cause, of) = delayed.delay.truth();
        assert_eq!(
            (first.cause, first.of.as_deref()),
            (cause, of),
            "{delayed:?}: {call:#?}"
        );
        assert!(near(first.ns), "{delayed:?}: {call:#?}");
        let stolen = (delayed.delay == Delay::Unknown).then_some((delayed.ns / 2) as f64);
        assert_eq!(call.stolen_up_to_ns, stolen, "{delayed:?}: {call:#?}");
    }
}

/// The excess of a call in a slower state is attributed to the state, and is not unexplained.
#[test]
fn the_state_of_a_call_explains_what_others_of_it_take() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.ut");
    trace(&path, &[], true);
    let explanation = explained(&path, EACH);
    for call in &only(&explanation).slowest {
        sums(call);
        let first = &call.parts[0];
        assert_eq!(first.cause, PartCause::State, "{call:#?}");
        assert!((first.ns - LARGE_NS as f64).abs() < 100.0, "{call:#?}");
        let size = &first.conditions[0];
        assert_eq!(
            (size.fact, size.of.as_deref()),
            (StateFact::Value, Some("size"))
        );
    }
}

/// Without the kernel's rows the thread on the CPU is unknown, and the excess stays unexplained.
#[test]
fn without_the_kernel_what_it_did_is_unexplained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.ut");
    let planted = trace(&path, &DELAYS, false);
    let explanation = explained(&path, planted.len());
    assert!(!explanation.has_kernel_events);
    let found = only(&explanation);
    for delayed in planted {
        let call = at(found, delayed, BEGAN).unwrap();
        sums(call);
        let truth = match delayed.delay {
            Delay::SlowLookup | Delay::HogInLookup => (PartCause::Child, Some("lookup")),
            Delay::Flush => (PartCause::Child, Some("flush")),
            _ => (PartCause::Unexplained, None),
        };
        let first = &call.parts[0];
        assert_eq!((first.cause, first.of.as_deref()), truth, "{call:#?}");
    }
}

/// The excess of all of them is that of each, cause by cause.
#[test]
fn together_they_are_the_sum_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.ut");
    let planted = trace(&path, &DELAYS, true);
    let explanation = explained(&path, planted.len());
    let found = only(&explanation);
    let of = |part: &&Part, cause: PartCause| part.cause == cause;
    for cause in [
        PartCause::Preempted,
        PartCause::Waited,
        PartCause::Unexplained,
    ] {
        let each: f64 = (found.slowest.iter())
            .flat_map(|call| call.parts.iter().filter(|part| of(part, cause)))
            .map(|part| part.ns)
            .sum();
        let together = found.together.iter().find(|part| of(part, cause)).unwrap();
        assert!((together.ns - each).abs() < 1e-3, "{together:?}");
    }
    // Twice as many calls were preempted as delayed for any other reason.
    let preempted = found
        .together
        .iter()
        .find(|part| of(part, PartCause::Preempted));
    assert_eq!(preempted.unwrap().n, 2 * EACH as u64);
}
