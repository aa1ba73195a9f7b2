//! What one call spent its time on.

use undertick_analyze::watch::Call;
use undertick_analyze::watch::detail::Inside;
use undertick_document::explanation::PartCause;
use undertick_evidence::{Cause, Evidence, Piece};
use undertick_format::schema::off;

use super::switches::Switches;

/// Causes of the kernel, in the order of the document.
pub(super) const KERNEL: [PartCause; 11] = [
    PartCause::Preempted,
    PartCause::OwnThread,
    PartCause::Switched,
    PartCause::Waited,
    PartCause::Blocked,
    PartCause::Stopped,
    PartCause::Queued,
    PartCause::Interrupt,
    PartCause::SoftInterrupt,
    PartCause::OwnSoftInterrupt,
    PartCause::Fault,
];

/// Longest CPU time of a fault before it waits for a disk, us.
const LONGEST_FAULT_US: i64 = 100;

/// How often one cause hit a call, for how long, and which thread did it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hits {
    pub(super) ticks: i64,
    pub(super) n: u64,
    /// The thread that took most of it, with its ticks; thread 0 is an interrupt. `None`: unknown.
    pub(super) by_thread: Option<(i64, i32)>,
}

/// The time of one call: what the kernel's events took, the spans inside, and the rest.
#[derive(Clone, Debug)]
pub(super) struct Spent {
    pub(super) elapsed: i64,
    /// By the causes of [`KERNEL`].
    pub(super) kernel: [Hits; KERNEL.len()],
    /// Page faults of which it is not known how long they took.
    pub(super) faults: u64,
    pub(super) inside: Vec<Inside>,
    /// Its time on the CPU outside of the spans inside.
    pub(super) own: i64,
}

/// What is known of the kernel's events.
pub(super) struct Kernel<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) switches: &'a Switches,
}

impl Kernel<'_> {
    /// Divides the time of a call of that thread; `None` if it was not looked at closely.
    pub(super) fn spent(&self, tid: i32, call: &Call) -> Option<Spent> {
        let detail = call.detail.as_ref()?;
        let mut spent = Spent {
            elapsed: detail.elapsed,
            kernel: [Hits::default(); KERNEL.len()],
            faults: 0,
            inside: detail.inside.clone(),
            own: 0,
        };
        let error = self.evidence.error();
        let pieces = self.evidence.pieces(tid, call.start, detail.end);
        let stays = |of: &&Piece| of.cause != Cause::Migrated;
        for (at, piece) in pieces.iter().enumerate() {
            let ticks = piece.end.saturating_sub(piece.start);
            let next = || self.switches.next(tid, piece.start, error);
            match piece.cause {
                Cause::Fault if ticks == 0 => {
                    let following = pieces[at + 1..].iter().find(stays);
                    match following.and_then(|of| self.fault_until(tid, piece.start, of)) {
                        Some(ticks) if spent.inside.is_empty() => {
                            spent.add(PartCause::Fault, ticks, None);
                        }
                        // The time of spans inside has it.
                        _ => spent.faults += 1,
                    }
                }
                Cause::Migrated => {}
                Cause::Waited => {
                    let woken = self.switches.woken(tid, piece.start, piece.end);
                    let until = woken.map_or(piece.end, |woken| woken.0);
                    let waker = woken.map(|woken| woken.1);
                    if until > piece.start {
                        let ticks = until.saturating_sub(piece.start);
                        let cause = match self.switches.why(tid, piece.start, error) {
                            Some(off::BLOCKED) => PartCause::Blocked,
                            Some(off::STOPPED) => PartCause::Stopped,
                            _ => PartCause::Waited,
                        };
                        spent.add(cause, ticks, waker);
                    }
                    if until < piece.end {
                        // No row shows which thread has the CPU later on.
                        let next = (until == piece.start).then(next).flatten();
                        let ticks = piece.end.saturating_sub(until);
                        spent.add(PartCause::Queued, ticks, next);
                    }
                }
                Cause::Preempted => spent.add(PartCause::Preempted, ticks, next()),
                Cause::OwnThread => spent.add(PartCause::OwnThread, ticks, next()),
                Cause::Switched => spent.add(PartCause::Switched, ticks, next()),
                Cause::Interrupt => spent.add(PartCause::Interrupt, ticks, None),
                Cause::SoftInterrupt => spent.add(PartCause::SoftInterrupt, ticks, None),
                Cause::OwnSoftInterrupt => spent.add(PartCause::OwnSoftInterrupt, ticks, None),
                Cause::Fault => spent.add(PartCause::Fault, ticks, None),
            }
        }
        let kernel: i64 = (spent.kernel.iter()).fold(0, |all, of| all.saturating_add(of.ticks));
        let inside: i64 = (spent.inside.iter()).fold(0, |all, of| all.saturating_add(of.ticks));
        spent.own = (spent.elapsed.saturating_sub(kernel)).saturating_sub(inside);
        Some(spent)
    }

    /// Time of a fault at `start` until its thread blocks in the kernel, if it does so next: in the fault,
    /// without having run its program since, unless it takes too long for that.
    fn fault_until(&self, tid: i32, start: i64, following: &Piece) -> Option<i64> {
        let why = || {
            self.switches
                .why(tid, following.start, self.evidence.error())
        };
        let ticks = following.start.saturating_sub(start);
        let is_short = ticks <= self.evidence.ticks_of_us(LONGEST_FAULT_US);
        (is_short && following.cause == Cause::Waited && why() == Some(off::BLOCKED))
            .then_some(ticks)
    }
}

impl Spent {
    fn add(&mut self, cause: PartCause, ticks: i64, by_thread: Option<i32>) {
        let at = KERNEL.iter().position(|of| *of == cause).unwrap_or(0);
        let hits = &mut self.kernel[at];
        hits.ticks = hits.ticks.saturating_add(ticks);
        hits.n += 1;
        let is_most = |before: (i64, i32)| ticks > before.0;
        if hits.by_thread.is_none_or(is_most) {
            hits.by_thread = by_thread.map(|tid| (ticks, tid)).or(hits.by_thread);
        }
    }
}
