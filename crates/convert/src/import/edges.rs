//! Derives spans from event names, for tools that only know events.

/// The role of an event, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// Begin of the span of that name.
    Begin(String),
    /// End of the span of that name.
    End(String),
    /// A point.
    Neither,
}

/// Suffixes: `work_begin` and `work_end` are the edges of `work`.
const LAST: [(&str, bool); 8] = [
    ("begin", true),
    ("end", false),
    ("entry", true),
    ("exit", false),
    ("enter", true),
    ("leave", false),
    ("start", true),
    ("stop", false),
];

/// Prefixes of system calls: `sys_enter_write`, `syscall_exit_write`.
const FIRST: [(&str, &str, bool); 6] = [
    ("sys_enter_", "sys_", true),
    ("sys_exit_", "sys_", false),
    ("syscall_entry_", "syscall_", true),
    ("syscall_exit_", "syscall_", false),
    ("compat_syscall_entry_", "compat_syscall_", true),
    ("compat_syscall_exit_", "compat_syscall_", false),
];

impl Edge {
    /// Returns the edge that an event of this name is. A prefix `group:` is kept.
    pub(super) fn from_name(event: &str) -> Self {
        let (group, name) = match event.rfind(':') {
            Some(colon) => event.split_at(colon + 1),
            None => ("", event),
        };
        for (prefix, stays, is_begin) in FIRST {
            if let Some(rest) = name.strip_prefix(prefix) {
                return Self::new(format!("{group}{stays}{rest}"), is_begin);
            }
        }
        for (word, is_begin) in LAST {
            let Some(stem) = name.strip_suffix(word) else {
                continue;
            };
            return match stem.strip_suffix(['_', '-', '.']) {
                Some(stem) if !stem.is_empty() => Self::new(format!("{group}{stem}"), is_begin),
                _ if stem.is_empty() && !group.is_empty() => {
                    Self::new(group.trim_end_matches(':').to_owned(), is_begin)
                }
                _ => Self::Neither,
            };
        }
        Self::Neither
    }

    fn new(name: String, is_begin: bool) -> Self {
        if is_begin {
            Self::Begin(name)
        } else {
            Self::End(name)
        }
    }
}

#[cfg(test)]
mod tests;
