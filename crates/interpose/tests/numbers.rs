//! The libraries write what readers of traces expect.

use undertick_format::interposed::{Record, WaitKind};

#[test]
fn each_event_is_what_the_c_source_calls_it() {
    let source = include_str!("../src/undertick_locks.c");
    let names = [
        ("LK_MUTEX_", Record::Wait(WaitKind::Mutex, 64)),
        ("LK_READ_", Record::Wait(WaitKind::Read, 64)),
        ("LK_WRITE_", Record::Wait(WaitKind::Write, 64)),
        ("LK_CONDITION_", Record::Wait(WaitKind::Condition, 64)),
        ("LK_SEMAPHORE_", Record::Wait(WaitKind::Semaphore, 64)),
        ("LK_HOLDER_", Record::Holder(64)),
        ("LK_END_", Record::End(64)),
        ("LK_SIGNAL_", Record::Wake(WaitKind::Condition, 64)),
        ("LK_POST_", Record::Wake(WaitKind::Semaphore, 64)),
    ];
    for (name, meaning) in names {
        let defined = format!("{name} = 0x");
        let at = source.find(&defined).expect("it is defined") + defined.len();
        let event = u16::from_str_radix(&source[at..at + 4], 16).expect("a number");
        assert_eq!(Record::from_event(event, 64), Some(meaning), "{name}");
    }
}
