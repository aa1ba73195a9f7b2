//! Does anything get lost at full speed?

use super::{compile, manifest, record};
use crate::run::Scratch;

pub fn measure(runs: u32) -> Result<(), String> {
    let scratch = Scratch::new("loss")?;
    let flood = compile(&scratch, "flood")?;
    let trace = scratch.path("f.ut");
    println!("\nlosses at full speed with the defaults, collector attached");
    for (threads, n, runs) in [("1", "100000000", runs), ("2", "50000000", 3)] {
        let mut without_loss = 0;
        for run in 1..=runs {
            let said = record(&trace, &["--no-calibration"], &[&flood, threads, n])?;
            let manifest = manifest(&trace)?;
            let sum = |field: &str| {
                let rings = manifest["rings"].as_array().map_or(&[][..], Vec::as_slice);
                rings
                    .iter()
                    .filter_map(|ring| ring[field].as_u64())
                    .sum::<u64>()
            };
            let lost = manifest["lost"].as_u64().unwrap_or(u64::MAX);
            let expected = threads.parse::<u64>().unwrap_or(0) * n.parse::<u64>().unwrap_or(0);
            let exact = sum("written") == expected && sum("received") + lost == expected;
            without_loss += u32::from(lost == 0);
            let ns: Vec<&str> = said.lines().collect();
            println!(
                "  {threads} thread(s), run {run}: {} ns/event, {} received, {lost} lost, lost + received = written: {exact}",
                ns.join(" and "),
                sum("received")
            );
        }
        println!(
            "  {threads} thread(s): {without_loss} of {runs} runs without loss (target: one thread, all)"
        );
    }
    Ok(())
}
