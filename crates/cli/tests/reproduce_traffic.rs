//! What `undertick reproduce` says of `traffic` and `trams`: the printed figures of the sources, by
//! hand; of the measured ones only the structure is checked, on any machine.

use serde_json::Value;

use crate::reproduce::item;

/// Asserts that every item of a source has a published figure or a reason, and a measured figure or
/// a reason; their ratio is the measured over the published one.
fn whole(found: &Value, source: &str) {
    let is_of = |item: &&Value| item["id"].as_str().is_some_and(|id| id.starts_with(source));
    let items = found["items"].as_array().unwrap().iter().filter(is_of);
    assert!(items.clone().count() > 40, "{source}");
    for item in items {
        let unit = item["unit"].as_str().unwrap();
        assert!(["us", "ms", "1"].contains(&unit), "{item}");
        let note = item["note"].as_str().unwrap();
        assert!(item["published"].is_number() || !note.is_empty(), "{item}");
        let measured = &item["measured"];
        // The lock on the simulated board of the event card.
        let id = item["id"].as_str().unwrap();
        assert_eq!(
            item["simulated"].is_object(),
            id.starts_with("trams/board/"),
            "{item}"
        );
        if item["simulated"].is_object() {
            assert!(measured.is_null(), "{item}");
            continue;
        }
        if measured.is_null() {
            assert!(note.contains("not measured"), "{item}");
            assert!(item.get("ratio").is_none(), "{item}");
            continue;
        }
        assert_eq!(measured["unit"], unit, "{item}");
        let value = measured["value"].as_f64().unwrap();
        // What may as well be 0 is no denominator.
        let is_above_0 = value > 0.0 && measured["interval"][0].as_f64().is_none_or(|lo| lo > 0.0);
        assert!(is_above_0 || item["ratio"].is_null(), "{item}");
        if let (Some(published), true) = (item["published"].as_f64(), is_above_0) {
            // What is over 10 000 times faster is other work.
            if published / value > 1e4 {
                assert!(
                    item["ratio"].is_null() && note.contains("other work"),
                    "{item}"
                );
                continue;
            }
            let ratio = item["ratio"].as_f64().unwrap();
            assert!((ratio * value / published - 1.0).abs() < 1e-9, "{item}");
        }
    }
}

fn published(found: &Value, id: &str, value: f64, unit: &str) {
    let item = item(found, id);
    assert_eq!(item["published"].as_f64(), Some(value), "{item}");
    assert_eq!(item["unit"], unit);
    assert!(item["measured"]["value"].is_number(), "{item}");
}

pub fn traffic(found: &Value, page: &str) {
    whole(found, "traffic/");
    for (what, value) in [
        ("wakeup", 894.0),
        ("block", 1393.0),
        ("wait", 1277.0),
        ("wait-nothing", 230.0),
        ("notify-nobody", 237.0),
        ("add-event", 229.0),
        ("delete-event", 235.0),
        ("block-wakeup", 2000.0),
        ("add-wait-notify", 1800.0),
    ] {
        for backend in ["futex", "eventfd", "pipe", "condvar"] {
            let id = format!("traffic/{what}/{backend}/same-cpu");
            let item = item(found, &id);
            assert_eq!(item["published"].as_f64(), Some(value), "{item}");
        }
    }
    published(found, "traffic/quantum/run-out/default/A", 1454.0, "us");
    published(found, "traffic/quantum/run-out/default/B", 1511.0, "us");
    in_the_published_order(found);
    published(found, "traffic/notify/at-0/futex", 200.0, "us");
    published(found, "traffic/notify/a-waiter/futex", 100.0, "us");
    let sum = &item(found, "traffic/block-wakeup/futex/same-cpu")["formula"];
    assert_eq!(sum.as_f64(), Some(2287.0), "1393 + 894");
    let findings = found["findings"].to_string();
    for question in [
        "twice a wakeup",
        "contains the switch",
        "grow by a constant",
    ] {
        assert!(findings.contains(question), "{question}: {findings}");
    }
    assert!(page.contains("The script on one CPU") && page.contains("published/measured"));
}

/// Where the real-time policy is permitted, every wakeup leaves its waker the CPU, and a quantum of
/// `SCHED_RR` is as long as the kernel says.
fn in_the_published_order(found: &Value) {
    let findings = found["findings"].to_string();
    if findings.contains("scheduling policy fifo is refused") {
        assert!(findings.contains("CAP_SYS_NICE"), "{findings}");
        println!("skipped: no right to a real-time policy here");
        return;
    }
    for backend in ["futex", "eventfd", "pipe", "condvar"] {
        for what in ["wakeup", "notify-one"] {
            let item = item(found, &format!("traffic/{what}/{backend}/same-cpu"));
            let note = item["note"].as_str().unwrap();
            assert!(
                note.contains("of all ") && item["measured"].is_object(),
                "{item}"
            );
        }
    }
    let set = std::fs::read_to_string("/proc/sys/kernel/sched_rr_timeslice_ms");
    let slice_ms: f64 = set.map_or(100.0, |text| text.trim().parse().unwrap());
    for process in ["A", "B"] {
        let length = item(found, &format!("traffic/quantum/length/rr/{process}"));
        if let Some(ms) = length["measured"]["value"].as_f64() {
            assert!(ms > 0.8 * slice_ms, "{ms} ms of {slice_ms}: {length}");
        }
    }
}

/// On two CPUs each kind of lock has a share of waits that found it taken. How large it is depends on
/// what else runs: processes that are kept from their CPUs do not meet.
fn contended(found: &Value) {
    let cpus = std::thread::available_parallelism().unwrap().get();
    if cpus == 1 {
        println!("skipped: one CPU, so no lock is contended");
        return;
    }
    for kind in ["spin", "pthread-spin", "ticket", "pthread"] {
        let taken = &item(found, &format!("trams/five/taken/{kind}"))["measured"];
        let share = taken["value"].as_f64().unwrap();
        assert!(
            (0.0..=1.0).contains(&share) && taken["n"].as_u64() > Some(1000),
            "{kind}: {taken}"
        );
    }
}

pub fn trams(found: &Value, page: &str) {
    whole(found, "trams/");
    for (id, value, unit) in [
        ("figure-2", 3.0, "us"),
        ("figure-13", 9.0, "us"),
        ("record/constant", 3.0, "us"),
        ("record/variable", 3.5, "us"),
        ("record/both", 6.0, "us"),
        ("clock/gettimeofday/mean", 672.26, "us"),
        ("clock/gettimeofday/median", 649.0, "us"),
        ("clock/getrusage/mean", 871.45, "us"),
        ("clock/getrusage/median", 843.0, "us"),
        ("lock/alone", 35.0, "us"),
        ("unlock/alone", 11.0, "us"),
        ("lock-unlock/alone", 46.0, "us"),
        ("five/max/spin", 2477.0, "us"),
        ("five/anomalies/spin", 24.5, "1"),
        ("five/unlock/spin", 13.0, "us"),
        ("fork/0", 90.0, "ms"),
        ("fork/33KB", 130.0, "ms"),
        ("fork/4351KB", 410.0, "ms"),
        ("table-5a/4351/mean", 2779.0, "ms"),
        ("table-5b/33/max", 83.0, "ms"),
        ("table-4/1941/min", 197.0, "ms"),
        ("table-2a/total/max", 1050.0, "us"),
    ] {
        published(found, &format!("trams/{id}"), value, unit);
    }
    let slope = item(found, "trams/fork/slope/shared")["formula"]
        .as_f64()
        .unwrap();
    // The least squares of the seven points are computed separately.
    assert!((slope - 66.7).abs() < 0.1, "{slope}");
    let findings = found["findings"].to_string();
    for question in [
        "two orders dearer",
        "coarse grain",
        "hide two modes",
        "Does fork still grow",
    ] {
        assert!(findings.contains(question), "{question}: {findings}");
    }
    assert!(page.contains("A lock that several processes want"));
    contended(found);
}
