//! Two processes pass a byte to and fro over a Unix socket, both on one CPU, as in Beilner's
//! figure 16. Twelve points read an adjustable clock, and the fine clock beside it:
//!
//! | point | process | where |
//! |---|---|---|
//! | 1, 7 | first, second | before the send |
//! | 2, 8 | | after it |
//! | 3, 9 | | before the receive |
//! | 4, 10 | | it found nothing: the process must give its CPU away |
//! | 5, 11 | second, first | woken by the message |
//! | 6, 12 | | it is received |
//!
//! The kernel's part of a send is (1,2) and (7,8), that of a receive (3,4), (5,6), (9,10), (11,12),
//! and that of a switch (4,5), (10,11). The rest is user code, which does counted work of the
//! published duration. The figure presupposes that a process which is woken runs when its waker
//! gives the CPU away, and not before. So both run as `SCHED_FIFO`, where this is permitted, else as
//! `SCHED_BATCH` with a long slice, which the scheduler does not always honour.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::RecvFlags;
use undertick_clock::adjustable::{AdjustableClock, Page};
use undertick_clock::cpus;
use undertick_clock::slow::Fine;
use undertick_experiment::linux::set_policy;
use undertick_experiment::script::Policy;

use undertick_meter::slow::Worker;

/// User code in (2,3), (6,7), (8,9) and (12,1), ns: the published means.
pub const USER_NS: [f64; 4] = [83e3, 144e3, 88e3, 292e3];
/// Cycles at the begin of a repetition that do not count.
pub const WARM_UP: u64 = 50;
/// Number of points in a cycle.
pub const POINTS: usize = 12;
/// Number of points in the second process: 5 to 10.
const THERE: usize = 6;
/// Number of cycles between two calls that decide whether to continue.
const BATCH: u64 = 64;
const BYTES: usize = 16;
/// The longest slice that the scheduler grants.
const LONGEST_SLICE_NS: u64 = 100_000_000;

/// The message, and the word that ends a repetition.
const PING: u8 = 1;
const END: u8 = 2;

/// What to measure.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub cycles: u64,
    pub repetitions: u64,
    pub tick_ns: u64,
    pub partner_command: Vec<OsString>,
}

/// A reading at a point: ticks of the slow clock, and of the fine one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reading {
    pub ticks: u64,
    pub fine: u64,
}

/// The readings of one repetition: all points of each cycle, and the first
/// point of the one after.
pub(super) struct Repetition {
    pub cycles: Vec<[Reading; POINTS]>,
    pub end: Reading,
}

/// The result of the experiment.
pub(super) struct Run {
    pub repetitions: Vec<Repetition>,
    pub tick_ns: f64,
    pub fine_ns: f64,
    /// CPU time of the clock's thread over elapsed time.
    pub clock_share: f64,
    /// Ticks that the clock did not show individually.
    pub clock_missed: u64,
    /// Whether the clock's thread had its own CPU.
    pub apart: bool,
    /// The scheduling policy of the two processes.
    pub policy: &'static str,
    pub interrupted: bool,
}

/// Why the experiment could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The system refused something.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
    /// There is no fine clock for the truth.
    #[error("no fine clock here to tell the truth beside the slow one; see undertick clock")]
    NoFineClock,
    /// Ended before two repetitions were complete.
    #[error("ended before two repetitions were complete")]
    TooShort,
}

/// Runs the experiment on a separate thread, which stays on one CPU.
pub(super) fn run(setup: &Setup, go_on: impl FnMut(f64) -> bool + Send) -> Result<Run, Failed> {
    let measured = std::thread::scope(|scope| {
        let handle = scope.spawn(|| measured(setup, go_on));
        handle.join()
    });
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn measured(setup: &Setup, mut go_on: impl FnMut(f64) -> bool) -> Result<Run, Failed> {
    let io = |what| move |error| Failed::Io(what, error);
    let fine = Fine::best().ok_or(Failed::NoFineClock)?;
    let allowed = cpus::allowed();
    let (first, last) = (allowed[0], allowed[allowed.len() - 1]);
    let clock = AdjustableClock::start(setup.tick_ns, Some(first))
        .map_err(io("the adjustable clock cannot be started"))?;
    cpus::pin(last).map_err(io("cannot stay on one CPU"))?;
    // On one CPU a real-time process would keep the clock's thread from it.
    let policy = match first != last && set_policy(Policy::Fifo).is_ok() {
        true => "SCHED_FIFO",
        false => {
            run_in_batch().map_err(io("cannot run as SCHED_BATCH"))?;
            "SCHED_BATCH"
        }
    };
    let (here, there) = UnixStream::pair().map_err(io("no pair of sockets"))?;
    let page = || clock.page_fd().try_clone_to_owned();
    let partner = start(
        &setup.partner_command,
        there,
        page().map_err(io("the clock's page"))?,
    )
    .map_err(io("the second process cannot be started"))?;
    let mut side = Side {
        page: Page::map(page().map_err(io("the clock's page"))?).map_err(io("the clock's page"))?,
        fine,
        worker: Worker::new(&[]).map_err(io("work"))?,
        channel: Channel(here),
    };
    let mut repetitions = Vec::new();
    let mut interrupted = false;
    for index in 0..setup.repetitions {
        let share = |cycle: u64| {
            (index as f64 + cycle as f64 / (setup.cycles + WARM_UP) as f64)
                / setup.repetitions as f64
        };
        let found = repetition(&mut side, setup.cycles, |cycle| go_on(share(cycle)))
            .map_err(io("the second process"))?;
        match found {
            Some(found) => repetitions.push(found),
            None => {
                interrupted = true;
                break;
            }
        }
    }
    drop(side);
    partner.end();
    if repetitions.len() < 2 {
        return Err(Failed::TooShort);
    }
    let cost = clock.cost();
    Ok(Run {
        repetitions,
        tick_ns: setup.tick_ns as f64,
        fine_ns: fine.rate().ns_per_tick(),
        clock_share: cost.share(),
        clock_missed: cost.missed,
        apart: first != last,
        policy,
        interrupted,
    })
}

/// The woken thread then waits until this thread waits, because batch threads preempt no thread.
/// The slice is as long as possible; otherwise the kernel would find it used up every few cycles
/// during the very send that wakes the other thread.
fn run_in_batch() -> io::Result<()> {
    // SAFETY: all zeros is a valid `sched_attr`.
    let mut attributes = unsafe { core::mem::zeroed::<libc::sched_attr>() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_BATCH as u32;
    // Kernels before 6.12 ignore this slice.
    attributes.sched_runtime = LONGEST_SLICE_NS;
    // SAFETY: the kernel reads the live local; this thread only.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The second process; it ends when its socket closes, and is reaped.
struct Partner(Child);

impl Partner {
    fn end(mut self) {
        let _ = self.0.wait();
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the process with the socket as its standard input and the clock's page as its standard
/// output. It has its own process group, because Ctrl-C is meant for this process.
fn start(command: &[OsString], socket: UnixStream, page: OwnedFd) -> io::Result<Partner> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    Command::new(program)
        .args(arguments)
        .stdin(OwnedFd::from(socket))
        .stdout(page)
        .process_group(0)
        .spawn()
        .map(Partner)
}

/// The second process: `__reproduce-partner`.
///
/// # Errors
/// Its standard input is not a socket, or its standard output is not a clock page.
pub fn partner() -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let page = io::stdout().as_fd().try_clone_to_owned()?;
    let fine = Fine::best().ok_or_else(|| io::Error::other("no fine clock"))?;
    let mut side = Side {
        page: Page::map(page)?,
        fine,
        worker: Worker::new(&[])?,
        channel: Channel(UnixStream::from(socket)),
    };
    let mut kept: Vec<[Reading; THERE]> = Vec::new();
    // The receive of a cycle begins at the end of the one before.
    let mut message = side.channel.wait().and_then(|()| side.channel.receive())?;
    let mut woken = side.read();
    while let Some(byte) = message {
        if byte == END {
            side.channel.0.write_all(&bytes(&kept))?;
            kept.clear();
            message = side.channel.wait().and_then(|()| side.channel.receive())?;
            woken = side.read();
            continue;
        }
        let p6 = side.read();
        side.worker.work(USER_NS[1]);
        let p7 = side.read();
        side.channel.send(PING)?;
        let p8 = side.read();
        side.worker.work(USER_NS[2]);
        let p9 = side.read();
        message = side.channel.receive_now()?;
        let p10 = side.read();
        let p5 = woken;
        woken = p10;
        if message.is_none() {
            side.channel.wait()?;
            woken = side.read();
            message = side.channel.receive()?;
        }
        kept.push([p5, p6, p7, p8, p9, p10]);
    }
    Ok(())
}

/// One of the two processes.
struct Side {
    page: Page,
    fine: Fine,
    worker: Worker,
    channel: Channel,
}

impl Side {
    #[inline]
    fn read(&self) -> Reading {
        Reading {
            // The page outlives a writer that died; the experiment then ends with the socket.
            ticks: self.page.try_read_ticks().unwrap_or(0),
            fine: self.fine.read_ticks(),
        }
    }
}

/// A socket that is polled before a process waits on it.
struct Channel(UnixStream);

impl Channel {
    fn send(&mut self, byte: u8) -> io::Result<()> {
        self.0.write_all(&[byte])
    }

    /// The next byte if it is already there.
    fn receive_now(&self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        match rustix::net::recv(&self.0, &mut byte, RecvFlags::DONTWAIT) {
            Ok((1, _)) => Ok(Some(byte[0])),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the CPU away until data arrives.
    fn wait(&self) -> io::Result<()> {
        loop {
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], None) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The byte that was waited for; `None` at the end.
    fn receive(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok((self.0.read(&mut byte)? == 1).then_some(byte[0]))
    }
}

/// Runs a repetition; `None` if it was ended.
fn repetition(
    side: &mut Side,
    cycles: u64,
    mut go_on: impl FnMut(u64) -> bool,
) -> io::Result<Option<Repetition>> {
    let all = cycles + WARM_UP;
    let mut here: Vec<[Reading; POINTS - THERE]> = Vec::with_capacity(all as usize);
    let mut ended = false;
    for cycle in 0..all {
        here.push(ping(side)?);
        // User code (12,1), which sometimes contains the call that decides whether to continue.
        side.worker.work(USER_NS[3]);
        if cycle % BATCH == 0 && !go_on(cycle) {
            ended = true;
            break;
        }
    }
    let end = side.read();
    side.channel.send(END)?;
    let mut bytes = vec![0; here.len() * THERE * BYTES];
    side.channel.0.read_exact(&mut bytes)?;
    let joined = here.iter().zip(readings(&bytes)).map(|(here, there)| {
        let mut points = [Reading::default(); POINTS];
        points[..4].copy_from_slice(&here[..4]);
        points[4..10].copy_from_slice(&there);
        points[10..].copy_from_slice(&here[4..]);
        points
    });
    let cycles = joined.skip(WARM_UP as usize).collect();
    Ok((!ended).then_some(Repetition { cycles, end }))
}

/// A cycle seen from the first process: points 1 to 4, 11 and 12.
fn ping(side: &mut Side) -> io::Result<[Reading; POINTS - THERE]> {
    let p1 = side.read();
    side.channel.send(PING)?;
    let p2 = side.read();
    side.worker.work(USER_NS[0]);
    let p3 = side.read();
    let early = side.channel.receive_now()?;
    let p4 = side.read();
    let mut p11 = p4;
    if early.is_none() {
        side.channel.wait()?;
        p11 = side.read();
        (side.channel.receive()?).ok_or(io::ErrorKind::UnexpectedEof)?;
    }
    let p12 = side.read();
    Ok([p1, p2, p3, p4, p11, p12])
}

/// The readings as bytes, for transfer to the first process.
fn bytes(kept: &[[Reading; THERE]]) -> Vec<u8> {
    kept.iter()
        .flatten()
        .flat_map(|r| [r.ticks.to_ne_bytes(), r.fine.to_ne_bytes()].concat())
        .collect()
}

fn readings(bytes: &[u8]) -> impl Iterator<Item = [Reading; THERE]> {
    bytes.chunks_exact(THERE * BYTES).map(|cycle| {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&cycle[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        core::array::from_fn(|i| Reading {
            ticks: word(i * BYTES),
            fine: word(i * BYTES + 8),
        })
    })
}
