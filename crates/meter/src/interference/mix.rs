//! The mix of instructions and memory accesses that the probe executes.

use std::hint::black_box;

use undertick_experiment::counted_work;

/// A mix, named by what its accesses exercise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// One word of each line of a region larger than all caches, one line after the other: limited
    /// by the memory's bandwidth.
    Stream,
    /// A chain through such a region, where each address is known only after the one before has
    /// been read: limited by the memory's latency.
    Chain,
    /// A chain through half of the last-level cache.
    L3,
    /// A chain through half of the second-level cache.
    L2,
    /// A chain through half of the first-level cache.
    L1,
    /// Reads, additions and writes in one page, about as many accesses as
    /// instructions: the mix of the memo of 1971.
    Page,
    /// Registers only: not affected by memory.
    Arithmetic,
}

impl Mix {
    /// Every mix and its name on the command line.
    pub const WORDS: [(&'static str, Self); 7] = [
        ("stream", Self::Stream),
        ("chain", Self::Chain),
        ("l3", Self::L3),
        ("l2", Self::L2),
        ("l1", Self::L1),
        ("page", Self::Page),
        ("arithmetic", Self::Arithmetic),
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, mix)| *mix == self);
        found.map_or("?", |(word, _)| word)
    }

    /// The unit of its work.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Stream => "lines",
            Self::Chain | Self::L3 | Self::L2 | Self::L1 => "loads",
            Self::Page => "accesses",
            Self::Arithmetic => "turns",
        }
    }

    /// Size of the region, bytes, for caches of these sizes (level and bytes).
    #[must_use]
    pub fn footprint_bytes(self, caches: &[(u32, u64)]) -> u64 {
        let level = |wanted: u32, usual: u64| {
            let of_level = caches.iter().filter(|(level, _)| *level == wanted);
            of_level.map(|(_, bytes)| *bytes).max().unwrap_or(usual)
        };
        let last = caches.iter().map(|(_, bytes)| *bytes).max();
        match self {
            // Four times the last cache, so that hardly any line is still cached.
            Self::Stream | Self::Chain => (4 * last.unwrap_or(MIB)).max(64 * MIB),
            Self::L3 => level(3, 8 * MIB) / 2,
            Self::L2 => level(2, MIB / 2) / 2,
            Self::L1 => level(1, MIB / 32) / 2,
            Self::Page => PAGE_BYTES as u64,
            Self::Arithmetic => 0,
        }
    }
}

const MIB: u64 = 1 << 20;
const PAGE_BYTES: usize = 4096;
/// Bytes of a line, as the probe assumes: no current CPU has shorter ones.
const LINE_BYTES: usize = 64;
const WORDS_OF_LINE: usize = LINE_BYTES / size_of::<u64>();

/// Data caches of this machine: level and bytes; empty if it does not report them.
#[must_use]
pub fn caches() -> Vec<(u32, u64)> {
    let dir = std::path::Path::new("/sys/devices/system/cpu/cpu0/cache");
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
            if read("type")?.trim() == "Instruction" {
                return None;
            }
            let size = read("size")?;
            let kib = size.trim().strip_suffix('K')?.parse::<u64>().ok()?;
            Some((read("level")?.trim().parse().ok()?, kib * 1024))
        })
        .collect()
}

/// A mix that is ready to run.
pub(super) struct Ready {
    mix: Mix,
    memory: Vec<u64>,
    /// Index at which it continues, words.
    at: usize,
}

impl Ready {
    /// Creates the region of about that many bytes, and touches all of it.
    pub(super) fn new(mix: Mix, footprint_bytes: u64, seed: u64) -> Self {
        let words = (footprint_bytes as usize / size_of::<u64>()).max(8 * WORDS_OF_LINE);
        let memory = match mix {
            Mix::Arithmetic => Vec::new(),
            Mix::Stream => {
                let mut memory = region(words);
                memory.fill(1);
                memory
            }
            Mix::Page => vec![1; PAGE_BYTES / size_of::<u64>()],
            Mix::Chain | Mix::L3 | Mix::L2 | Mix::L1 => chain(words / WORDS_OF_LINE, seed),
        };
        Self { mix, memory, at: 0 }
    }

    /// Does this many units of work, continuing where the last call ended.
    #[inline(never)]
    pub(super) fn work(&mut self, units: u64) {
        match self.mix {
            Mix::Arithmetic => counted_work::turns(units),
            Mix::Stream => self.stream(units as usize),
            Mix::Page => self.page(units),
            Mix::Chain | Mix::L3 | Mix::L2 | Mix::L1 => self.follow(units),
        }
    }

    fn stream(&mut self, mut lines: usize) {
        let mut sum = 0_u64;
        while lines > 0 {
            let rest = &self.memory[self.at..];
            let now = lines.min(rest.len() / WORDS_OF_LINE);
            let part = &rest[..now * WORDS_OF_LINE];
            // One word per line; the sum is used, so that each is read.
            let firsts = part.iter().step_by(WORDS_OF_LINE);
            sum = firsts.fold(sum, |sum, word| sum.wrapping_add(*word));
            lines -= now;
            self.at += now * WORDS_OF_LINE;
            if self.memory.len() - self.at < WORDS_OF_LINE {
                self.at = 0;
            }
        }
        black_box(sum);
    }

    fn follow(&mut self, loads: u64) {
        let mut at = self.at;
        for _ in 0..loads {
            at = self.memory[at] as usize;
        }
        self.at = black_box(at);
    }

    /// Three accesses per turn: two reads and a write, one page apart.
    fn page(&mut self, accesses: u64) {
        let words = self.memory.len();
        let mut at = self.at;
        for _ in 0..accesses.div_ceil(3) {
            let next = (at + 7) % words;
            let sum = self.memory[at].wrapping_add(self.memory[next]);
            self.memory[next] = black_box(sum);
            at = next;
        }
        self.at = at;
    }
}

/// Untouched memory, in huge pages where the kernel provides them. With pages of 4 KiB half of the
/// time is spent on address translation, which other users of the memory affect less.
fn region(words: usize) -> Vec<u64> {
    const HUGE_BYTES: usize = 2 << 20;
    let mut memory = vec![0_u64; words];
    let begin = memory.as_mut_ptr().cast::<u8>();
    let skipped = begin.align_offset(HUGE_BYTES);
    let bytes = (size_of_val(&memory[..])).saturating_sub(skipped) / HUGE_BYTES * HUGE_BYTES;
    if bytes > 0 {
        // SAFETY: inside of the live allocation; the advice changes no content.
        // Where it is refused the pages are small.
        let _ = unsafe {
            rustix::mm::madvise(
                begin.add(skipped).cast(),
                bytes,
                rustix::mm::Advice::LinuxHugepage,
            )
        };
    }
    memory
}

/// A closed chain through all lines in random order (Sattolo 1986): the first word of
/// each line is the index of the next one's first word.
fn chain(lines: usize, seed: u64) -> Vec<u64> {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<u32> = (0..lines as u32).collect();
    for i in (1..lines).rev() {
        order.swap(i, random.random_range(0..i));
    }
    let mut memory = region(lines * WORDS_OF_LINE);
    for (line, next) in order.iter().enumerate() {
        memory[line * WORDS_OF_LINE] = u64::from(*next) * WORDS_OF_LINE as u64;
    }
    memory
}

#[cfg(test)]
mod tests;
