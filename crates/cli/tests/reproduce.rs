//! `undertick reproduce`: the printed figures of the source, by hand; of the live experiment the
//! tests check only invariants.

use std::collections::{HashMap, HashSet};

use crate::support;

use serde_json::Value;
use support::{document, refused, undertick};
use undertick_report::reproduce::render;

pub fn item<'a>(found: &'a Value, id: &str) -> &'a Value {
    let items = found["items"].as_array().expect("items");
    let item = items.iter().find(|item| item["id"] == id);
    item.unwrap_or_else(|| panic!("no item {id}"))
}

/// One run serves all checks, because it takes two seconds.
#[test]
fn slow_clock_is_reproduced() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let output = undertick(&[
        "reproduce",
        "slow-clock",
        "--quick",
        "--json",
        "--html",
        page.to_str().unwrap(),
    ]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains("4 repetitions of 500 cycles: about"),
        "{errors}"
    );
    let found: Value = document("reproduce", &output);
    assert_eq!(found["schema_version"], 1);
    assert_eq!(found["source"], "slow-clock");
    assert_eq!(found["interrupted"], false);
    printed(&found);
    live(&found);
    let listed = listed(&found);
    assert_eq!(
        listed["slow-clock Table 15"], "reproduced; 6 printed wrong",
        "{listed:?}"
    );
    assert!(
        listed["slow-clock Table 17b"].starts_with("reproduced"),
        "{listed:?}"
    );
    assert!(
        listed["slow-clock Figure 16"].starts_with("a drawing"),
        "{listed:?}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("Table 15: cycles needed") && page.contains("(12,1)"));
    assert!(!page.contains("://"), "the page loads nothing");
}

/// The verdict on each table and figure, by source and name; every published figure has a verdict and
/// belongs to one of them.
fn listed(found: &Value) -> HashMap<String, String> {
    let list = found["tables_and_figures"].as_array().expect("a list");
    let ids: HashSet<&str> = (list.iter())
        .flat_map(|one| one["items"].as_array().unwrap())
        .map(|id| id.as_str().unwrap())
        .collect();
    for item in found["items"].as_array().unwrap() {
        let id = item["id"].as_str().unwrap();
        let is_published = !item["published"].is_null();
        assert_eq!(is_published, !item["verdict"].is_null(), "{item}");
        assert!(!is_published || ids.contains(id), "{id} is not listed");
    }
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    (list.iter())
        .map(|one| {
            let name = format!("{} {}", text(one, "source"), text(one, "name"));
            (name, text(one, "verdict"))
        })
        .collect()
}

/// By hand from the source: (5.16/0.01)^2 * 19 = 5 058 864; (3.94/0.05)^2 * 199
/// = 1 235 678.6; 1/sqrt(6) = 0.408248; 119 268 ticks in 100 000 cycles of 1 ms.
fn printed(found: &Value) {
    let near = |item: &Value, key: &str, value: f64| {
        let is = item[key].as_f64().unwrap_or(f64::NAN);
        assert!((is - value).abs() < 1e-6 * value, "{item}: {is} {value}");
    };
    let row = item(found, "table-15/(99,0.01)/20");
    near(row, "published", 50_600.0);
    near(row, "formula", 5_058_864.0);
    assert!(row["note"].as_str().unwrap().contains("erratum"));
    near(
        item(found, "table-15/(95,0.05)/200"),
        "formula",
        1_235_679.0,
    );
    assert!(
        !item(found, "table-15/(90,0.1)/20")["note"]
            .as_str()
            .unwrap()
            .contains("erratum")
    );
    near(item(found, "w/95"), "published", 3.94);
    let last = item(found, "10d/last-term");
    near(last, "formula", 0.408_248_29);
    let (lo, hi) = interval(&last["simulated"]);
    // 20 000 draws: half a per cent.
    assert!(lo > 0.40 && hi < 0.417, "{lo} {hi}");
    let mean = item(found, "table-17/(1,2)/mean");
    near(mean, "published", 1193.0);
    near(mean, "formula", 1192.68);
    let predicted = item(found, "table-17/(1,2)/predicted-sd");
    // 0.19268 * 0.80732 / 10 000; its root is 3.944 us. 200 simulated repetitions scatter by 5 %.
    assert!((predicted["formula"].as_f64().unwrap() - 3.944).abs() < 1e-3);
    let simulated = predicted["simulated"]["value"].as_f64().unwrap();
    assert!((simulated / 3.944 - 1.0).abs() < 0.25, "{simulated}");
    let rows = found["items"].as_array().unwrap();
    let of_table_17 = |what: &str| {
        let ends = |item: &&Value| {
            let id = item["id"].as_str().unwrap();
            id.starts_with("table-17/") && id.ends_with(what)
        };
        rows.iter().filter(ends).count()
    };
    assert_eq!([of_table_17("/mean"), of_table_17("/error")], [13, 13]);
}

fn interval(estimate: &Value) -> (f64, f64) {
    let bound = |i: usize| estimate["interval"][i].as_f64().expect("a bound");
    (bound(0), bound(1))
}

/// Holds on any machine: the parts add up to the cycle, in ticks and in truth; an error is the mean
/// less the truth; user code takes at least its work.
fn live(found: &Value) {
    let value = |name: &str, what: &str| {
        let item = item(found, &format!("table-17/{name}/{what}"));
        item["measured"]["value"].as_f64().unwrap()
    };
    let parts: Vec<String> = (1..=12).map(|i| format!("({i},{})", i % 12 + 1)).collect();
    let refused = |part: &&String| {
        let item = item(found, &format!("table-17/{part}/mean"));
        item["measured"].is_null()
    };
    if let Some(part) = parts.iter().find(refused) {
        // Without a real-time policy the scheduler may change the order.
        let item = item(found, &format!("table-17/{part}/mean"));
        let note = item["note"].as_str().unwrap();
        assert!(
            note.contains("the points did not come in the order"),
            "{item}"
        );
        let text = found.to_string();
        assert!(
            text.contains("intervals are refused") && !text.contains("Policy: SCHED_FIFO"),
            "{text}"
        );
        println!(
            "skipped: no right to a real-time policy here, and the order was not kept without it"
        );
        return;
    }
    for what in ["ticks", "mean", "true-mean", "error"] {
        let sum: f64 = parts.iter().map(|part| value(part, what)).sum();
        let whole = value("(1,1)", what);
        assert!(
            (sum - whole).abs() < 1e-6 * whole.abs().max(1e3),
            "{what}: {sum} {whole}"
        );
    }
    for part in &parts {
        let off = value(part, "mean") - value(part, "true-mean") - value(part, "error");
        assert!(off.abs() < 1e-6, "{part}: {off}");
    }
    assert!(value("(1,1)", "ticks") > 0.0);
}

/// One run serves all checks of what is simulated and measured, because it takes half a minute.
#[test]
#[ignore = "long: cargo xtask test --all"]
fn all_together() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let page_name = page.to_str().unwrap();
    let output = undertick(&["reproduce", "all", "--quick", "--json", "--html", page_name]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Value = document("reproduce", &output);
    assert_eq!(found["schema_version"], 1);
    assert_eq!(
        found["source"],
        "cmstar+slow-clock+traffic+trams+interference"
    );
    assert_eq!(found["interrupted"], false);
    let page = std::fs::read_to_string(page).unwrap();
    let on_terminal = render(&serde_json::from_value(found.clone()).unwrap(), 110);
    for of in [
        "Tables and figures of the sources",
        "References a second (Medusa)",
        "Table 15: cycles needed",
        "The script on one CPU",
        "Fork against memory",
    ] {
        assert!(page.contains(of), "{of}");
        assert!(on_terminal.contains(of), "{of}: {on_terminal}");
    }
    assert!(!page.contains("://"), "the page loads nothing");
    let verdicts = listed(&found);
    assert!(
        verdicts["cmstar Figure 12"].starts_with("1 of 2 reproduced"),
        "{verdicts:?}"
    );
    crate::reproduce_traffic::traffic(&found, &page);
    crate::reproduce_traffic::trams(&found, &page);
    interference(&found);
}

#[test]
fn what_is_refused() {
    refused(&undertick(&["reproduce", "sundial"]), 2, &["slow-clock"]);
    let nowhere = [
        "reproduce",
        "slow-clock",
        "--quick",
        "--html",
        "/nonexistent/page.html",
    ];
    refused(&undertick(&nowhere), 2, &["/nonexistent/page.html"]);
}

/// The hidden second process does not hang or panic where it has no partner.
#[test]
fn the_second_process_by_itself() {
    let output = undertick(&["__reproduce-partner"]);
    refused(&output, 1, &["second process"]);
}

/// Three peaks of the published histogram, and three runs of the meter here.
fn interference(found: &Value) {
    let items = found["items"].as_array().unwrap();
    let loss = |name: &str| {
        let wanted = format!("interference/here/{name}");
        let item = items.iter().find(|i| {
            let id = i["id"].as_str().unwrap();
            id.starts_with(&wanted) && id.ends_with("/loss")
        });
        item.map(|i| i["measured"]["value"].as_f64().expect("a loss"))
    };
    let quiet = loss("as it is").expect("a run as it is");
    let taken = loss("with a process on the probe's CPU").expect("a run with a process");
    assert!(quiet.is_finite() && taken.is_finite());
    let one_cpu = std::thread::available_parallelism().is_ok_and(|n| n.get() == 1);
    assert_eq!(loss("with memory traffic").is_none(), one_cpu);
    assert!(
        (items.iter()).any(|i| i["published"].as_f64() == Some(0.343)),
        "{items:?}"
    );
}
