//! The figures of the last seconds, within a fixed share of a CPU.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_analyze::Options;
use undertick_analyze::recent::{Look, Recent, RecentReport, Window};
use undertick_clock::Source;
use undertick_format::manifest::Manifest;
use undertick_record::collector::Tap;
use undertick_report::live;

use super::locked;

/// Stretch of time that the figures describe.
const LAST: Duration = Duration::from_secs(5);
/// Longest time to wait for records.
const LATE: Duration = Duration::from_millis(100);
/// Largest share of a CPU for taking records and estimating.
const SHARE: f64 = 0.01;
/// Initial number of records of a refresh.
const RECORDS: usize = 8_000;
/// Limits of the number of records of a refresh.
const FEWEST_RECORDS: usize = 500;
const MOST_RECORDS: usize = 100_000;

/// Samples records, and estimates.
pub struct Figures {
    look: Arc<Mutex<Look>>,
    clock: Source,
    ticks_per_s: f64,
    recent: Recent,
    /// The window whose records are taken; without an end while all records are.
    window: Window,
    /// Maximum number of records of a refresh.
    most: usize,
    /// CPU time per record taken, and per estimate, seconds.
    record_s: f64,
    estimating_s: f64,
    /// CPU time used beyond the share, seconds.
    debt_s: f64,
    rng: ChaCha8Rng,
}

impl Figures {
    pub fn new(clock: Source, ticks_per_s: f64) -> Self {
        Self {
            look: Arc::default(),
            clock,
            ticks_per_s,
            recent: Recent::default(),
            window: Window::EMPTY,
            most: RECORDS,
            record_s: 60e-9,
            estimating_s: 0.0,
            debt_s: 0.0,
            rng: ChaCha8Rng::seed_from_u64(clock.read_ticks()),
        }
    }

    /// Returns the function that a recording calls with its records.
    pub fn tap(&self) -> Tap {
        let look = Arc::clone(&self.look);
        Box::new(move |header, records| locked(&look).offer(header, records))
    }

    /// Stops taking records.
    pub fn stop(&self) {
        locked(&self.look).at(0, Window::EMPTY, 0);
    }

    /// Returns the figures `period` after the last call, at `until_s` of the recording; `None` if
    /// there is no CPU time for them and the last ones remain.
    pub fn refresh(
        &mut self,
        manifest: &Manifest,
        period: Duration,
        until_s: f64,
    ) -> Option<live::Recent> {
        let now = self.clock.read_ticks();
        self.turn_window(now, self.ticks(period));
        let allowed_s = SHARE * period.as_secs_f64();
        self.debt_s -= allowed_s;
        if self.debt_s > 0.0 {
            return None;
        }
        self.debt_s = 0.0;
        let span = Window {
            from: now.saturating_sub(self.ticks(LAST)),
            until: u64::MAX,
        };
        self.recent.forget(span.from);
        let before_s = thread_cpu_s();
        let gathered = (self.recent.gather(manifest, Options::default(), span)).ok()?;
        let (records, taken_s) = (gathered.records, thread_cpu_s() - before_s);
        let found = gathered.report().ok()?;
        let spent_s = thread_cpu_s() - before_s;
        self.debt_s = spent_s - allowed_s;
        // The values are smoothed, because the thread may be disturbed while it works.
        let smooth = |before: &mut f64, now: f64| *before += 0.3 * (now - *before);
        smooth(
            &mut self.record_s,
            taken_s / records.max(FEWEST_RECORDS) as f64,
        );
        smooth(&mut self.estimating_s, spent_s - taken_s);
        // Where estimating takes long, the figures are renewed less often: doing that for few
        // records would be useless.
        let for_records_s = (allowed_s - self.estimating_s).max(self.estimating_s);
        // A record is analysed at each refresh, until it is too old.
        let times = LAST.as_secs_f64() / period.as_secs_f64();
        self.most = (for_records_s / times / self.record_s) as usize;
        self.most = self.most.clamp(FEWEST_RECORDS, MOST_RECORDS);
        (found.looked_s > 0.0).then(|| shown(found, until_s))
    }

    fn ticks(&self, time: Duration) -> u64 {
        (time.as_secs_f64() * self.ticks_per_s) as u64
    }

    /// Closes the window and begins the next one. It covers the whole time if that is not too much,
    /// otherwise a stretch at a random time, with which no program can be in step.
    fn turn_window(&mut self, now: u64, period: u64) {
        let late = self.ticks(LATE);
        let mut look = locked(&self.look);
        let was_whole = self.window.until == u64::MAX;
        let is_cut = look.is_cut();
        let until = now.saturating_sub(late);
        let whole = |from| Window {
            from,
            until: u64::MAX,
        };
        // The longest possible window.
        let room = period.saturating_sub(2 * late);
        let had = look.looked(until);
        let seen = look.records().max(1);
        let fits = (had as f64 * 0.8 * self.most as f64 / seen as f64) as u64;
        self.window = if self.window == Window::EMPTY {
            whole(now)
        } else if was_whole && !is_cut {
            whole(until)
        } else if !is_cut && fits > 2 * period {
            whole(now)
        } else {
            let length = fits.clamp(1, room.max(1));
            let from = now + self.rng.random_range(0..=room - length.min(room));
            Window {
                from,
                until: from + length,
            }
        };
        let taken = look.at(until, self.window, self.most);
        drop(look);
        self.recent.add(taken);
    }
}

/// Returns the figures in the form in which they are drawn.
fn shown(found: RecentReport, until_s: f64) -> live::Recent {
    let (looked_s, of_s) = (found.looked_s, found.of_s);
    let confidence = found.report.settings.confidence;
    let entries = (found.report.intervals.into_iter())
        .filter(|interval| RecentReport::ends(interval) > 0)
        .map(|interval| live::Entry {
            per_s: RecentReport::executions(&interval) as f64 / looked_s,
            cut: RecentReport::cut(&interval).unwrap_or(0.0),
            interval,
        });
    live::Recent {
        entries: entries.collect(),
        of_s,
        until_s,
        looked_share: (looked_s / of_s).min(1.0),
        confidence,
    }
}

/// Returns the CPU time of this thread, seconds.
pub fn thread_cpu_s() -> f64 {
    cpu_s(rustix::time::ClockId::ThreadCPUTime)
}

/// Returns the CPU time of this process, seconds.
pub fn process_cpu_s() -> f64 {
    cpu_s(rustix::time::ClockId::ProcessCPUTime)
}

fn cpu_s(clock: rustix::time::ClockId) -> f64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}
