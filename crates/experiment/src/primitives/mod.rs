//! The operating system's primitives, as ordinary scripts: each script says what a primitive does,
//! and what its time includes.

use std::fmt::Write as _;

use undertick_analyze::suggestion;

/// Every group and its script; some depend on the machine.
const SCRIPTS: &[(&str, &str)] = &[
    ("calls", include_str!("calls.toml")),
    ("clocks", include_str!("clocks.toml")),
    ("locks", include_str!("locks.toml")),
    ("rivals", include_str!("rivals.toml")),
    ("crowd", include_str!("crowd.toml")),
    ("wake", include_str!("wake.toml")),
    ("events", include_str!("events.toml")),
    ("yield", include_str!("yield.toml")),
    ("quantum", include_str!("quantum.toml")),
    ("sleep", include_str!("sleep.toml")),
    ("messages", include_str!("messages.toml")),
    ("words", include_str!("words.toml")),
    ("load", include_str!("load.toml")),
    ("children", include_str!("children.toml")),
    ("fork", include_str!("fork.toml")),
    ("memory", include_str!("memory.toml")),
    ("notify", ""),
    ("speed", ""),
    ("recorder", include_str!("recorder.toml")),
];

/// Numbers of waiters to which an event is notified.
const WAITERS: [usize; 5] = [1, 2, 4, 8, 16];

/// The name of a group that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are no primitives {:?}{}; there are: {}",
    _0,
    suggestion(_0, names()),
    names().collect::<Vec<_>>().join(", ")
)]
pub struct Unknown(String);

/// Names of the groups.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCRIPTS.iter().map(|(name, _)| *name)
}

/// Returns the scripts of these groups, or of all groups if none is named, for a machine with these
/// CPUs.
///
/// # Errors
/// A group does not exist.
pub fn scripts(only: &[String], cpus: &[usize]) -> Result<Vec<(String, String)>, Unknown> {
    if let Some(wrong) = only.iter().find(|name| names().all(|n| n != **name)) {
        return Err(Unknown(wrong.clone()));
    }
    let wanted = |name: &str| only.is_empty() || only.iter().any(|n| n == name);
    let mut all = Vec::new();
    for (name, text) in SCRIPTS.iter().filter(|(name, _)| wanted(name)) {
        match *name {
            "notify" => all.extend(WAITERS.map(|waiters| ((*name).to_owned(), notify(waiters)))),
            "speed" => all.push(((*name).to_owned(), speed(cpus))),
            _ => all.push(((*name).to_owned(), (*text).to_owned())),
        }
    }
    Ok(all)
}

/// One process notifies, and this many wait. All are on one CPU, under a policy with which the
/// notifier keeps it, so that none runs before the notify is done.
fn notify(waiters: usize) -> String {
    let mut text = format!(
        "title = \"Notify\"\npasses = 150\nsettle = \"0us\"\nbackend = \"$backend\"\npolicy = \"$policy\"\n\
         [sweep]\npolicy = [\"fifo else batch\"]\nbackend = [\"futex\", \"eventfd\", \"pipe\", \"condvar\"]\nwaiters = [{waiters}]\n\
         [[process]]\nname = \"N\"\n"
    );
    for waiter in 1..=waiters {
        let _ = write!(
            text,
            "[[process.step]]\nuntil_blocked = \"W{waiter}\"\ntimed = false\n"
        );
    }
    text.push_str(
        "[[process.step]]\nnotify = 1\nname = \"notify\"\n\
         includes = \"waking all that wait for the event ($waiters here), which run after it\"\n",
    );
    for waiter in 1..=waiters {
        let _ = write!(
            text,
            "[[process]]\nname = \"W{waiter}\"\nplace = \"same cpu as N\"\nmeasured = false\n\
             [[process.step]]\naddevent = 1\n[[process.step]]\nwait = true\n"
        );
    }
    text.push_str(
        "[[line]]\nname = \"notify, a waiter\"\nof = \"N.notify\"\nagainst = \"waiters\"\n\
         includes = \"waking one more\"\n",
    );
    text
}

/// Executes the same instructions on each CPU.
fn speed(cpus: &[usize]) -> String {
    let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
    format!(
        "title = \"Speed of each CPU\"\npasses = 300\n\
         [sweep]\ncpu = [{}]\n\
         [[process]]\nname = \"A\"\nplace = \"cpu $cpu\"\n\
         [[process.step]]\nturns = 10000\nname = \"10 000 dependent multiply-adds\"\n\
         includes = \"counted instructions: the same on each CPU\"\n",
        list.join(", ")
    )
}

#[cfg(test)]
mod tests;
