//! The chapters of the book that explain each warning, by the warning's code.

/// A chapter of the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chapter {
    /// Its file under `docs/book`.
    pub file: &'static str,
    /// Its title, as in its first line.
    pub title: &'static str,
}

const fn chapter(file: &'static str, title: &'static str) -> Chapter {
    Chapter { file, title }
}

const CLOCKS: Chapter = chapter("clocks.md", "Clocks");
const COMPENSATION: Chapter = chapter("compensation.md", "Taking the measuring out again");
const INTERVALS: Chapter = chapter("intervals.md", "Intervals");
const PERTURBATION: Chapter = chapter("perturbation.md", "What measuring costs the program");
const READING: Chapter = chapter("reading-the-page.md", "Reading the page");
const SCRIPTS: Chapter = chapter("scripts.md", "Scripts");
const SLOW_CLOCKS: Chapter = chapter("slow-clocks.md", "Slow clocks");

/// Codes of the warnings in reports, and their chapters.
pub const CHAPTERS: [(&str, Chapter); 26] = [
    ("bad_rows", READING),
    ("below_the_cost", COMPENSATION),
    ("blocking_is_culled", READING),
    ("calibration_disagrees", COMPENSATION),
    ("clock_differs_by_cpu", CLOCKS),
    ("clock_goes_back", CLOCKS),
    ("clock_stepped_back", CLOCKS),
    ("culled_by_ratio", READING),
    ("culled_share", READING),
    ("granularity", SLOW_CLOCKS),
    ("kernel_lost", READING),
    ("least_not_positive", SLOW_CLOCKS),
    ("lost_events", READING),
    ("messages_after_loss", READING),
    ("no_calibration", COMPENSATION),
    ("no_intervals", READING),
    ("perturbation", PERTURBATION),
    ("too_few_samples", INTERVALS),
    ("too_many_names", READING),
    ("too_many_open", READING),
    ("trace", READING),
    ("unknown_descheduled", READING),
    ("unmatched", READING),
    // Codes of experiments.
    ("failed", SCRIPTS),
    ("lacking", SCRIPTS),
    ("timed_out", SCRIPTS),
];

/// The chapter that explains a warning's code.
#[must_use]
pub fn for_code(code: &str) -> Option<Chapter> {
    CHAPTERS
        .iter()
        .find(|(known, _)| *known == code)
        .map(|(_, chapter)| *chapter)
}
