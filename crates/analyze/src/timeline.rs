//! One second of a trace for the page. The trace is read a second time, and only what touches
//! that second is stored.

mod cells;
mod collect;
mod kernel;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use undertick_document::Report;
use undertick_document::timeline::{Detail, Lane, LaneKind, Row, SCHEMA_VERSION, Span, Timeline};
use undertick_format::manifest::Manifest;
use undertick_format::read::Trace;

use crate::analysis::Stretch;
use crate::error::{Error, Failed};
use crate::options::Options;
use crate::parallel::{available_cpus, passes};
use cells::{Cells, Window};
use collect::{Collecting, Longest, Single, WindowContents, Words};
use kernel::OfKernel;

/// Fewest columns, with many threads, and most columns.
const COLUMNS: (u32, u32) = (200, 2000);
/// Most columns of all rings together while they are gathered: bounds memory.
const ALL_COLUMNS: usize = 400_000;
/// Most cells in the document, about 12 bytes each.
const MOST_CELLS: usize = 40_000;
/// Most threads with separate lanes; the busiest are chosen.
const MOST_THREADS: usize = 48;
/// Most CPUs with lanes.
const MOST_CPUS: usize = 32;
/// Most spans in the overview, and in the window around the slowest; about 40 bytes each.
const MOST_SPANS: usize = 6_000;
const MOST_DETAIL: usize = 3_000;
/// Lengths of the window around the slowest span, in spans; the first one with room is used.
const AROUND: [f64; 7] = [16.0, 8.0, 4.0, 2.0, 1.2, 0.5, 0.1];
/// Shortest window around the slowest span, ns.
const LEAST_DETAIL_NS: f64 = 1_000.0;
const SECOND_NS: f64 = 1e9;

/// Returns a report, and one second of the same trace: the one that begins `second` ns after the
/// first event, or one chosen by where the samples took longest. `progress` receives the share
/// done, 0 to 1.
///
/// # Errors
/// As [`crate::analyze`]; or the trace ends before that second.
pub fn analyze_with_timeline(
    trace: &Trace,
    options: &Options,
    second: Option<f64>,
    progress: &mut dyn FnMut(f64),
) -> Result<(Report, Option<Timeline>), Failed> {
    let cpus = available_cpus();
    let analysis = passes(trace, options.clone(), cpus, None, &mut |share| {
        progress(share / 2.0)
    })?;
    let stretch = analysis.stretch();
    let report = analysis.finish()?;
    let Some(stretch) = stretch else {
        return Ok((report, None));
    };
    let (window, chosen) = window(&trace.manifest, &stretch, second)?;
    let more_than_one = report.intervals.iter().filter(|i| i.count > 1);
    let medians = more_than_one.filter_map(|i| Some((i.name.clone(), i.median.as_ref()?.value)));
    let collecting = Collecting {
        window,
        medians: medians.collect(),
        contents: Mutex::default(),
    };
    passes(
        trace,
        options.clone(),
        cpus,
        Some(&collecting),
        &mut |share| {
            progress(0.5 + share / 2.0);
        },
    )?;
    let contents = (collecting.contents.into_inner()).unwrap_or_else(PoisonError::into_inner);
    let timeline = Making {
        manifest: &trace.manifest,
        window,
        origin: stretch.first,
        ns: trace.manifest.clock.ns_per_tick(),
    }
    .timeline(trace, contents, chosen, &stretch)?;
    Ok((report, Some(timeline)))
}

/// Returns the second, in ticks, and why it was chosen.
fn window(
    manifest: &Manifest,
    stretch: &Stretch,
    second: Option<f64>,
) -> Result<(Window, String), Error> {
    let ns = manifest.clock.ns_per_tick();
    let length = (SECOND_NS / ns).round() as i64;
    let all = stretch.last.saturating_sub(stretch.first).saturating_add(1);
    let (from, chosen) = match second {
        Some(at) if at / ns >= all as f64 => {
            let seconds = all as f64 * ns / 1e9;
            return Err(Error::Option {
                option: "--second",
                given: format!("{}s", at / 1e9),
                mend: format!("the trace ends {seconds:.3} s after its first event"),
            });
        }
        Some(at) => (
            stretch.first + (at / ns).round() as i64,
            "the second that was asked for".to_owned(),
        ),
        None if all <= length => (stretch.first, "the whole of it".to_owned()),
        None => {
            let middle = stretch.from + (stretch.to - stretch.from).min(length) / 2;
            let latest = stretch.last + 1 - length;
            let why = "the second around that part of the trace in which samples took the most \
                       time beyond their intervals' means";
            (
                (middle - length / 2).clamp(stretch.first, latest),
                why.to_owned(),
            )
        }
    };
    let to = from.saturating_add(length).min(stretch.last + 1);
    let rings = manifest.rings.len().max(1);
    let columns = u32::try_from(ALL_COLUMNS / rings).unwrap_or(u32::MAX);
    let columns = columns.clamp(COLUMNS.0, COLUMNS.1);
    // No column is shorter than a tick.
    let columns = columns
        .min(u32::try_from(to - from).unwrap_or(u32::MAX))
        .max(1);
    Ok((Window { from, to, columns }, chosen))
}

/// A lane before its numbers are those of the document.
struct Making<'a> {
    manifest: &'a Manifest,
    window: Window,
    /// Ticks of the first event.
    origin: i64,
    ns: f64,
}

struct Drawn {
    kind: LaneKind,
    label: String,
    ring: Option<i32>,
    cells: Cells,
}

impl Making<'_> {
    fn timeline(
        &self,
        trace: &Trace,
        mut contents: WindowContents,
        chosen: String,
        stretch: &Stretch,
    ) -> Result<Timeline, Failed> {
        let labels = self.labels();
        let label = |host: i16, tid: i32| {
            labels
                .get(&(host, tid))
                .cloned()
                .unwrap_or_else(|| self.on_host(host, format!("thread {tid}")))
        };
        let mut kernel = OfKernel::default();
        for batch in trace.kernel_batches()? {
            if !kernel.take(&batch?, &self.window, &mut contents.names, &label)? {
                break;
            }
        }
        kernel.finish(&self.window, &mut contents.names, &label);
        let instants = contents.instants;
        let spans_all = contents.lanes.values().map(|lane| lane.cells.spans).sum();
        let threads = contents.lanes.len();
        let mut switches: Vec<(f64, u32)> = (kernel.switches.iter())
            .map(|&(at, state)| (self.at(at), state))
            .collect();
        switches.truncate(MOST_SPANS);
        let mut lanes = self.lanes(std::mem::take(&mut contents.lanes), kernel, &label);
        let mut columns = self.window.columns;
        while columns > 1 && lanes.iter().map(|l| l.cells.filled()).sum::<usize>() > MOST_CELLS {
            lanes.iter_mut().for_each(|lane| lane.cells.halve());
            columns = columns.div_ceil(2);
        }
        let lane_of: HashMap<i32, u32> = (lanes.iter().zip(0..))
            .filter_map(|(lane, place)| Some((lane.ring?, place)))
            .collect();
        let detail = self.detail(&contents, &lane_of);
        let mut longest = contents.longest;
        longest
            .spans
            .retain(|span| lane_of.contains_key(&span.ring));
        longest.thin(MOST_SPANS);
        let mut timeline = Timeline {
            schema_version: SCHEMA_VERSION,
            from_ns: rounded((self.window.from - self.origin) as f64 * self.ns),
            length_ns: rounded(self.window.ticks() as f64 * self.ns),
            of_ns: rounded((stretch.last - stretch.first) as f64 * self.ns),
            chosen,
            columns,
            names: Vec::new(),
            dropped: contents.dropped.list.clone(),
            lanes: (lanes.iter())
                .map(|lane| self.lane(lane, columns))
                .collect(),
            spans: self.spans(&longest, &lane_of),
            spans_all,
            instants,
            lanes_left_out: threads.saturating_sub(MOST_THREADS) as u64,
            detail,
            switches,
        };
        name_what_is_used(&mut timeline, &contents.names);
        Ok(timeline)
    }

    /// Time from the window's begin, ns.
    fn at(&self, ts: i64) -> f64 {
        rounded((ts - self.window.from) as f64 * self.ns)
    }

    /// Names of threads.
    fn labels(&self) -> HashMap<(i16, i32), String> {
        let of = |tid: i32, name: &str, host| self.on_host(host, format!("{name} ({tid})"));
        // The manifest's threads have no host; with several hosts, the first one's name is used.
        let threads = self.manifest.threads.iter();
        let hosts = i16::try_from(self.manifest.hosts.len().max(1)).unwrap_or(1);
        threads
            .flat_map(|t| (0..hosts).map(move |host| ((host, t.tid), of(t.tid, &t.name, host))))
            .collect()
    }

    fn on_host(&self, host: i16, what: String) -> String {
        let several = self.manifest.hosts.len() > 1;
        match self.manifest.hosts.get(usize::try_from(host).unwrap_or(0)) {
            Some(about) if several => format!("{}: {what}", about.name),
            _ => what,
        }
    }

    /// The busiest threads, then CPUs and their interrupts.
    fn lanes(
        &self,
        contents: BTreeMap<i32, collect::ThreadLane>,
        mut kernel: OfKernel,
        label: &impl Fn(i16, i32) -> String,
    ) -> Vec<Drawn> {
        let mut threads: Vec<_> = contents.into_iter().collect();
        threads.sort_by_key(|(ring, lane)| {
            (-lane.cells.busy, std::cmp::Reverse(lane.cells.spans), *ring)
        });
        threads.truncate(MOST_THREADS);
        threads.sort_by_key(|(ring, _)| *ring);
        let mut lanes = Vec::new();
        for (ring, mut lane) in threads {
            if let Some(off) = kernel.off.remove(&(lane.host, lane.tid)) {
                let (spans, busy) = (lane.cells.spans, lane.cells.busy);
                let all: Vec<u32> = (0..).take(1 << 20).collect();
                lane.cells.absorb(off, &all);
                (lane.cells.spans, lane.cells.busy) = (spans, busy);
            }
            lanes.push(Drawn {
                kind: LaneKind::Thread,
                label: label(lane.host, lane.tid),
                ring: Some(ring),
                cells: lane.cells,
            });
        }
        for (what, kind, of) in [
            ("CPU", LaneKind::Cpu, kernel.cpus),
            ("interrupts on CPU", LaneKind::Interrupts, kernel.interrupts),
        ] {
            let seen = of.into_iter().filter(|(_, cells)| !cells.is_empty());
            for ((host, cpu), cells) in seen.take(MOST_CPUS) {
                let label = self.on_host(host, format!("{what} {cpu}"));
                lanes.push(Drawn {
                    kind,
                    label,
                    ring: None,
                    cells,
                });
            }
        }
        lanes
    }

    fn lane(&self, lane: &Drawn, columns: u32) -> Lane {
        let column_ticks = self.window.ticks() as f64 / f64::from(columns);
        let column_ns = column_ticks * self.ns;
        let losses = lane.cells.losses.iter();
        Lane {
            kind: lane.kind,
            label: lane.label.clone(),
            spans: lane.cells.spans,
            busy: lane.cells.busy as f64 / self.window.ticks().max(1) as f64,
            rows: lane.cells.rows(column_ticks),
            losses: losses
                .map(|(&column, &n)| (rounded(f64::from(column) * column_ns), n))
                .collect(),
        }
    }

    fn spans(&self, longest: &Longest, lane_of: &HashMap<i32, u32>) -> Vec<Span> {
        let mut spans: Vec<(i64, Span)> = (longest.spans.iter())
            .filter_map(|span| Some((span.start, self.span(span, lane_of)?)))
            .collect();
        spans.sort_by(|(a, x), (b, y)| a.cmp(b).then((x.0, x.1).cmp(&(y.0, y.1))));
        spans.into_iter().map(|(_, span)| span).collect()
    }

    fn span(&self, span: &Single, lane_of: &HashMap<i32, u32>) -> Option<Span> {
        let lane = *lane_of.get(&span.ring)?;
        let length = rounded(span.ticks as f64 * self.ns);
        let start = self.at(span.start);
        Some((lane, span.row, start, length, span.name, span.dropped))
    }

    /// The window around the slowest span, as large as there is room for.
    fn detail(&self, contents: &WindowContents, lane_of: &HashMap<i32, u32>) -> Option<Detail> {
        let (over_median_ns, slowest) = contents.slowest?;
        let drawn = self.span(&slowest, lane_of)?;
        let middle = slowest.start.saturating_add(slowest.ticks / 2);
        let least = (LEAST_DETAIL_NS / self.ns) as i64;
        let mut window = None;
        for factor in AROUND {
            let length = ((slowest.ticks as f64 * factor) as i64)
                .clamp(least, self.window.ticks().max(least));
            let latest = (self.window.to - length).max(self.window.from);
            let from = (middle - length / 2).clamp(self.window.from, latest);
            let to = from.saturating_add(length).min(self.window.to);
            let inside = |s: &&Single| {
                s.start < to
                    && s.start.saturating_add(s.ticks) >= from
                    && lane_of.contains_key(&s.ring)
            };
            let spans: Vec<Single> = contents
                .longest
                .spans
                .iter()
                .filter(inside)
                .copied()
                .collect();
            window = Some((from, to, spans));
            if window
                .as_ref()
                .is_some_and(|(_, _, s)| s.len() <= MOST_DETAIL)
            {
                break;
            }
        }
        let (from, to, spans) = window?;
        let mut longest = Longest {
            spans,
            shortest: contents.longest.shortest,
        };
        longest.thin(MOST_DETAIL);
        Some(Detail {
            from_ns: self.at(from),
            length_ns: (to - from) as f64 * self.ns,
            slowest: drawn,
            over_median_ns,
            spans: self.spans(&longest, lane_of),
            shorter_left_out_ns: longest.shortest.map(|ticks| ticks as f64 * self.ns),
        })
    }
}

/// Rounds to a tenth of a nanosecond, which is finer than any clock.
fn rounded(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Numbers the names in alphabetical order; unused ones are removed.
fn name_what_is_used(timeline: &mut Timeline, words: &Words) {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    let mut all: Vec<&mut u32> = Vec::new();
    for lane in &mut timeline.lanes {
        for Row { cells, .. } in &mut lane.rows {
            all.extend(cells.iter_mut().skip(1).step_by(4));
        }
    }
    all.extend(timeline.spans.iter_mut().map(|span| &mut span.4));
    if let Some(detail) = &mut timeline.detail {
        all.push(&mut detail.slowest.4);
        all.extend(detail.spans.iter_mut().map(|span| &mut span.4));
    }
    for number in &all {
        used.insert(words.list[**number as usize].clone(), 0);
    }
    for (place, number) in used.values_mut().enumerate() {
        *number = place as u32;
    }
    for number in all {
        *number = used[&words.list[*number as usize]];
    }
    timeline.names = used.into_keys().collect();
}
