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
mod tests {
    use super::*;

    #[test]
    fn only_what_moved_is_told() {
        let first = "cpu  9 9 9 9 9 9 9 12 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 1 2 3 4 5 6 7 4 9 10\nintr 5\n";
        let second = "cpu  9 9 9 9 9 9 9 15 0 0\ncpu0 9 9 9 9 9 9 9 8 9 10\ncpu12 1 2 3 4 5 6 7 7 9 10\ncpu13 1 1 1 1 1 1 1 99 1 1\n";
        assert_eq!(counters(first), [(0, 8), (12, 4)]);
        let mut steal = Steal {
            last: counters(first),
            unit_ns: 10_000_000,
        };
        let mut records = Vec::new();
        steal.compare(second, 77, |record| records.push(record));
        assert_eq!(records.len(), 1);
        assert_eq!(
            (records[0].cpu, records[0].payload, records[0].time),
            (12, 30_000_000, 77)
        );
        // A CPU that came online later, and a counter that went back.
        steal.compare(
            &second.replace(" 99 ", " 101 ").replace("7 7 9", "7 6 9"),
            78,
            |record| {
                records.push(record);
            },
        );
        assert_eq!(
            (records.len(), records[1].cpu, records[1].payload),
            (2, 13, 20_000_000)
        );
    }
}
