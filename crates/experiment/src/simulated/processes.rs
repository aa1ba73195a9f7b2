//! The processes of a repetition on the simulated machine: their placement, the objects they share,
//! and their steps as acts.

use std::sync::Arc;

use undertick_cmstar::{
    Act, ChannelId, ClockId, CmAddress as Cm, LockId, Machine, Moment, Os, ProcessId,
};

use super::Simulated;
use super::worker::{ReadyStep, RepetitionState, Worker, WorkerSpec};
use crate::script::{Placement, Plan, Process, Step, Verb};
use crate::{Cell, Mark, Numbering};

/// The Cm of every replica of every process, counted from 0.
pub(super) fn placements(machine: &Simulated, plan: &Plan) -> Vec<Vec<usize>> {
    let topology = &machine.parameters.topology;
    let (clusters, each) = (topology.clusters, topology.cms_per_cluster);
    let clock_cms: Vec<usize> = (topology.clocks.iter())
        .map(|c| (c.cluster - 1) * each + c.cm - 1)
        .collect();
    let mut used = vec![0_u32; clusters * each];
    for cm in clock_cms {
        used[cm] += 1; // last of all
    }
    let mut assigned: Vec<Vec<Option<usize>>> = (plan.processes.iter())
        .map(|p| vec![None; p.replicas as usize])
        .collect();
    // Fixed places first: free ones avoid them.
    for (p, process) in plan.processes.iter().enumerate() {
        if let Placement::Cpus(cpus) = &process.place {
            for (replica, choice) in assigned[p].iter_mut().enumerate() {
                let cm = cpus[replica % cpus.len()].min(used.len() - 1);
                used[cm] += 1;
                *choice = Some(cm);
            }
        }
    }
    // Places that refer to others come after these; scripts contain no cycles.
    for _ in 0..=plan.processes.len() {
        for (p, process) in plan.processes.iter().enumerate() {
            for replica in 0..process.replicas as usize {
                if assigned[p][replica].is_some() {
                    continue;
                }
                let of = |other: usize| {
                    let all = &assigned[other];
                    all[replica.min(all.len() - 1)]
                };
                // Replica n of all processes is in one cluster, on the next free Cm.
                let free = |cluster: usize, not: Option<usize>| {
                    let cms = (cluster * each..(cluster + 1) * each).filter(|cm| Some(*cm) != not);
                    cms.min_by_key(|cm| used[*cm])
                };
                let choice = match process.place {
                    Placement::Any | Placement::Cpus(_) => free(replica % clusters, None),
                    Placement::Cluster(cluster) => free(cluster.min(clusters - 1), None),
                    Placement::SameCpu(other) | Placement::SameCore(other) => of(other),
                    Placement::OtherCpu(other) | Placement::OtherCore(other) => {
                        of(other).and_then(|cm| free(cm / each, Some(cm)))
                    }
                };
                if let Some(cm) = choice {
                    used[cm] += 1;
                    assigned[p][replica] = Some(cm);
                }
            }
        }
    }
    (assigned.into_iter())
        .map(|all| all.into_iter().map(|choice| choice.unwrap_or(0)).collect())
        .collect()
}

/// Objects that replica n of one process shares with replica n of the others.
struct ReplicaGroup {
    channels: Vec<ChannelId>,
    /// Cluster of the sender of each channel, from 1.
    senders: Vec<usize>,
    /// Processes by their index.
    processes: Vec<ProcessId>,
}

/// Starts every process of a repetition on the machine; returns them with their index and replica.
pub(super) fn start(
    on: &mut Machine<Worker>,
    machine: &Simulated,
    plan: &Plan,
    (numbering, cell): (&Numbering, Cell),
    state: &Arc<RepetitionState>,
) -> Vec<(usize, usize, ProcessId)> {
    let placements = placements(machine, plan);
    let each = on.topology().cms_per_cluster;
    let place = |cm: usize| Cm::new(cm / each + 1, cm % each + 1);
    let locks: Vec<LockId> = plan.locks.iter().map(|_| on.lock(1)).collect();
    let order: Vec<(usize, usize)> = (plan.processes.iter().enumerate())
        .flat_map(|(p, process)| (0..process.replicas as usize).map(move |r| (p, r)))
        .collect();
    // Processes are numbered in the order in which they start.
    let number = |p: usize, replica: usize| {
        let all = plan.processes[p].replicas as usize;
        let wanted = (p, replica.min(all - 1));
        let found = order.iter().position(|one| *one == wanted);
        ProcessId(found.unwrap_or(0) as u32)
    };
    let replicas = plan.processes.iter().map(|p| p.replicas).max().unwrap_or(1) as usize;
    let groups: Vec<ReplicaGroup> = (0..replicas)
        .map(|replica| {
            let senders: Vec<usize> = (0..plan.channels.len())
                .map(|channel| {
                    let sender = sender(plan, channel);
                    let assigned = &placements[sender];
                    place(assigned[replica.min(assigned.len() - 1)]).cluster
                })
                .collect();
            ReplicaGroup {
                channels: senders.iter().map(|cluster| on.channel(*cluster)).collect(),
                senders,
                processes: (0..plan.processes.len())
                    .map(|p| number(p, replica))
                    .collect(),
            }
        })
        .collect();
    let leader = plan
        .processes
        .iter()
        .position(|p| p.measured && !p.background);
    let mut started = Vec::new();
    for &(p, replica) in &order {
        let process = &plan.processes[p];
        let acts = Acts {
            plan,
            group: &groups[replica],
            locks: &locks,
            os: machine.os,
            replica,
        };
        let cm = placements[p][replica];
        let leads = replica == 0 && p == leader.unwrap_or(0);
        let spec = worker_spec(machine, &acts, process, (numbering, cell, p), leads, cm);
        let worker = Worker::new(spec, Arc::clone(state));
        let id = match process.background {
            true => on.start_background(place(cm), Moment::START, worker),
            false => on.start(place(cm), Moment::START, worker),
        };
        started.push((p, replica, id));
    }
    started
}

/// The process that sends over a channel.
fn sender(plan: &Plan, wanted: usize) -> usize {
    let sends = |p: &Process| {
        let mut verbs = p.steps.iter().map(|s| &s.verb);
        verbs.any(|v| matches!(v, Verb::Send { channel, .. } if *channel == wanted))
    };
    plan.processes.iter().position(sends).unwrap_or(0)
}

fn worker_spec(
    machine: &Simulated,
    acts: &Acts<'_>,
    process: &Process,
    (numbering, cell, p): (&Numbering, Cell, usize),
    leads: bool,
    cm: usize,
) -> WorkerSpec {
    let plan = acts.plan;
    let event = |mark| numbering.event(plan, cell, p, mark);
    let ready = |step: usize| ReadyStep {
        acts: acts.for_step(&process.steps[step]),
        event: event(Mark::Step(step)),
        timed: process.steps[step].timed,
    };
    let null = |mark| ReadyStep {
        acts: vec![Act::Null],
        event: event(mark),
        timed: true,
    };
    let mut before: Vec<ReadyStep> = (0..process.loop_to).map(ready).collect();
    if process.starts_blocked {
        let blocks =
            |step: &Step| matches!(step.verb, Verb::Block | Verb::Wait | Verb::Receive { .. });
        // A wait needs its events, so a process that starts blocked waits for a wakeup instead.
        if let Some(last) = process.steps.iter().rposition(blocks) {
            let mut first = ready(last);
            if process.steps[last].verb == Verb::Wait {
                first.acts = vec![Act::Block];
            }
            before.push(first);
        }
    }
    let mut pass = vec![null(Mark::NullBefore)];
    pass.extend((process.loop_to..process.steps.len()).map(ready));
    pass.push(null(Mark::NullAfter));
    WorkerSpec {
        leads,
        measured: process.measured && acts.replica == 0,
        background: process.background,
        around: plan.stamps == crate::script::Stamps::Around,
        between: event(Mark::Loop),
        every_ns: process.every.map(|d| d.as_nanos() as u64),
        after_ns: process.after.map_or(0, |d| d.as_nanos() as u64),
        length: plan.length,
        warm_up: plan.warm_up,
        before,
        pass,
        clock: ClockId(machine.parameters.workload.clock),
        routine: machine.routine,
        tick_ns: machine.tick_ns(),
        cpu: cm as u16,
        seed: u64::from(cell.repetition) << 32 | (acts.replica as u64) << 16 | (p as u64) << 1,
    }
}

/// Turns steps into acts.
struct Acts<'a> {
    plan: &'a Plan,
    group: &'a ReplicaGroup,
    locks: &'a [LockId],
    os: Os,
    replica: usize,
}

impl Acts<'_> {
    fn for_step(&self, step: &Step) -> Vec<Act> {
        // Replicas have different events.
        let own = |event: u32| event.wrapping_mul(64).wrapping_add(self.replica as u32);
        let words = |words: u64| u32::try_from(words).unwrap_or(u32::MAX);
        let act = match &step.verb {
            Verb::Work { ns } => Act::Work { ns: *ns as u64 },
            Verb::Turns { turns } => Act::Turns { turns: *turns },
            Verb::Sleep { ns } => Act::Sleep { ns: *ns as u64 },
            Verb::Yield => Act::Yield,
            Verb::RunOut => Act::RunOut,
            Verb::Lock { lock } => Act::Lock(self.locks[*lock]),
            Verb::Unlock { lock } => Act::Unlock(self.locks[*lock]),
            Verb::LockUnlock { lock, times } => {
                let lock = self.locks[*lock];
                return [Act::Lock(lock), Act::Unlock(lock)].repeat(*times as usize);
            }
            Verb::Wakeup { process } => Act::Wakeup(self.group.processes[*process]),
            Verb::Block => Act::Block,
            Verb::Notify { event } => Act::Notify(own(*event)),
            Verb::AddEvent { event } => Act::AddEvent(own(*event)),
            Verb::DelEvent { event } => Act::DelEvent(own(*event)),
            Verb::Wait => Act::Wait,
            Verb::UntilBlocked { process } => Act::UntilBlocked(self.group.processes[*process]),
            Verb::Send { channel, words: n } => Act::Send {
                channel: self.group.channels[*channel],
                words: words(*n).max(1),
                tag: 0,
            },
            Verb::Receive { channel } => Act::Receive {
                channel: self.group.channels[*channel],
            },
            Verb::Prepare { words: n } => Act::Prepare { words: words(*n) },
            Verb::Access { words: n } => return self.access(step, words(*n)),
            _ => Act::Null,
        };
        vec![act]
    }

    /// Under StarOS a message is a capability, and its words stay in the sender's memory; under
    /// Medusa they are copied with it.
    fn access(&self, step: &Step, words: u32) -> Vec<Act> {
        let is_own = |p: &&Process| p.steps.iter().any(|s| std::ptr::eq(s, step));
        let own = self.plan.processes.iter().find(is_own);
        let received = own.and_then(|p| {
            let mut verbs = p.steps.iter().map(|s| &s.verb);
            verbs.find_map(|v| match v {
                Verb::Receive { channel } => Some(*channel),
                _ => None,
            })
        });
        match (words, received, self.os) {
            (0, ..) => vec![Act::Null],
            (_, Some(channel), Os::StarOs) => vec![Act::Access {
                cluster: self.group.senders[channel],
                words,
            }],
            _ => vec![Act::Prepare { words }],
        }
    }
}
