//! Time that the hypervisor took from the guest, from `/proc/stat`.
//!
//! **Caveat.** It is counted in steps of 10 ms, and only as far as the hypervisor reports it: on
//! many machines a small part of the time that was lost.

use super::raw::{Record, RecordKind};

/// The last values of the counters.
#[derive(Debug)]
pub(super) struct Steal {
    /// CPU and its counter, in the kernel's unit.
    last: Vec<(i16, u64)>,
    unit_ns: u64,
}

impl Steal {
    /// # Errors
    /// Why there are no counters.
    pub(super) fn open() -> Result<Self, String> {
        let text = read()?;
        let last = counters(&text);
        if last.is_empty() {
            return Err("/proc/stat names no CPU with a steal counter".to_owned());
        }
        let hertz = rustix::param::clock_ticks_per_second().max(1);
        Ok(Self {
            last,
            unit_ns: 1_000_000_000 / hertz,
        })
    }

    /// Makes a record for each CPU with a counter that has moved; `now` in ticks.
    pub(super) fn sample(&mut self, now: u64, take: impl FnMut(Record)) {
        if let Ok(text) = read() {
            self.compare(&text, now, take);
        }
    }

    fn compare(&mut self, text: &str, now: u64, mut take: impl FnMut(Record)) {
        for (cpu, counter) in counters(text) {
            let Some((_, last)) = self.last.iter_mut().find(|(of, _)| *of == cpu) else {
                self.last.push((cpu, counter));
                continue;
            };
            let stolen = counter.saturating_sub(*last);
            if stolen > 0 {
                take(Record {
                    cpu,
                    payload: stolen.saturating_mul(self.unit_ns) as i64,
                    ..Record::new(RecordKind::Steal, now)
                });
            }
            *last = counter;
        }
    }
}

fn read() -> Result<String, String> {
    std::fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))
}

/// Returns CPU and steal counter of each line `cpuN user nice system idle iowait irq softirq
/// steal ...`.
fn counters(text: &str) -> Vec<(i16, u64)> {
    text.lines()
        .take_while(|line| line.starts_with("cpu"))
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            Some((cpu, words.nth(7)?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
