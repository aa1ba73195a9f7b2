//! Every printed figure separately, with its derivation.

use undertick_document::figures::figure;
use undertick_estimate::peaks::predict;
use undertick_report::reproduce::{Item, Verdict};
use undertick_units::{Estimate, Interval};

use crate::verdict::by_formula;

use super::{HALF_PER_CENT, MARKS, PrintedPeaks, memo, share_verdict, shown};

pub(super) fn item(
    id: &str,
    quantity: &str,
    unit: &str,
    printed: Option<f64>,
    formula: Option<f64>,
) -> Item {
    Item {
        id: format!("interference/{id}"),
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        published: printed,
        formula,
        ..Item::default()
    }
}

/// Half a bin of the histogram, mips: a rate is read from its bins.
const HALF_BIN_MIPS: f64 = 0.002;

/// By how much a printed figure may differ from the computed one, and the verdict if it differs by more.
/// What the memo gives in whole per cent is judged to half of one.
const TOLERANCES: [(&str, f64, Verdict); 21] = [
    ("probe/samples", 0.5, Verdict::Differs),
    // 99 sleeps or 100 lie between 100 rows of runs.
    ("probe/minutes", 10.0 / 60.0, Verdict::Differs),
    ("probe/run", 5.0, Verdict::Differs),
    ("probe/rate", HALF_BIN_MIPS, Verdict::Differs),
    ("on/rate-loss", HALF_PER_CENT, Verdict::Differs),
    ("on/time-share", HALF_PER_CENT, Verdict::Erratum),
    ("on/full-load", HALF_PER_CENT, Verdict::Differs),
    ("off/rate/clean", HALF_BIN_MIPS, Verdict::Differs),
    ("off/rate/second", HALF_BIN_MIPS, Verdict::Differs),
    ("off/rate/third", HALF_BIN_MIPS, Verdict::Differs),
    // Printed as about 90 %, and in tenths of a per cent.
    ("off/sample-share/clean", 0.05, Verdict::Differs),
    ("off/sample-share/second", 0.0005, Verdict::Differs),
    ("off/sample-share/third", 0.0005, Verdict::Differs),
    ("off/average", 0.0005, Verdict::Differs),
    ("off/loss", HALF_PER_CENT, Verdict::Differs),
    ("off/synchronised", 0.0005, Verdict::Erratum),
    ("off/slowdown-over-on", 0.5, Verdict::Differs),
    // Its last digit is cut off, not rounded.
    ("off/meeting", 2.0 * HALF_PER_CENT, Verdict::Differs),
    ("off/activity", HALF_PER_CENT, Verdict::Erratum),
    ("off/full-load", HALF_PER_CENT, Verdict::Differs),
    ("worth", HALF_PER_CENT, Verdict::Differs),
];

/// Gives a printed figure that is computed its verdict.
pub(super) fn judged(item: Item) -> Item {
    let id = item.id.trim_start_matches("interference/");
    match TOLERANCES.iter().find(|(of, ..)| *of == id) {
        Some((_, half_digit, otherwise)) => by_formula(item, *half_digit, *otherwise),
        None => item,
    }
}

fn noted(item: Item, note: impl Into<String>) -> Item {
    Item {
        note: note.into(),
        ..item
    }
}

pub(super) fn probe_items() -> Vec<Item> {
    let (runs, times) = memo::SCHEDULE;
    let done = 1.0 + 10.0 * (memo::LOOP_INSTRUCTIONS - 1.0);
    let minutes = (runs * times * memo::LOOP_US / 1e6 + times * memo::SLEEP_S) / 60.0;
    let rate = memo::MIX.0 / 1e6;
    vec![
        item(
            "probe/samples",
            "samples, 50 in a row, 100 times",
            "samples",
            Some(5000.0),
            Some(runs * times),
        ),
        noted(
            item(
                "probe/minutes",
                "the whole measurement",
                "min",
                Some(memo::METERING_S / 60.0),
                Some(minutes),
            ),
            "printed: 15 to 30 min, beside the histogram 995.86 s; by formula sleeps of 10 s and runs",
        ),
        noted(
            item(
                "probe/run",
                "a run of the probe",
                "us",
                Some(memo::LOOP_US),
                Some(done / memo::ON_PEAKS.0),
            ),
            format!(
                "by formula: 11 instructions, 10 of them ten times, so 101, at the main peak; but beside the \
                 histogram stand {} instructions a trial, which would take {:.0} us",
                memo::TRIAL_INSTRUCTIONS,
                memo::TRIAL_INSTRUCTIONS / memo::ON_PEAKS.0
            ),
        ),
        noted(
            item(
                "probe/rate",
                "mean rate of the whole system, which the probe is to have",
                "mips",
                Some(rate),
                Some(PrintedPeaks::average()),
            ),
            "by formula: the mean of the legible rates with interlace off",
        ),
        item(
            "probe/accesses",
            "memory accesses for each instruction",
            "accesses",
            None,
            Some(memo::MIX.1 / memo::MIX.0),
        ),
    ]
}

/// A printed figure as an estimate without an interval.
fn bare(value: f64, level: f64) -> Estimate {
    Estimate {
        value,
        interval: Interval { lo: None, hi: None },
        level,
        unit: "1".to_owned(),
        method: "as printed".to_owned(),
        n: 0,
        n_effective: 0.0,
        notes: Vec::new(),
    }
}

/// Converts a share of samples with that slow-down into a share of the time; all other samples are
/// clean.
fn of_time(samples: f64, slowdown: f64) -> f64 {
    samples * slowdown / (1.0 - samples + samples * slowdown)
}

pub(super) fn on_items(level: f64) -> Vec<Item> {
    let (clean, slow) = memo::ON_PEAKS;
    let slowdown = clean / slow;
    let time = of_time(memo::ON_SHARE, slowdown);
    let loss = |activity: f64| predict(&bare(time, level), &bare(slowdown, level), activity).value;
    let full_loss = loss(memo::FULL_ACTIVITY);
    vec![
        noted(
            item(
                "on/rate-loss",
                "loss of rate while the drum is active",
                "1",
                Some(0.07),
                Some(1.0 - slow / clean),
            ),
            format!(
                "by formula: 1 less {slow} / {clean}; each instruction takes {:.1} % longer",
                100.0 * (slowdown - 1.0)
            ),
        ),
        noted(
            item(
                "on/sample-share",
                "share of samples in the second peak",
                "1",
                Some(memo::ON_SHARE),
                None,
            ),
            "about, as printed; not measured: the histogram of figure one cannot be read",
        ),
        noted(
            item(
                "on/time-share",
                "share of the time that the drum is active",
                "1",
                Some(memo::ON_SHARE),
                Some(time),
            ),
            "printed: that of the samples; a slow sample takes longer",
        ),
        item("on/loss", "mean loss", "1", None, Some(loss(time))),
        noted(
            item(
                "on/full-load",
                "mean loss at full load, the drum active for 30 %",
                "1",
                Some(memo::ON_FULL_LOSS),
                Some(full_loss),
            ),
            format!(
                "{}: 0.3 (1 - .328 / .352)",
                share_verdict((memo::ON_FULL_LOSS, full_loss), HALF_PER_CENT)
            ),
        ),
    ]
}

/// Probability that two users meet in one of two memories with these numbers of pages. Each is in
/// one of them at random, in proportion to its pages.
pub(super) fn meeting(pages: (f64, f64)) -> f64 {
    let all = pages.0 + pages.1;
    (pages.0 / all).powi(2) + (pages.1 / all).powi(2)
}

pub(super) fn off_items(found: &PrintedPeaks) -> Vec<Item> {
    let mut items = Vec::new();
    for (i, &(rate, share)) in memo::OFF_PEAKS.iter().enumerate() {
        let which = MARKS[i];
        items.push(item(
            &format!("off/rate/{which}"),
            &format!("rate of the {which} peak"),
            "mips",
            Some(rate),
            found.rate(i),
        ));
        let samples = found.peak(i).map(|peak| &peak.sample_share);
        let in_words = samples.map_or_else(String::new, |e| {
            format!("interval {}", figure(e).interval())
        });
        items.push(noted(
            item(
                &format!("off/sample-share/{which}"),
                &format!("share of samples in the {which} peak"),
                "1",
                Some(share),
                samples.map(|e| e.value),
            ),
            in_words,
        ));
        items.push(item(
            &format!("off/time-share/{which}"),
            &format!("share of the time in the {which} peak"),
            "1",
            None,
            found.peak(i).map(|peak| peak.time_share.value),
        ));
        if i > 0 {
            items.push(noted(
                item(
                    &format!("off/slowdown/{which}"),
                    &format!("slow-down of the {which} peak"),
                    "times",
                    None,
                    found.peak(i).map(|peak| peak.slowdown.value),
                ),
                format!("by the printed rates {:.3}", memo::ON_PEAKS.0 / rate),
            ));
        }
    }
    items.extend(loss_items(found));
    items
}

/// The additional time for each instruction while drum and probe meet, both slow peaks together, over
/// that with interlace.
pub(super) fn slower_without(found: &PrintedPeaks) -> Option<f64> {
    // Time over samples of both slow peaks, divided by the same ratio of the clean one.
    let time = found.disturbed(|peak| &peak.time_share)?;
    let samples = found.disturbed(|peak| &peak.sample_share)?;
    let slowdown = time / samples * (1.0 - samples) / (1.0 - time);
    Some((slowdown - 1.0) / (memo::ON_PEAKS.0 / memo::ON_PEAKS.1 - 1.0))
}

fn loss_items(found: &PrintedPeaks) -> Vec<Item> {
    let clean = memo::OFF_PEAKS[0].0;
    let loss = &found.peaks.mean_loss;
    let meets = meeting(memo::PAGES);
    let disturbed = found.disturbed(|peak| &peak.time_share);
    let active = disturbed.map(|share| share / meets);
    let full = active.map(|active| memo::FULL_ACTIVITY / active);
    // The shares of all slow peaks grow by the same factor.
    let full_loss = full.map(|times| loss.value * times);
    let on_full = memo::FULL_ACTIVITY * (1.0 - memo::ON_PEAKS.1 / memo::ON_PEAKS.0);
    vec![
        noted(
            item(
                "off/average",
                "average rate",
                "mips",
                Some(memo::OFF_AVERAGE),
                Some(PrintedPeaks::average()),
            ),
            "the mean over samples; work over time is less, see the loss",
        ),
        noted(
            item(
                "off/loss",
                "mean loss",
                "1",
                Some(memo::OFF_LOSS.0),
                Some(loss.value),
            ),
            format!(
                "about, as printed; interval {}; of the printed average {:.1} %",
                figure(loss).interval(),
                100.0 * (1.0 - memo::OFF_AVERAGE / clean)
            ),
        ),
        noted(
            item(
                "off/synchronised",
                "one instruction for each cycle of the drum",
                "mips",
                Some(memo::OFF_PEAKS[2].0),
                Some(1.0 / memo::DRUM_CYCLE_US),
            ),
            format!(
                "printed: exactly one instruction in {} us; that is {:.3}, and the printed peak is {:+.1} % off it",
                memo::DRUM_CYCLE_US,
                1.0 / memo::DRUM_CYCLE_US,
                100.0 * (memo::OFF_PEAKS[2].0 * memo::DRUM_CYCLE_US - 1.0)
            ),
        ),
        noted(
            item(
                "off/slowdown-over-on",
                "slow-down while they meet, over that with interlace",
                "times",
                Some(memo::SLOWER_WITHOUT),
                slower_without(found),
            ),
            "printed: about a factor of four; by formula of the additional time, both slow peaks together",
        ),
        noted(
            item(
                "off/meeting",
                "share of the time that drum and probe meet in one memory",
                "1",
                Some(memo::MEETING),
                Some(meets),
            ),
            "by formula: of 50 and 100 pages, (1/3)^2 + (2/3)^2 = 5/9",
        ),
        noted(
            item(
                "off/activity",
                "share of the time that the drum is active",
                "1",
                Some(memo::OFF_ACTIVITY),
                active,
            ),
            format!(
                "printed: 10 % over 55 %; by formula the share of the time out of the clean peak over 5/9; from \
                 the samples it would be {}",
                shown(
                    found
                        .disturbed(|peak| &peak.sample_share)
                        .map(|s| s / meets),
                    "1"
                )
            ),
        ),
        noted(
            item(
                "off/full-load",
                "mean loss at full load, the drum active for 30 %",
                "1",
                Some(memo::OFF_LOSS.1),
                full_loss,
            ),
            "by formula: the loss found, times 30 % over the activity found",
        ),
        noted(
            item(
                "worth",
                "what interlace is worth at full load",
                "1",
                Some(memo::WORTH),
                full_loss.map(|off| off - on_full),
            ),
            "the difference of the losses at full load; printed: about, and as much as two more users",
        ),
    ]
}
