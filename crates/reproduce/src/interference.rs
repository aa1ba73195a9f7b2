//! Reproduces the memo on interference from the drum (MPL-55, 1971): the cost of other users of the
//! memory, from the rates of a probe. Its histogram is analysed by our peak finder.

use undertick_document::figures::{figure, per_cent};
use undertick_estimate::peaks::{Peak, PeakOptions, Peaks, peaks_of_histogram};
use undertick_estimate::scaled;
use undertick_report::reproduce::{Item, Reproduction, Table};
use undertick_units::Estimate;

mod here;
mod items;
mod memo;

pub use here::{MeteredRun, with_runs};

use super::tables::words;
use super::verdict::verdict;
use items::{off_items, on_items, probe_items};
use memo::{INTERLACE_OFF, PrintedBin};

/// The published figures, recomputed from the legible bins and by arithmetic. `level` is that of
/// the intervals.
#[must_use]
pub fn published(level: f64) -> Reproduction {
    let found = PrintedPeaks::find(INTERLACE_OFF, level);
    let mut document = Reproduction::new(
        "interference",
        "Saltzer, Measurements of Memory Interference in the one-CPU system, MPL-55, 1971",
    );
    let Some(found) = found else {
        return document;
    };
    table_of_items(
        &mut document,
        "The probe and its schedule",
        &[],
        probe_items(),
    );
    table_of_items(
        &mut document,
        "Interlace on",
        &["The histogram itself is not printed in what is legible: arithmetic on the peaks."],
        on_items(level),
    );
    document.tables.push(bins_table(&found));
    let peaks = peaks_table(&found, level);
    document.tables.push(peaks);
    table_of_items(
        &mut document,
        "Interlace off",
        &[
            "By formula: from the peaks that are found in the legible bins, without regard to the printed ones. \
           Each run of the probe is the same work, so a share of samples p at slow-down s is p s over the mean \
           slow-down as a share of time.",
        ],
        off_items(&found),
    );
    document.findings = findings(&found);
    document
}

/// The peaks of the bins as printed, and of those with doubtful digits at their extremes.
struct PrintedPeaks {
    peaks: Peaks,
    extremes: Vec<Peaks>,
}

impl PrintedPeaks {
    fn find(bins: [PrintedBin; 28], level: f64) -> Option<Self> {
        let options = PeakOptions {
            level,
            ..PeakOptions::default()
        };
        let find = |bins: &[PrintedBin]| {
            let (rates, counts): (Vec<f64>, Vec<u64>) =
                bins.iter().map(|bin| (bin.rate, bin.count)).unzip();
            peaks_of_histogram(&rates, &counts, &options)
        };
        let doubtful: Vec<usize> = (0..bins.len())
            .filter(|&i| bins[i].at_most.is_some())
            .collect();
        let extremes = (0..1_usize << doubtful.len()).filter_map(|choice| {
            let mut bins = bins;
            for (bit, &i) in doubtful.iter().enumerate() {
                bins[i].count = match choice >> bit & 1 {
                    0 => 0,
                    _ => bins[i].at_most.unwrap_or(0),
                };
            }
            find(&bins)
        });
        Some(Self {
            peaks: find(&bins)?,
            extremes: extremes.collect(),
        })
    }

    fn peak(&self, i: usize) -> Option<&Peak> {
        self.peaks.peaks.get(i)
    }

    /// Minimum and maximum of a figure over the extremes of the doubtful digits.
    fn range(&self, of: impl Fn(&Peaks) -> Option<f64>) -> Option<(f64, f64)> {
        let all = self.extremes.iter().filter_map(of);
        all.fold(None, |range: Option<(f64, f64)>, x| {
            let (lo, hi) = range.unwrap_or((x, x));
            Some((lo.min(x), hi.max(x)))
        })
    }

    /// Rate of a peak, mips.
    fn rate(&self, i: usize) -> Option<f64> {
        Some(self.peak(i)?.rate.value * self.peaks.clean_rate.value)
    }

    /// Share of the samples or of the time outside the clean peak.
    fn disturbed(&self, share: impl Fn(&Peak) -> &Estimate) -> Option<f64> {
        Some(1.0 - share(self.peak(0)?).value)
    }

    /// Arithmetic mean of the rates of all runs, mips.
    fn average() -> f64 {
        let n: u64 = INTERLACE_OFF.iter().map(|bin| bin.count).sum();
        let sum: f64 = (INTERLACE_OFF.iter())
            .map(|bin| bin.rate * bin.count as f64)
            .sum();
        sum / n as f64
    }
}

/// A single figure: four digits, a share in per cent.
fn shown(value: Option<f64>, unit: &str) -> String {
    match (value, unit) {
        (None, _) => "–".to_owned(),
        (Some(x), "1") => format!("{:.1} %", 100.0 * x),
        (Some(x), _) if x == x.round() => format!("{x:.0}"),
        (Some(x), _) => {
            let digits = (3 - x.abs().log10().floor() as i32).clamp(0, 4);
            format!("{x:.*}", digits as usize)
        }
    }
}

fn table_of_items(found: &mut Reproduction, title: &str, text: &[&str], items: Vec<Item>) {
    let items: Vec<Item> = items.into_iter().map(items::judged).collect();
    let rows = (items.iter())
        .map(|item| {
            vec![
                item.quantity.clone(),
                shown(item.published, &item.unit),
                shown(item.formula, &item.unit),
                match item.unit.as_str() {
                    "1" => String::new(),
                    unit => unit.to_owned(),
                },
                item.note.clone(),
            ]
        })
        .collect();
    found.tables.push(Table {
        title: title.to_owned(),
        text: words(text),
        columns: words(&["quantity", "printed", "by formula", "unit", "remark"]),
        rows,
    });
    found.items.extend(items);
}

/// Labels of the peaks in the table of bins.
const MARKS: [&str; 3] = ["clean", "second", "third"];

fn bins_table(found: &PrintedPeaks) -> Table {
    let peaks = &found.peaks;
    let n = peaks.n as f64;
    let clean = peaks.clean_rate.value;
    let rows = (INTERLACE_OFF.iter())
        .map(|bin| {
            let peak = (peaks.peaks.iter()).position(|peak| bin.rate / clean > peak.lo);
            let peak = peak.unwrap_or(peaks.peaks.len() - 1);
            let doubt = match bin.at_most {
                Some(most) => format!("a digit is doubtful: 0 to {most}"),
                None => String::new(),
            };
            vec![
                format!("{:.3}", bin.rate),
                bin.count.to_string(),
                format!("{:.2} %", 100.0 * bin.count as f64 / n),
                MARKS.get(peak).copied().unwrap_or("another").to_owned(),
                "#".repeat((50.0 * bin.count as f64 / 2037.0).ceil() as usize),
                doubt,
            ]
        })
        .collect();
    Table {
        title: "Interlace off: the legible bins, and which peak they belong to".to_owned(),
        text: vec![format!(
            "{} of about 5000 samples are legible. A bin that cannot be read is not taken as empty: its neighbours \
             reach to its middle.",
            peaks.n
        )],
        columns: words(&["mips", "samples", "share", "peak", "", "remark"]),
        rows,
    }
}

/// Text of an estimate: value and interval.
fn both(estimate: &Estimate) -> String {
    let shown = figure(estimate);
    format!("{} {}", shown.value_and_unit(), shown.interval())
}

/// Text of a slow-down, which is not a share.
fn times(estimate: &Estimate) -> String {
    both(&scaled(estimate.clone(), 1.0, "times"))
}

fn per_cents(range: Option<(f64, f64)>) -> String {
    range.map_or_else(
        || "–".to_owned(),
        |(lo, hi)| format!("{:.1} to {:.1} %", 100.0 * lo, 100.0 * hi),
    )
}

fn peaks_table(found: &PrintedPeaks, level: f64) -> Table {
    let rows = (found.peaks.peaks.iter().enumerate())
        .map(|(i, peak)| {
            let printed = memo::OFF_PEAKS.get(i);
            let share = |peaks: &Peaks| Some(peaks.peaks.get(i)?.sample_share.value);
            vec![
                MARKS.get(i).copied().unwrap_or("another").to_owned(),
                printed.map_or_else(|| "–".to_owned(), |p| format!("{:.3}", p.0)),
                found
                    .rate(i)
                    .map_or_else(|| "–".to_owned(), |r| format!("{r:.4}")),
                printed.map_or_else(|| "–".to_owned(), |p| per_cent(p.1)),
                both(&peak.sample_share),
                per_cents(found.range(share)),
                both(&peak.time_share),
                times(&peak.slowdown),
                peak.p_value.map_or_else(
                    || "–".to_owned(),
                    |p| match p < 1e-6 {
                        true => "below 1e-6".to_owned(),
                        false => format!("{p:.1e}"),
                    },
                ),
            ]
        })
        .collect();
    let numbers: Vec<usize> = found.extremes.iter().map(|p| p.peaks.len()).collect();
    let same = numbers.iter().all(|&n| n == found.peaks.peaks.len());
    Table {
        title: "Interlace off: the peaks".to_owned(),
        text: vec![format!(
            "Found by the test of undertick_estimate::peaks, not by eye; intervals of {}. p: how often at most one peak would \
             show a valley as clear as that before it. With doubtful digits at their extremes the number of peaks is {}.",
            per_cent(level),
            match same {
                true => "always the same".to_owned(),
                false => format!("{numbers:?}"),
            }
        )],
        columns: words(&[
            "peak",
            "printed, mips",
            "found, mips",
            "printed, of samples",
            "found, of samples",
            "doubtful digits",
            "found, of time",
            "slow-down",
            "p",
        ]),
        rows,
    }
}

/// Rate of the third peak, mips.
fn third(peaks: &Peaks) -> Option<f64> {
    Some(peaks.peaks.get(2)?.rate.value * peaks.clean_rate.value)
}

/// Half of the last digit of shares that the memo gives in whole per cent.
const HALF_PER_CENT: f64 = 0.005;

/// The verdict on a share.
fn share_verdict(figures: (f64, f64), half_digit: f64) -> String {
    verdict(figures, half_digit, |share| shown(Some(share), "1"))
}

/// The published conclusions, re-examined.
fn findings(found: &PrintedPeaks) -> Vec<String> {
    let disturbed = found.disturbed(|peak| &peak.sample_share);
    let time = found.disturbed(|peak| &peak.time_share);
    let meets = items::meeting(memo::PAGES);
    let printed: f64 = memo::OFF_PEAKS[1..].iter().map(|peak| peak.1).sum();
    let loss = found.peaks.mean_loss.value;
    vec![
        how_many(found),
        format!(
            "The shares: out of the clean peak lie {} of the legible samples, printed {}, in the text about {}. Bins in \
             both slow peaks cannot be read, so the legible share is the least; and one bin, .264, has a doubtful digit.",
            shown(disturbed, "1"),
            shown(Some(printed), "1"),
            shown(Some(memo::ON_SHARE), "1"),
        ),
        format!(
            "The loss of about {}: {}; {} from work over time, {} with doubtful digits at their extremes. By the \
             printed average it is {}: a mean of rates over samples counts the slow ones for less time than they take.",
            shown(Some(memo::OFF_LOSS.0), "1"),
            share_verdict((memo::OFF_LOSS.0, loss), HALF_PER_CENT),
            shown(Some(loss), "1"),
            per_cents(found.range(|peaks| Some(peaks.mean_loss.value))),
            shown(Some(1.0 - memo::OFF_AVERAGE / memo::OFF_PEAKS[0].0), "1"),
        ),
        format!(
            "The memo takes the share of samples for that of the time that drum and probe meet. From the legible bins the \
             two are {} and {}, so the drum's activity, {} in the memo, comes out as {} from time and as {} from samples.",
            shown(disturbed, "1"),
            shown(time, "1"),
            shown(Some(memo::OFF_ACTIVITY), "1"),
            shown(time.map(|share| share / meets), "1"),
            shown(disturbed.map(|share| share / meets), "1"),
        ),
        format!(
            "Drum and probe meet for {} of the time: from pages split {:.0} to {:.0}, each as likely to be wanted, \
             follows {}: {}.",
            shown(Some(memo::MEETING), "1"),
            memo::PAGES.0,
            memo::PAGES.1,
            shown(Some(meets), "1"),
            // Its last digit is cut off, not rounded.
            share_verdict((memo::MEETING, meets), 2.0 * HALF_PER_CENT)
        ),
        format!(
            "Doubtful: .256 mips as exactly one instruction for each drum cycle of {:.0} us. That is {:.3} mips; the \
             middle of the peak lies at {} mips, with doubtful digits at their extremes {}.",
            memo::DRUM_CYCLE_US,
            1.0 / memo::DRUM_CYCLE_US,
            shown(found.rate(2), "mips"),
            found.range(third).map_or_else(
                || "unknown".to_owned(),
                |(lo, hi)| format!(
                    "between {} and {}",
                    shown(Some(lo), "mips"),
                    shown(Some(hi), "mips")
                )
            ),
        ),
        format!(
            "That the slow-down without interlace is not twice but about {:.0} times that with it, and so is not twice as \
             much half as often: {}.",
            memo::SLOWER_WITHOUT,
            items::slower_without(found).map_or_else(
                || "unknown".to_owned(),
                |times| verdict((memo::SLOWER_WITHOUT, times), 0.5, |x| format!("{x:.2}"))
            ),
        ),
    ]
}

/// The number of peaks, in the memo and by the test.
fn how_many(found: &PrintedPeaks) -> String {
    let (n, in_memo) = (found.peaks.peaks.len(), memo::OFF_PEAKS.len());
    let extremes = found.range(|peaks| Some(peaks.peaks.len() as f64));
    let as_in_memo = match n == in_memo {
        true => "as many as in the memo, where they were found by eye".to_owned(),
        false => format!("but {in_memo} in the memo, where they were found by eye"),
    };
    let with_doubts = match extremes {
        Some((lo, hi)) if lo == hi => format!("always {lo:.0}"),
        Some((lo, hi)) => format!("{lo:.0} to {hi:.0}"),
        None => "unknown".to_owned(),
    };
    format!(
        "How many peaks are real? {n} are found in the legible bins by a test that errs once in a hundred, \
         {as_in_memo}; with each doubtful digit at its extremes {with_doubts}."
    )
}

#[cfg(test)]
#[path = "interference_tests.rs"]
mod tests;
