//! The thread that draws and reads keys, while another one records.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind};
use undertick_clock::Source;
use undertick_format::manifest::Manifest;
use undertick_record::collector::CollectorProgress;
use undertick_record::record::{RecordingProgress, Watch};
use undertick_report::live::{self, State};

use super::figures::{Figures, process_cpu_s, thread_cpu_s};
use super::locked;
use super::terminal::{self, Screen};
use crate::Failure;
use crate::recording::Prepared;

/// Period of the refreshes.
const PERIOD: Duration = Duration::from_millis(500);
/// Longest delay of a key, and of the end of the recording.
const KEYS: Duration = Duration::from_millis(100);
/// Longest time that the view may take to end.
const ITS_END: Duration = Duration::from_secs(2);
/// Number of rates that are stored: more than any screen is wide.
const RATES: usize = 1000;
/// Bytes at the end of the program's output that are read.
const PRINTED_BYTES: u64 = 8 * 1024;

/// State shared by the recorder and the view.
#[derive(Default)]
struct Shared {
    about: Mutex<Option<Manifest>>,
    latest: Mutex<LatestProgress>,
    /// The user has left the view.
    left: AtomicBool,
    /// The recording is over.
    over: AtomicBool,
}

/// The last progress of the recorder.
#[derive(Clone, Copy, Default)]
struct LatestProgress {
    progress: CollectorProgress,
    elapsed: Duration,
    finalizing: Option<f64>,
}

/// A view that is drawn.
pub struct View {
    shared: Arc<Shared>,
    thread: JoinHandle<f64>,
}

impl View {
    /// Takes the screen over. The recorder must watch the recording with the returned [`Watch`].
    pub fn start(prepared: &Prepared, printed: Option<&Path>) -> Result<(Self, Watch), Failure> {
        let request = &prepared.request;
        let clock = Source::open(request.facts.clock).map_err(Failure::usage)?;
        let figures = Figures::new(clock, request.facts.rate.claim.rate.ticks_per_s());
        let shared = Arc::new(Shared::default());
        let is_attached = prepared.attach.is_some();
        let command = match prepared.attach {
            Some(attach) => undertick_record::attach::command_of(attach.pid).unwrap_or_default(),
            None => (request.command.iter())
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
        };
        let screen = terminal::take_over()
            .map_err(|e| Failure::machine(format!("the terminal cannot be drawn on: {e}")))?;
        let about = Arc::clone(&shared);
        let watch = Watch {
            on_manifest: Some(Box::new(move |manifest| {
                *locked(&about.about) = Some(manifest.clone());
            })),
            ..Watch::new(figures.tap())
        };
        let drawing = Drawing {
            shared: Arc::clone(&shared),
            figures,
            screen,
            printed: printed.map(Path::to_owned),
            used: [0.0; 2],
            state: first_state(command, is_attached),
        };
        let thread = std::thread::Builder::new()
            .name("undertick-view".to_owned())
            .spawn(move || drawing.run())
            .map_err(|e| {
                terminal::give_back();
                Failure::usage(e)
            })?;
        Ok((Self { shared, thread }, watch))
    }

    /// Updates the progress of the recording; returns false once the user has left the view.
    pub fn update(&self, update: &RecordingProgress) -> bool {
        let mut latest = locked(&self.shared.latest);
        match update {
            RecordingProgress::Recording(progress, elapsed) => {
                (latest.progress, latest.elapsed) = (*progress, *elapsed)
            }
            RecordingProgress::Finalizing(share) => latest.finalizing = Some(*share),
            RecordingProgress::Snapshot(_) => {} // the files show it
        }
        !self.shared.left.load(Ordering::Relaxed)
    }

    /// Restores the screen; returns the share of a CPU that the view used.
    pub fn finish(self) -> Option<f64> {
        self.shared.over.store(true, Ordering::Relaxed);
        let left = self.shared.left.load(Ordering::Relaxed);
        let since = Instant::now();
        while !self.thread.is_finished() && since.elapsed() < ITS_END {
            std::thread::sleep(Duration::from_millis(5));
        }
        // If the terminal no longer responds, the trace must not wait for it.
        let ended = (self.thread.is_finished()).then(|| self.thread.join().ok());
        if !left || ended.is_none() {
            terminal::give_back();
        }
        ended.flatten()
    }
}

fn first_state(command: Vec<String>, is_attached: bool) -> State {
    State {
        command,
        is_attached,
        elapsed_s: 0.0,
        events: 0,
        lost: 0,
        bytes: 0,
        threads: 0,
        rates: VecDeque::new(),
        own_use: None,
        recent: None,
        output: Vec::new(),
        order: live::Order::default(),
        above: 0,
        is_paused: false,
        is_help: false,
        finalizing: None,
    }
}

struct Drawing {
    shared: Arc<Shared>,
    figures: Figures,
    screen: Screen,
    printed: Option<PathBuf>,
    /// CPU time of the process and of the view, at the last refresh, seconds.
    used: [f64; 2],
    state: State,
}

impl Drawing {
    /// Draws until the recording is over, or the user leaves; returns the share of a CPU that it
    /// used.
    fn run(mut self) -> f64 {
        let begun = Instant::now();
        let mut refreshed = begun;
        self.used = [process_cpu_s(), thread_cpu_s()];
        let mut is_shown = self.draw();
        while is_shown && !self.shared.over.load(Ordering::Relaxed) {
            let left = PERIOD.saturating_sub(refreshed.elapsed());
            match terminal::event(left.min(KEYS)) {
                Err(_) => break,
                Ok(Some(event)) => {
                    is_shown = self.hear(&event) && self.draw();
                    continue;
                }
                Ok(None) => {}
            }
            let elapsed = refreshed.elapsed();
            if elapsed >= PERIOD {
                refreshed = Instant::now();
                self.refresh(elapsed);
                is_shown = self.draw();
            }
        }
        self.figures.stop();
        if !self.shared.over.load(Ordering::Relaxed) {
            terminal::give_back();
            self.shared.left.store(true, Ordering::Relaxed);
        }
        thread_cpu_s() / begun.elapsed().as_secs_f64()
    }

    /// Draws the screen; returns false if it is gone.
    fn draw(&mut self) -> bool {
        let state = &self.state;
        self.screen.draw(|frame| live::draw(frame, state)).is_ok()
    }

    fn refresh(&mut self, period: Duration) {
        let latest = *locked(&self.shared.latest);
        let state = &mut self.state;
        let (seconds, events) = (latest.elapsed.as_secs_f64(), latest.progress.events);
        if seconds > state.elapsed_s {
            let new = events.saturating_sub(state.events) as f64;
            state.rates.push_back(new / (seconds - state.elapsed_s));
            if state.rates.len() > RATES {
                state.rates.pop_front();
            }
        }
        (state.elapsed_s, state.events) = (seconds, events);
        (state.lost, state.bytes) = (latest.progress.lost, latest.progress.bytes);
        state.threads = latest.progress.rings;
        state.finalizing = latest.finalizing;
        let used = [process_cpu_s(), thread_cpu_s()];
        let of = |i: usize| (used[i] - self.used[i]) / period.as_secs_f64();
        state.own_use = Some((of(0), of(1)));
        self.used = used;
        if let Some(path) = &self.printed {
            state.output = last_lines(path);
        }
        if state.finalizing.is_some() {
            return; // the last seconds of the program stand
        }
        let about = locked(&self.shared.about);
        let found =
            (about.as_ref()).and_then(|about| self.figures.refresh(about, period, state.elapsed_s));
        drop(about);
        if found.is_some() && !state.is_paused {
            state.recent = found;
        }
    }

    /// Handles a key; returns false if it ends the view.
    fn hear(&mut self, event: &Event) -> bool {
        let Event::Key(key) = event else {
            return true; // another size: drawn anew
        };
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let state = &mut self.state;
        let entries = state
            .recent
            .as_ref()
            .map_or(0, |recent| recent.entries.len());
        let down = |by: usize| (state.above + by).min(entries.saturating_sub(1));
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc if state.is_help => state.is_help = false,
            KeyCode::Char('q') if state.is_attached => interrupt(),
            KeyCode::Char('q') => return false,
            KeyCode::Char('s') => state.order = state.order.next(),
            KeyCode::Char(' ') => state.is_paused = !state.is_paused,
            KeyCode::Char('?' | 'h') => state.is_help = !state.is_help,
            KeyCode::Down => state.above = down(1),
            KeyCode::PageDown => state.above = down(5),
            KeyCode::End => state.above = down(entries),
            KeyCode::Up => state.above = state.above.saturating_sub(1),
            KeyCode::PageUp => state.above = state.above.saturating_sub(5),
            KeyCode::Home => state.above = 0,
            _ => {}
        }
        true
    }
}

/// Ends the recording as Ctrl-C does.
fn interrupt() {
    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
}

/// Returns the last lines of a file that is being written.
fn last_lines(path: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let from = bytes.saturating_sub(PRINTED_BYTES);
        let mut last = vec![0; (bytes - from) as usize];
        file.read_exact_at(&mut last, from)?;
        Ok(last)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(10)..];
    last.iter().map(|line| (*line).to_owned()).collect()
}
