//! `undertick export --to otlp`.

use std::sync::atomic::AtomicBool;

use undertick_convert::export::otlp::{
    Chosen, Counts, Endpoint, Exported, FileForm, Sent, Target, export_spans,
};
use undertick_format::read::Trace;

use crate::progress::Progress;
use crate::{Failure, options, output};

/// Exit status after Ctrl-C, as a shell gives it.
const INTERRUPTED: u8 = 130;

pub fn run(arguments: &options::Export) -> Result<u8, Failure> {
    if arguments.table.is_some() {
        return Err(Failure::usage(
            "--table is not for otlp, which has the spans that the events form",
        ));
    }
    let file = &arguments.file;
    let endpoint = Endpoint::parse(&file.to_string_lossy())?;
    let target = match &endpoint {
        Some(endpoint) => Target::Collector(endpoint),
        None => Target::File(
            file,
            FileForm::by_name(file).ok_or_else(|| {
                Failure::usage(format!(
                    "{}: the name says which form is meant: it ends in {}; a collector's address \
                     begins with http://",
                    file.display(),
                    FileForm::ENDS
                ))
            })?,
        ),
    };
    let trace = Trace::open(&arguments.trace)?;
    // A file that is being written is not worth waiting for: Ctrl-C ends the program, as elsewhere.
    let stop = match endpoint {
        Some(_) => output::stop_on_signals(),
        None => AtomicBool::new(false).into(),
    };
    let mut progress = Progress::new();
    let what = if endpoint.is_some() {
        "sending"
    } else {
        "exporting"
    };
    let exported = export_spans(
        &trace,
        target,
        arguments.only.as_ref(),
        &stop,
        &mut |share| {
            progress.share(what, share);
        },
    );
    progress.done();
    let exported = exported?;
    let to = match &endpoint {
        Some(endpoint) => endpoint.url().to_owned(),
        None => file.display().to_string(),
    };
    say!(
        "undertick: {} in {to}",
        counted(&exported.counts, trace.manifest.lost)
    );
    if let (Some(chosen), Some(only)) = (&exported.chosen, &arguments.only) {
        say!("undertick: {}", choice(chosen, only.name()));
    }
    Ok(received(&exported))
}

/// Says what a collector received; returns the exit status.
fn received(exported: &Exported) -> u8 {
    let Some(sent) = &exported.sent else { return 0 };
    let Sent {
        requests,
        spans,
        rejected,
        message,
        retries,
    } = sent;
    say!(
        "undertick: the OpenTelemetry Collector received {} in {}, with {}",
        number_of(*spans, "span", ""),
        number_of(*requests, "request", ""),
        number_of(*retries, "repetition", "")
    );
    let said = message
        .as_ref()
        .map_or_else(String::new, |said| format!(": {said}"));
    if *rejected > 0 {
        alert!(
            "undertick: it rejected {}",
            number_of(*rejected, "span", &said)
        );
    } else if message.is_some() {
        alert!("undertick: it warns{said}");
    }
    if exported.interrupted {
        alert!("undertick: interrupted; what the collector has not received is not sent");
        return INTERRUPTED;
    }
    u8::from(*rejected > 0)
}

/// All counts; those that are 0 beside the first three are left out.
fn counted(counts: &Counts, lost: u64) -> String {
    let Counts {
        spans,
        unfinished,
        points,
        points_alone,
        points_dropped,
        too_deep,
        without_begin,
        kernel_rows,
    } = *counts;
    let mut said = format!(
        "{} ({unfinished} unfinished), {} lost",
        number_of(spans, "span", ""),
        number_of(lost, "event", "")
    );
    for (count, what, rest) in [
        (points, "point", " in spans"),
        (points_alone, "point", " in no span, as spans of no length"),
        (
            points_dropped,
            "point",
            " beyond the bound of a span, counted in it",
        ),
        (too_deep, "span", " beyond the deepest nesting left out"),
        (without_begin, "end", " without a begin left out"),
        (kernel_rows, "row", " of the kernel left out"),
    ] {
        if count > 0 {
            said += &format!(", {}", number_of(count, what, rest));
        }
    }
    said
}

/// A count with its noun, in the number that fits.
fn number_of(count: u64, what: &str, rest: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}{rest}")
}

fn choice(chosen: &Chosen, name: &str) -> String {
    let Chosen {
        limit_ns,
        of_name,
        slow,
        left_out,
    } = chosen;
    format!(
        "{slow} of {of_name} spans {name} took longer than {limit_ns} ns; these and the spans inside \
         them were exported, {left_out} other spans were not"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_said() {
        let counts = Counts {
            spans: 3,
            unfinished: 1,
            points: 2,
            ..Counts::default()
        };
        assert_eq!(
            counted(&counts, 4),
            "3 spans (1 unfinished), 4 events lost, 2 points in spans"
        );
    }
}
