//! Reads one step: its verb, and the verb's arguments.

use super::field::{Fields, Given};
use super::head::{Names, TOP_VALUES};
use super::message::{Bad, Origin, Result};
use super::raw::Entry;
use super::verb::{Verb, Words};

/// The keys of a step that are verbs.
const VERBS: &[&str] = &[
    "null",
    "work",
    "turns",
    "sleep",
    "yield",
    "run_out",
    "call",
    "read",
    "record",
    "lock",
    "unlock",
    "lock_unlock",
    "wakeup",
    "block",
    "notify",
    "addevent",
    "delevent",
    "wait",
    "until_blocked",
    "send",
    "receive",
    "prepare",
    "access",
    "fork",
    "reap",
    "create",
    "touch",
    "fill",
    "free",
    "go_to",
];

/// The other keys, and the verb to which each belongs.
const OTHERS: &[(&str, Option<&str>)] = &[
    ("number", None),
    ("name", None),
    ("timed", None),
    ("includes", None),
    ("times", Some("lock_unlock")),
    ("words", Some("send")),
];

/// Maximum number of words of a message or an argument.
const MOST_WORDS: u64 = 1 << 24;

/// Maximum number of turns of counted work.
const MOST_TURNS: u64 = 1_000_000_000;

/// Default number of times of a `lock_unlock`.
const USUAL_TIMES: u64 = 1000;

/// Maximum number of times.
const MOST_TIMES: u64 = 1_000_000_000;

/// The objects that a script declares, by name.
pub(super) struct Declared<'s> {
    pub(super) processes: &'s Names,
    pub(super) locks: &'s Names,
    pub(super) channels: &'s Names,
    pub(super) regions: &'s Names,
}

/// The effect of a step.
pub(super) enum Does {
    Verb {
        verb: Verb,
        /// The verb in words.
        name: String,
    },
    /// The next pass begins at the step with that number.
    GoTo(u32),
}

/// A step at one setting.
pub(super) struct Made {
    pub(super) does: Does,
    pub(super) number: Option<Given<u64>>,
    pub(super) name: Option<Given<String>>,
    pub(super) timed: bool,
    pub(super) includes: String,
    /// Its verb as written, and its place.
    pub(super) key: String,
    pub(super) from: Origin,
}

impl Made {
    pub(super) fn read(fields: Fields<'_>, declared: &Declared<'_>) -> Result<Self> {
        let entry = verb_of(fields)?;
        let (does, note) = Reader {
            fields,
            key: &entry.key,
            declared,
        }
        .read()?;
        let name = fields.name("")?;
        if let Some(name) = &name
            && name.value.chars().all(|c| c.is_ascii_digit())
        {
            let why = "the name of a step is not a number; write number = 3, or a word";
            return Err(name.from.bad(why));
        }
        Ok(Self {
            does,
            number: fields.whole("number", 1..=u32::MAX.into())?,
            name,
            timed: fields.flag("timed")?.is_none_or(|t| t.value),
            includes: fields.includes()?,
            key: entry.key.clone(),
            from: Origin { at: entry.at, note },
        })
    }
}

/// Finds the one key that is a verb.
fn verb_of(fields: Fields<'_>) -> Result<&Entry> {
    let is_verb = |entry: &&Entry| VERBS.contains(&entry.key.as_str());
    let known: Vec<&str> = OTHERS.iter().map(|(key, _)| *key).collect();
    let known = [VERBS, known.as_slice()].concat();
    fields.table.only("a step", &known, TOP_VALUES)?;
    let mut verbs = fields.table.entries.iter().filter(is_verb);
    let Some(verb) = verbs.next() else {
        let why = "this step does nothing; give it one verb, e.g. wakeup = \"B\", block = true, work = \"5us\"";
        return Err(Bad::new(fields.table.at, why));
    };
    if let Some(second) = verbs.next() {
        let why = format!(
            "{} is a second verb beside {}; put a line [[process.step]] between them",
            second.key, verb.key
        );
        return Err(Bad::new(second.at, why));
    }
    for (key, of) in OTHERS {
        if let (Some(of), Some(entry)) = (of, fields.table.entry(key))
            && verb.key != *of
        {
            let why = format!(
                "{key} goes with {of} only, not with {}; leave it out",
                verb.key
            );
            return Err(Bad::new(entry.at, why));
        }
    }
    Ok(verb)
}

/// Reads the arguments of a verb.
struct Reader<'s, 'd> {
    fields: Fields<'s>,
    key: &'s str,
    declared: &'d Declared<'d>,
}

/// The effect of a step, and the note of the parameters in it.
type Read = Result<(Does, String)>;

impl Reader<'_, '_> {
    fn read(&self) -> Read {
        let Declared {
            processes,
            locks,
            channels,
            regions,
        } = self.declared;
        match self.key {
            "null" => self.plain(Verb::Null),
            "yield" => self.plain(Verb::Yield),
            "run_out" => self.plain(Verb::RunOut),
            "block" => self.plain(Verb::Block),
            "wait" => self.plain(Verb::Wait),
            "reap" => self.plain(Verb::Reap),
            "work" => self.time(true, |ns| Verb::Work { ns }),
            "turns" => self.turns(),
            "sleep" => self.time(false, |ns| Verb::Sleep { ns }),
            "call" => self.kind("system call", Verb::Call, "call "),
            "read" => self.kind("clock to read", Verb::Read, "read "),
            "record" => self.kind("thing to record", Verb::Record, "record "),
            "fork" => self.kind("way of making a child", Verb::Fork, ""),
            "lock" => self.named(locks, |lock| Ok(Verb::Lock { lock })),
            "unlock" => self.named(locks, |lock| Ok(Verb::Unlock { lock })),
            "lock_unlock" => self.named(locks, |lock| {
                let times = self.fields.whole("times", 1..=MOST_TIMES)?;
                let times = times.map_or(USUAL_TIMES, |n| n.value);
                Ok(Verb::LockUnlock { lock, times })
            }),
            "wakeup" => self.named(processes, |process| Ok(Verb::Wakeup { process })),
            "until_blocked" => self.named(processes, |process| Ok(Verb::UntilBlocked { process })),
            "notify" => self.event(|event| Verb::Notify { event }),
            "addevent" => self.event(|event| Verb::AddEvent { event }),
            "delevent" => self.event(|event| Verb::DelEvent { event }),
            "send" => self.named(channels, |channel| {
                let words = self.fields.whole("words", 0..=MOST_WORDS)?;
                let words = words.map_or(0, |n| n.value);
                Ok(Verb::Send { channel, words })
            }),
            "receive" => self.named(channels, |channel| Ok(Verb::Receive { channel })),
            "prepare" => self.words(|words| Verb::Prepare { words }),
            "access" => self.words(|words| Verb::Access { words }),
            "create" => self.named(regions, |region| Ok(Verb::Create { region })),
            "touch" => self.named(regions, |region| Ok(Verb::Touch { region })),
            "fill" => self.named(regions, |region| Ok(Verb::Fill { region })),
            "free" => self.named(regions, |region| Ok(Verb::Free { region })),
            _ => self.go_to(),
        }
    }

    /// A value that the verb requires.
    fn there<T>(&self, found: Option<Given<T>>) -> Result<Given<T>> {
        self.fields.need(found, "a step", self.key)
    }

    fn plain(&self, verb: Verb) -> Read {
        let given = self.there(self.fields.only_true(self.key)?)?;
        self.done(verb, self.key.to_owned(), given.from)
    }

    fn time(&self, may_be_zero: bool, verb: impl Fn(f64) -> Verb) -> Read {
        let ns = self.there(self.fields.nanos(self.key, may_be_zero)?)?;
        self.done(verb(ns.value), self.key.to_owned(), ns.from)
    }

    fn kind<K: Words>(&self, what: &str, verb: impl Fn(K) -> Verb, before: &str) -> Read {
        let kind = self.there(self.fields.word(self.key, what)?)?;
        let name = format!("{before}{}", K::word(kind.value));
        self.done(verb(kind.value), name, kind.from)
    }

    fn named(&self, names: &Names, verb: impl Fn(usize) -> Result<Verb>) -> Read {
        let example = names.names.first().map_or("m", String::as_str);
        let name = self.there(self.fields.text(self.key, example)?)?;
        let verb = verb(names.find(&name)?)?;
        let shown = format!("{} {}", self.key, name.value);
        self.done(verb, shown, name.from)
    }

    fn event(&self, verb: impl Fn(u32) -> Verb) -> Read {
        let event = self.there(self.fields.whole(self.key, 0..=u32::MAX.into())?)?;
        let name = format!("{} {}", self.key, event.value);
        // The checked range is that of the type.
        let number = u32::try_from(event.value).unwrap_or(u32::MAX);
        self.done(verb(number), name, event.from)
    }

    fn words(&self, verb: impl Fn(u64) -> Verb) -> Read {
        let words = self.there(self.fields.whole(self.key, 0..=MOST_WORDS)?)?;
        self.done(verb(words.value), self.key.to_owned(), words.from)
    }

    fn turns(&self) -> Read {
        let turns = self.there(self.fields.whole(self.key, 0..=MOST_TURNS)?)?;
        let verb = Verb::Turns { turns: turns.value };
        self.done(verb, self.key.to_owned(), turns.from)
    }

    fn go_to(&self) -> Read {
        let number = self.there(self.fields.whole(self.key, 1..=u32::MAX.into())?)?;
        let to = u32::try_from(number.value).unwrap_or(u32::MAX);
        Ok((Does::GoTo(to), number.from.note))
    }

    fn done(&self, verb: Verb, name: String, from: Origin) -> Read {
        Ok((Does::Verb { verb, name }, from.note))
    }
}
