//! Every act, on a machine without scatter: times added by hand, and effects by what other
//! processes see.

#[path = "support/list.rs"]
mod list;

use list::{
    BESIDE, FAR_NS, FAR_SAMPLED_NS, HERE, LIMIT, List, NEAR_NS, exact, machine, times, when,
};
use undertick_cmstar::{Act, ClockId, CmAddress, Moment, Outcome, ProcessId, Routine, Stopped};

#[test]
fn acts_of_one_process_take_what_their_parts_take() {
    let parameters = exact();
    let mut machine = machine(&parameters);
    let clock = ClockId(0);
    let lock = machine.lock(2);
    let acts = [
        (Act::Null, 8_000),
        (Act::Work { ns: 123_456 }, 123_456),
        (Act::Work { ns: 0 }, 1),
        (Act::Turns { turns: 3 }, 120_000),
        (Act::Fetch { clock, word: 0 }, FAR_NS),
        (
            Act::Fetch {
                clock: ClockId(1),
                word: 1,
            },
            NEAR_NS,
        ),
        (
            Act::Read {
                clock,
                routine: Routine::Four,
            },
            126_000 + 4 * FAR_NS,
        ),
        (
            Act::Read {
                clock,
                routine: Routine::One,
            },
            126_000 + FAR_NS,
        ),
        (
            Act::Read {
                clock,
                routine: Routine::Varying,
            },
            126_000 + 3 * FAR_NS,
        ),
        (
            Act::Read {
                clock,
                routine: Routine::Latched,
            },
            // The second word: 3 us from the memory, 2 on the bus, 1.5 on the Map Bus.
            126_000 + FAR_NS + 6_500,
        ),
        (
            Act::Read {
                clock,
                routine: Routine::Broadcast,
            },
            126_000 + 9_050 + 3_500,
        ),
        (
            Act::Access {
                cluster: 2,
                words: 5,
            },
            1 + 5 * (13_800 + NEAR_NS),
        ),
        (
            Act::Access {
                cluster: 3,
                words: 2,
            },
            1 + 2 * (13_800 + FAR_NS),
        ),
        (
            Act::Access {
                cluster: 2,
                words: 0,
            },
            1,
        ),
        (Act::Prepare { words: 10 }, 120_000),
        (Act::Sleep { ns: 5_000_000 }, 200_000 + 5_000_000),
        (
            Act::SleepUntil {
                until: Moment::START,
            },
            200_000,
        ),
        (Act::Yield, 200_000),
        (Act::Lock(lock), NEAR_NS),
        (Act::Unlock(lock), NEAR_NS),
        (Act::AddEvent(3), 120_000),
        (Act::DelEvent(3), 120_000),
        (Act::Wait, 120_000),
        (Act::Notify(3), 120_000),
        (Act::Wakeup(ProcessId(0)), 300_000),
        // An earlier wakeup makes the block return at once.
        (Act::Block, 300_000),
    ];
    let program = List::new(acts.map(|(act, _)| act));
    let process = machine.start(HERE, Moment::START, program);
    assert_eq!(machine.run(LIMIT), Stopped::AllEnded);
    let expected: Vec<u64> = acts.iter().map(|(_, ns)| *ns).collect();
    assert_eq!(times(&machine, process), expected);
    let input = &machine.program(process).input;
    assert_eq!(input[0].outcome, Outcome::Started);
    let sampled = input[4].now.plus_ns(FAR_SAMPLED_NS);
    let value = sampled.ns() / 2_000;
    assert_eq!(input[5].outcome, Outcome::Word { value, sampled });
    assert_eq!(input[19].outcome, Outcome::Locked { in_vain: 0 });
    assert_eq!(input[24].outcome, Outcome::Notified { count: 0 });
    assert_eq!(input[26].outcome, Outcome::Done);
    assert!(machine.has_ended(process));
}

#[test]
fn a_cm_of_another_speed_works_at_that_speed() {
    let mut parameters = exact();
    parameters.cm.speed_range = 0.046;
    let mut machine = machine(&parameters);
    let addresses = (1..=5).flat_map(|cluster| (1..=10).map(move |cm| CmAddress::new(cluster, cm)));
    let all: Vec<ProcessId> = addresses
        .map(|address| {
            machine.start(
                address,
                Moment::START,
                List::new([Act::Work { ns: 1_000_000 }]),
            )
        })
        .collect();
    machine.run(LIMIT);
    let times: Vec<u64> = all.iter().map(|&p| times(&machine, p)[0]).collect();
    let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    let range = *most as f64 / *least as f64 - 1.0;
    assert!((0.035..=0.046).contains(&range), "{range}");
    assert!((977_000..1_000_000).contains(least) && (1_000_000..1_023_000).contains(most));
}

#[test]
fn two_references_at_once_wait_for_each_other() {
    let parameters = exact();
    let mut machine = machine(&parameters);
    let clock = ClockId(0);
    let fetch = || List::new([Act::Fetch { clock, word: 0 }]);
    // In the same cluster they share Map Bus and own Kmap; they follow at the interval of the
    // slowest shared station, the Kmap of the clock.
    let first = machine.start(HERE, Moment::START, fetch());
    let second = machine.start(BESIDE, Moment::START, fetch());
    // This one is alone, later.
    let third = machine.start(CmAddress::new(3, 1), Moment::from_us(500), fetch());
    machine.run(LIMIT);
    assert_eq!(times(&machine, first), [FAR_NS]);
    // Map Bus 1.5 later, own Kmap 8 later, intercluster buses free, the clock's Kmap 10.4 later;
    // nothing waits on the way back.
    assert_eq!(times(&machine, second), [FAR_NS + 10_400]);
    assert_eq!(times(&machine, third), [FAR_NS]);
    let counts = machine.counts();
    assert_eq!((counts.far, counts.near, counts.own), (3, 0, 0));
    assert_eq!(counts.kmaps[0].busy_ns, 3 * 10_400);
    assert_eq!(counts.kmaps[1].busy_ns, 2 * 14_000);
}

#[test]
fn a_lock_is_held_by_one() {
    let parameters = exact();
    let mut machine = machine(&parameters);
    let lock = machine.lock(3);
    let work = Act::Work { ns: 400_000 };
    let acts = [Act::Lock(lock), work, Act::Unlock(lock)];
    let first = machine.start(HERE, Moment::START, List::new(acts));
    let second = machine.start(BESIDE, Moment::from_us(100), List::new(acts));
    machine.run(LIMIT);
    // The word is free once the unlocking reference of the first process has reached it.
    let freed_us = when(&machine, first, 2) + FAR_SAMPLED_NS as f64 / 1e3;
    let got = machine.program(second).input[1];
    let Outcome::Locked { in_vain } = got.outcome else {
        panic!("{got:?}");
    };
    assert!(in_vain > 4, "{in_vain}");
    // A poll takes a reference and the polling time.
    assert!(
        got.now.us() > freed_us && got.now.us() < freed_us + 150.0,
        "{got:?} {freed_us}"
    );
}

#[test]
fn wakeups_are_kept_for_one_block() {
    let parameters = exact();
    let mut machine = machine(&parameters);
    let sleeper = ProcessId(0);
    let wakes = [
        Act::Work { ns: 5_000_000 },
        Act::Wakeup(sleeper),
        Act::Work { ns: 5_000_000 },
        Act::Wakeup(sleeper),
        Act::Wakeup(sleeper),
    ];
    // Blocks, works for long, blocks: two wakeups have come by then, and one is stored.
    let blocks = [
        Act::Block,
        Act::Work { ns: 20_000_000 },
        Act::Block,
        Act::Block,
    ];
    machine.start(HERE, Moment::START, List::new(blocks));
    machine.start(BESIDE, Moment::START, List::new(wakes));
    assert_eq!(machine.run(LIMIT), Stopped::Stuck);
    assert_eq!(when(&machine, sleeper, 1), 5_000.0 + 300.0);
    assert_eq!(when(&machine, sleeper, 3), 5_300.0 + 20_000.0 + 300.0);
    assert_eq!(machine.program(sleeper).input.len(), 4);
    assert_eq!(machine.doing(sleeper), "blocked");
}

#[test]
fn a_notify_reaches_who_added_the_event_once() {
    let parameters = exact();
    let mut machine = machine(&parameters);
    let waits = [
        Act::AddEvent(10),
        Act::AddEvent(11),
        Act::Wait,
        // Both events were removed, so there is nothing to wait for.
        Act::Wait,
        Act::AddEvent(11),
        Act::Work { ns: 10_000_000 },
        // The event was notified during the work.
        Act::Wait,
        Act::AddEvent(10),
        Act::DelEvent(10),
        Act::Wait,
    ];
    let notifies = [
        Act::Work { ns: 3_000_000 },
        Act::Notify(10),
        Act::Notify(10),
        Act::Work { ns: 3_000_000 },
        Act::Notify(11),
        Act::Notify(12),
    ];
    let one = machine.start(HERE, Moment::START, List::new(waits));
    let other = machine.start(CmAddress::new(4, 1), Moment::START, List::new(waits));
    let teller = machine.start(BESIDE, Moment::START, List::new(notifies));
    assert_eq!(machine.run(LIMIT), Stopped::AllEnded);
    let counts: Vec<u32> = (machine.program(teller).input.iter())
        .filter_map(|input| match input.outcome {
            Outcome::Notified { count } => Some(count),
            _ => None,
        })
        .collect();
    assert_eq!(counts, [2, 0, 2, 0]);
    // 120 for the notify, and 100 for each process that it reached.
    assert_eq!(times(&machine, teller)[1..3], [120_000 + 200_000, 120_000]);
    for waiter in [one, other] {
        assert_eq!(when(&machine, waiter, 3), 3_000.0 + 120.0);
        assert_eq!(
            times(&machine, waiter)[3..],
            [
                120_000, 120_000, 10_000_000, 120_000, 120_000, 120_000, 120_000
            ]
        );
    }
}

#[test]
fn spinning_ends_when_the_other_is_blocked_or_the_flag_is_up() {
    let parameters = exact();
    let mut machine = machine(&parameters);
    let flag = machine.flag(HERE);
    let other = ProcessId(1);
    let watches = [Act::UntilBlocked(other), Act::Await(flag), Act::Await(flag)];
    let raises = [
        Act::Work { ns: 1_000_000 },
        Act::Sleep { ns: 1_000_000 },
        Act::Raise(flag),
        Act::Raise(flag),
    ];
    let watcher = machine.start(HERE, Moment::START, List::new(watches));
    machine.start(BESIDE, Moment::START, List::new(raises));
    assert_eq!(machine.run(LIMIT), Stopped::AllEnded);
    // Asleep from 1200 on; the check of that moment was entered later.
    assert_eq!(when(&machine, watcher, 1), 1_200.0);
    // The flag is set at 2200 plus the time until a reference within the cluster reaches it.
    let raised = 2_200.0 + (NEAR_NS - 1_500 - 2_000) as f64 / 1e3;
    let seen = when(&machine, watcher, 2);
    assert!(
        seen > raised && seen <= raised + 20.0,
        "{seen}, raised {raised}"
    );
    let second = when(&machine, watcher, 3);
    assert!(
        second > raised + 25.0 && second <= raised + 25.05 + 20.0,
        "{second}"
    );
}

#[test]
fn messages_arrive_in_order_and_wait_for_room() {
    let mut parameters = exact();
    parameters.medusa.messages.capacity = 2;
    let mut machine = machine(&parameters);
    let channel = machine.channel(2);
    let sends: Vec<Act> = (0..5)
        .map(|n| Act::Send {
            channel,
            words: n,
            tag: 100 + u64::from(n),
        })
        .collect();
    let mut takes = vec![Act::Work { ns: 60_000_000 }];
    takes.extend([Act::Receive { channel }; 6]);
    let sender = machine.start(HERE, Moment::START, List::new(sends));
    let receiver = machine.start(BESIDE, Moment::START, List::new(takes));
    assert_eq!(machine.run(LIMIT), Stopped::Stuck);
    let received: Vec<(u32, u64, bool)> = (machine.program(receiver).input.iter())
        .filter_map(|input| match input.outcome {
            Outcome::Received {
                words,
                tag,
                was_blocked,
            } => Some((words, tag, was_blocked)),
            _ => None,
        })
        .collect();
    let tags: Vec<(u32, u64)> = received.iter().map(|r| (r.0, r.1)).collect();
    assert_eq!(tags, [(0, 100), (1, 101), (2, 102), (3, 103), (4, 104)]);
    assert_eq!(machine.doing(receiver), "waits at a channel");
    // Two had room; the third send ended when the first message was received, after 60 ms.
    assert!(when(&machine, sender, 2) < 10_000.0);
    assert!(when(&machine, sender, 3) > 60_000.0);
    assert!(!received[0].2);
}

#[test]
fn a_message_takes_what_its_parts_take() {
    let mut parameters = exact();
    parameters.medusa.scheduling.dispatch = 880.0;
    let mut machine = machine(&parameters);
    let channel = machine.channel(2);
    let words = 4;
    let send = Act::Send {
        channel,
        words,
        tag: 0,
    };
    let sender = machine.start(HERE, Moment::from_us(20_000), List::new([send]));
    let receiver = machine.start(BESIDE, Moment::START, List::new([Act::Receive { channel }]));
    machine.run(LIMIT);
    // 10 us a word locally, 10 us of the Kmap's: two pieces of 20 for four words.
    let operation = 9.05 + 2.0 + 1.5 + 20.0 * 70.0 + 1.5 + 2.0;
    let sent = 20_000.0 + 880.0;
    let delivered = sent + 1_190.0 + 40.0 + operation;
    assert_eq!(when(&machine, sender, 1), delivered);
    let received = delivered + 880.0 + operation + 1_390.0 + 40.0;
    assert!((when(&machine, receiver, 1) - received).abs() < 0.01);
    let outcome = machine.program(receiver).input[1].outcome;
    assert_eq!(
        outcome,
        Outcome::Received {
            words,
            tag: 0,
            was_blocked: true
        }
    );
}
