//! Chrome trace events: JSON as written by Chrome itself, VizTracer, tracing-chrome and many
//! others.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use undertick_format::TraceError;
use undertick_format::schema::Kind;

use super::SourceInfo;
use super::decimal;
use super::intake::{At, Id, Intake, SpoolKind};
use super::json::{Bad, Objects};

/// An event as written in the file.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    ph: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    cat: Option<&'a RawValue>,
    ts: Option<&'a RawValue>,
    dur: Option<&'a RawValue>,
    pid: Option<&'a RawValue>,
    tid: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    id2: Option<&'a RawValue>,
    args: Option<&'a RawValue>,
}

/// Most names of messages for which a rule is stored.
const MOST_MESSAGES: usize = 4096;

/// Whether these bytes begin as JSON does.
pub(super) fn is_json(start: &[u8]) -> bool {
    matches!(start.trim_ascii_start(), [b'[' | b'{', ..])
}

pub(super) fn read(
    file: &Path,
    reader: impl BufRead,
    intake: &mut Intake,
) -> Result<SourceInfo, TraceError> {
    let mut objects = Objects::new(reader, "traceEvents");
    let mut events = Events {
        intake,
        process: None,
        messages: BTreeSet::new(),
    };
    let mut read = 0u64;
    loop {
        match objects.next() {
            Ok(Some(object)) => {
                read += 1;
                events.take(object)?;
            }
            Ok(None) => break,
            Err(Bad::Io(error)) => return Err(TraceError::io(file, "cannot read")(error)),
            Err(Bad::Syntax(at, what)) => {
                return Err(TraceError::damaged(
                    file,
                    format!("byte {at}: {what} (is it a Chrome trace? see --from)"),
                ));
            }
        }
    }
    let mut notes = Vec::new();
    if objects.is_cut {
        notes.push(format!(
            "the file was cut short at byte {}: its last bracket is missing; {read} objects are there",
            objects.at()
        ));
    }
    let messages = events.messages.into_iter().collect();
    Ok(SourceInfo {
        clock: "chrome json",
        process: events.process,
        messages,
        notes,
        ..SourceInfo::default()
    })
}

struct Events<'a> {
    intake: &'a mut Intake,
    process: Option<String>,
    messages: BTreeSet<String>,
}

impl Events<'_> {
    fn take(&mut self, object: &[u8]) -> Result<(), TraceError> {
        let Ok(event) = serde_json::from_slice::<Event<'_>>(object) else {
            self.intake.left_out("object that is no event");
            return Ok(());
        };
        let phase = event.ph.and_then(text).unwrap_or_default();
        if phase == "M" {
            self.metadata(&event);
            return Ok(());
        }
        let Some(ns) = self.time(event.ts) else {
            self.intake.left_out("event without a time");
            return Ok(());
        };
        let (pid, tid) = (id(event.pid), id(event.tid));
        let name = event.name.and_then(text).unwrap_or_default();
        match &*phase {
            "b" | "e" | "n" | "S" | "F" => return self.of_no_thread(&phase, &event, ns, &name),
            "B" | "E" | "X" | "i" | "I" | "R" | "C" | "s" | "t" | "f" => {}
            other => {
                self.intake.left_out(&format!("event of phase {other:?}"));
                return Ok(());
            }
        }
        let Some(track) = self.intake.thread(&pid, &tid) else {
            return Ok(());
        };
        let at = At {
            track,
            ns,
            cpu: None,
        };
        match &*phase {
            "B" => {
                let number = self.intake.event(&name);
                self.intake.begin(at, number)
            }
            "E" => {
                let number = event.name.map(|_| self.intake.event(&name));
                self.intake.end(at, number)
            }
            "X" => self.complete(at, &event, &name),
            "C" => self.counter(at, &event, &name),
            "s" | "t" | "f" => self.message(at, &phase, &event, &name),
            _ => {
                let number = self.intake.event(&name);
                let payload = event.args.and_then(only_integer).unwrap_or(0);
                self.intake.instant(at, number, payload)
            }
        }
    }

    fn time(&mut self, raw: Option<&RawValue>) -> Option<i64> {
        let text = raw?.get();
        // Some writers quote times.
        let found = decimal::ns(text.trim_matches('"'), 3)?;
        if found.is_cut {
            self.intake.left_out("digits below a nanosecond");
        }
        Some(found.ns)
    }

    fn metadata(&mut self, event: &Event<'_>) {
        let args: Option<NameArgs<'_>> = event
            .args
            .and_then(|args| serde_json::from_str(args.get()).ok());
        let name = args.and_then(|args| args.name).and_then(text);
        match (&*event.name.and_then(text).unwrap_or_default(), name) {
            ("thread_name", Some(name)) => {
                self.intake
                    .name_thread(&id(event.pid), &id(event.tid), &name);
            }
            ("process_name", Some(name)) => {
                self.process.get_or_insert_with(|| name.into_owned());
            }
            _ => self.intake.left_out("metadata beside names"),
        }
    }

    fn complete(&mut self, at: At, event: &Event<'_>, name: &str) -> Result<(), TraceError> {
        let number = self.intake.event(name);
        let Some(length) = self.time(event.dur) else {
            self.intake.left_out("span (X) without its length");
            return Ok(());
        };
        if !self.intake.complete(at, length, number)? {
            self.intake.left_out("span (X) of negative length");
        }
        Ok(())
    }

    /// Adds each number of a counter as an instant with the number as its payload.
    fn counter(&mut self, at: At, event: &Event<'_>, name: &str) -> Result<(), TraceError> {
        let args = event.args.map_or("{}", RawValue::get);
        let Ok(args) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(args)
        else {
            self.intake.left_out("counter without numbers");
            return Ok(());
        };
        let is_one = args.len() == 1;
        for (key, value) in args {
            let called = if is_one {
                name.to_owned()
            } else {
                format!("{name} {key}")
            };
            let value = match (value.as_i64(), value.as_f64()) {
                (Some(value), _) => value,
                (None, Some(value)) => {
                    self.intake.left_out("fraction of a counter");
                    value.floor() as i64
                }
                _ => {
                    self.intake.left_out("counter without numbers");
                    continue;
                }
            };
            let number = self.intake.event(&called);
            self.intake.instant(at, number, value)?;
        }
        Ok(())
    }

    /// Adds a begin, a step or an end of an arrow as an instant with the arrow's number as
    /// payload.
    fn message(
        &mut self,
        at: At,
        phase: &str,
        event: &Event<'_>,
        name: &str,
    ) -> Result<(), TraceError> {
        let what = match phase {
            "s" => "start",
            "t" => "step",
            _ => "end",
        };
        if self.messages.len() < MOST_MESSAGES && phase != "t" {
            self.messages.insert(name.to_owned());
        }
        let number = self.intake.event(&format!("{name} {what}"));
        let payload = numeric_id(event);
        self.intake.instant(at, number, payload)
    }

    fn of_no_thread(
        &mut self,
        phase: &str,
        event: &Event<'_>,
        ns: i64,
        name: &str,
    ) -> Result<(), TraceError> {
        let pid = self.intake.number(&id(event.pid));
        let mut hasher = DefaultHasher::new();
        event.cat.map(RawValue::get).hash(&mut hasher);
        numeric_id(event).hash(&mut hasher);
        if matches!(phase, "S" | "F") {
            name.hash(&mut hasher);
        }
        let kind = match phase {
            "b" | "S" => SpoolKind::Kind(Kind::Begin),
            "n" => SpoolKind::Kind(Kind::Instant),
            _ if event.name.is_some() => SpoolKind::Kind(Kind::End),
            _ => SpoolKind::EndOfInnermost,
        };
        let number = self.intake.event(name);
        let payload = event.args.and_then(only_integer).filter(|_| phase == "n");
        let payload = payload.unwrap_or(0);
        (self.intake).of_no_thread(pid, hasher.finish(), ns, kind, number, payload)
    }
}

#[derive(Deserialize)]
struct NameArgs<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
}

/// Returns a string, or any other value as written.
fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get();
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return Some(Cow::Borrowed(text));
    };
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
}

fn id(raw: Option<&RawValue>) -> Id {
    let Some(raw) = raw else { return Id::Number(0) };
    match raw.get().parse() {
        Ok(number) => Id::Number(number),
        Err(_) => Id::Text(text(raw).unwrap_or_default().into_owned()),
    }
}

/// Returns the number that identifies related events: the id itself, where that is a number.
fn numeric_id(event: &Event<'_>) -> i64 {
    let Some(raw) = event.id.or(event.id2) else {
        return 0;
    };
    let text = raw.get().trim_matches('"');
    let number = match text.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    };
    number.unwrap_or_else(|| {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        // An id that is not a number belongs to one process: the same text in another process is
        // a different id.
        event.pid.map(RawValue::get).hash(&mut hasher);
        hasher.finish().cast_signed()
    })
}

/// Returns the integer among the arguments if there is exactly one.
fn only_integer(args: &RawValue) -> Option<i64> {
    let args: serde_json::Map<String, serde_json::Value> = serde_json::from_str(args.get()).ok()?;
    let mut integers = args.values().filter_map(serde_json::Value::as_i64);
    let first = integers.next();
    first.filter(|_| integers.next().is_none())
}
