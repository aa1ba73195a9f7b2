//! The state that the processes of a repetition share, and the worker of each replica.

use std::collections::BTreeSet;
use std::io;

use super::Act;
use super::access::Desk;
use super::channel::Channel;
use super::control::{Control, Member};
use super::fork::Children;
use super::lock::Lock;
use super::memory::Region;
use super::repetition_state::{Position, RepetitionState};
use super::shared_memory::SharedMemory;
use super::wait::Blocked;
use super::worker::{ReadyStep, Worker};
use super::{clock_call, work};
use crate::script::{Plan, Stamps, Step, Verb, Words as _};
use crate::{Cell, Mark, Numbering};

/// Locks for all processes; channels and control for each replica.
pub(crate) struct SharedState {
    locks: Vec<Lock>,
    groups: Vec<ReplicaGroup>,
}

/// Objects that replica n of one process shares with replica n of the others.
struct ReplicaGroup {
    channels: Vec<Channel>,
    control: Option<Control>,
    blocked: Blocked,
}

/// The specification of the worker that is one replica of a process.
pub(crate) struct WorkerSpec {
    pub(crate) plan: Plan,
    pub(crate) process: usize,
    pub(crate) replica: usize,
    /// Index of the replica among all replicas of all processes.
    pub(crate) user: usize,
    pub(crate) events: EventNumbers,
    pub(crate) seed: u64,
}

/// Event numbers of a process.
pub(crate) struct EventNumbers {
    between: u16,
    null_before: u16,
    null_after: u16,
    steps: Vec<u16>,
}

/// The event numbers of a process in a repetition.
pub(crate) fn event_numbers(
    plan: &Plan,
    numbering: &Numbering,
    cell: Cell,
    process: usize,
) -> EventNumbers {
    let event = |mark| numbering.event(plan, cell, process, mark);
    EventNumbers {
        between: event(Mark::Loop),
        null_before: event(Mark::NullBefore),
        null_after: event(Mark::NullAfter),
        steps: (0..plan.processes[process].steps.len())
            .map(|s| event(Mark::Step(s)))
            .collect(),
    }
}

impl SharedState {
    /// Creates all shared objects. They are never freed, because the process that creates them
    /// performs one repetition only.
    pub(crate) fn new(plan: &Plan, memory: &SharedMemory) -> io::Result<&'static Self> {
        let users: usize = plan.processes.iter().map(|p| p.replicas as usize).sum();
        let locks = (plan.locks.iter())
            .map(|lock| Lock::create(lock.kind, memory, users))
            .collect::<io::Result<_>>()?;
        let replicas = plan.processes.iter().map(|p| p.replicas).max().unwrap_or(1);
        let groups = (0..replicas)
            .map(|_| ReplicaGroup::new(plan, memory))
            .collect::<io::Result<_>>()?;
        Ok(Box::leak(Box::new(Self { locks, groups })))
    }

    /// Releases all waits, present and future.
    pub(crate) fn release_all(&self) {
        for control in self
            .groups
            .iter()
            .filter_map(|group| group.control.as_ref())
        {
            control.release_all();
        }
    }

    /// Makes the worker with this specification; must be called in the worker's own process or
    /// thread.
    pub(crate) fn worker(
        &'static self,
        spec: WorkerSpec,
        state: &'static RepetitionState,
        at: &'static Position,
    ) -> io::Result<Worker> {
        let plan = &spec.plan;
        let process = &plan.processes[spec.process];
        let mut builder = StepBuilder::new(self, &spec)?;
        let mut before = Vec::new();
        let mut pass = Vec::new();
        let ready = |act: Act, event: u16, timed: bool| ReadyStep { act, event, timed };
        pass.push(ready(work::null(), spec.events.null_before, true));
        for (s, step) in process.steps.iter().enumerate() {
            let act = builder.act(step)?;
            let part_of = if s < process.loop_to {
                &mut before
            } else {
                &mut pass
            };
            part_of.push(ready(act, spec.events.steps[s], step.timed));
        }
        pass.push(ready(work::null(), spec.events.null_after, true));
        if process.starts_blocked {
            let (s, act) = builder.start(&process.steps)?;
            before.push(ready(act, spec.events.steps[s], true));
        }
        Ok(Worker {
            state,
            at,
            leads: spec.replica == 0 && spec.process == leader(plan),
            measured: process.measured && spec.replica == 0,
            background: process.background,
            around: plan.stamps == Stamps::Around,
            between: spec.events.between,
            every: process.every,
            after: process.after,
            length: plan.length,
            warm_up: plan.warm_up,
            before,
            pass,
            seed: spec.seed,
        })
    }
}

/// Index of the process that decides when recording begins: the first measured one.
fn leader(plan: &Plan) -> usize {
    let leads = |p: &crate::script::Process| p.measured && !p.background;
    plan.processes.iter().position(leads).unwrap_or(0)
}

impl ReplicaGroup {
    fn new(plan: &Plan, memory: &SharedMemory) -> io::Result<Self> {
        let steps = || plan.processes.iter().flat_map(|p| &p.steps);
        let channels = (plan.channels.iter().enumerate())
            .map(|(c, channel)| {
                let sends: Vec<u64> = steps()
                    .filter_map(|step| match step.verb {
                        Verb::Send { channel, words } if channel == c => Some(words),
                        _ => None,
                    })
                    .collect();
                Channel::create(channel.kind, &sends, memory)
            })
            .collect::<io::Result<_>>()?;
        let events: BTreeSet<u32> = steps()
            .filter_map(|step| match step.verb {
                Verb::AddEvent { event } | Verb::DelEvent { event } | Verb::Notify { event } => {
                    Some(event)
                }
                _ => None,
            })
            .collect();
        let events: Vec<u32> = events.into_iter().collect();
        let watched: Vec<bool> = (0..plan.processes.len())
            .map(|p| steps().any(|step| step.verb == Verb::UntilBlocked { process: p }))
            .collect();
        let blocked = Blocked::create(&watched, memory);
        let control = plan
            .control
            .map(|backend| Control::create(backend, blocked, &events, memory))
            .transpose()?;
        Ok(Self {
            channels,
            control,
            blocked,
        })
    }
}

/// Builds the acts of one replica from its steps.
struct StepBuilder<'a> {
    shared: &'static SharedState,
    spec: &'a WorkerSpec,
    group: &'static ReplicaGroup,
    member: Option<Box<dyn Member>>,
    desk: Desk,
    children: Children,
    regions: Vec<Region>,
}

impl<'a> StepBuilder<'a> {
    fn new(shared: &'static SharedState, spec: &'a WorkerSpec) -> io::Result<Self> {
        let group = &shared.groups[spec.replica];
        let regions = (spec.plan.regions.iter())
            .map(|region| Region::new(&region.name, region.bytes, region.kind, region.pages))
            .collect::<io::Result<Vec<_>>>()?;
        for (ready, region) in spec.plan.regions.iter().zip(&regions) {
            if ready.ready && uses(spec, ready) {
                (region.create())();
                (region.touch())();
            }
        }
        Ok(Self {
            shared,
            spec,
            group,
            member: group.control.as_ref().map(|c| c.member(spec.process)),
            desk: Desk::new(),
            children: Children::new(),
            regions,
        })
    }

    fn act(&mut self, step: &Step) -> io::Result<Act> {
        let lock = |lock: usize| self.shared.locks[lock];
        Ok(match step.verb {
            Verb::Null => work::null(),
            Verb::Work { ns } => work::work(ns),
            Verb::Turns { turns } => Box::new(move || crate::counted_work::turns(turns)),
            Verb::Record(kind) => super::recording::record(kind),
            Verb::Sleep { ns } => work::sleep(ns),
            Verb::Yield => work::offer(),
            Verb::RunOut => work::run_out(),
            Verb::Call(call) => work::call(call),
            Verb::Read(clock) => clock_call::read(clock).ok_or_else(|| {
                io::Error::other(format!(
                    "the clock {:?} cannot be read on this machine",
                    clock.word()
                ))
            })?,
            Verb::Lock { lock: l } => lock(l).acts(self.spec.user).0,
            Verb::Unlock { lock: l } => lock(l).acts(self.spec.user).1,
            Verb::LockUnlock { lock: l, times } => lock(l).lock_unlock(self.spec.user, times),
            Verb::Wakeup { process } => self.member()?.wakeup(process),
            Verb::Block => self.member()?.block(),
            Verb::Notify { event } => self.member()?.notify(event),
            Verb::AddEvent { event } => self.member()?.add_event(event),
            Verb::DelEvent { event } => self.member()?.del_event(event),
            Verb::Wait => self.member()?.wait(),
            Verb::UntilBlocked { process } => match &self.member {
                Some(member) => member.until_blocked(process, self.spec.plan.settle),
                None => self.group.blocked.until(process, self.spec.plan.settle),
            },
            Verb::Send { channel, words } => self.group.channels[channel].sender(words, &self.desk),
            Verb::Receive { channel } => {
                let sign = self.group.blocked.sign(self.spec.process);
                self.group.channels[channel].receiver(sign, &self.desk)
            }
            Verb::Prepare { words } => self.desk.prepare(words),
            Verb::Access { words } => self.desk.access(words),
            Verb::Fork(kind) => self.children.make(kind)?,
            Verb::Reap => self.children.reap(),
            Verb::Create { region } => self.regions[region].create(),
            Verb::Touch { region } => self.regions[region].touch(),
            Verb::Fill { region } => self.regions[region].fill(),
            Verb::Free { region } => self.regions[region].free(),
        })
    }

    /// Returns the starting point inside the last blocking step, with the step's index.
    fn start(&mut self, steps: &[Step]) -> io::Result<(usize, Act)> {
        let blocks =
            |step: &Step| matches!(step.verb, Verb::Block | Verb::Wait | Verb::Receive { .. });
        let last = steps.iter().rposition(blocks);
        let last = last.ok_or_else(|| io::Error::other("no step to be blocked in at the start"))?;
        let act = match steps[last].verb {
            Verb::Receive { .. } => self.act(&steps[last])?,
            _ => self.member()?.block(),
        };
        Ok((last, act))
    }

    fn member(&self) -> io::Result<&dyn Member> {
        let none = || io::Error::other("no backend for wakeup, block, notify and wait");
        self.member.as_deref().ok_or_else(none)
    }
}

/// Whether the process uses the region: it touches the region, or forks with the region in its
/// memory.
fn uses(spec: &WorkerSpec, region: &crate::script::Region) -> bool {
    let plan = &spec.plan;
    let steps = &plan.processes[spec.process].steps;
    steps.iter().any(|step| match step.verb {
        Verb::Fork(_) => true,
        Verb::Touch { region: r } | Verb::Fill { region: r } => plan.regions[r] == *region,
        _ => false,
    })
}
