//! Throughput and memory of `undertick report`.

use std::process::Command;
use std::time::Instant;

use super::{compile, manifest, record};
use crate::run::{Scratch, exists, output};

pub fn measure() -> Result<(), String> {
    let scratch = Scratch::new("report")?;
    let flood = compile(&scratch, "flood")?;
    let trace = scratch.path("f.ut");
    println!("\n`undertick report` on 2e8 events, pinned to one core");
    let start = Instant::now();
    record(&trace, &["--no-calibration"], &[&flood, "2", "100000000"])?;
    println!(
        "  recorded and kept in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    let events = manifest(&trace)?["events"].as_u64().unwrap_or(0);
    let pinned = exists(&["taskset", "--version"]);
    let mut words: Vec<String> = if pinned {
        vec!["taskset".into(), "-c".into(), "0".into()]
    } else {
        Vec::new()
    };
    words.extend([super::undertick(), "report".into(), trace.clone()]);
    for run in 1..=3 {
        let mut command = Command::new("/usr/bin/env");
        command.args(["sh", "-c", "\"$@\" >/dev/null & p=$!; m=0; while kill -0 $p 2>/dev/null; do r=$(sed -n 's/VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$p/status 2>/dev/null); [ -n \"$r\" ] && m=$r; sleep 0.2; done; wait $p; echo $m", "sh"]);
        command.args(&words);
        let start = Instant::now();
        let peak_kib = output(command)?;
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "  run {run}: {events} events in {seconds:.2} s = {:.1} M events/s (target 20), peak memory {:.0} MiB (target under 1024)",
            events as f64 / seconds / 1e6,
            peak_kib.trim().parse::<f64>().unwrap_or(f64::NAN) / 1024.0
        );
    }
    Ok(())
}
