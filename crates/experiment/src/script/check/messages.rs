//! Checks that each channel has one process that sends and another that receives.

use super::super::message::Result;
use super::super::verb::Verb;
use super::Draft;

pub(super) fn check(draft: &Draft<'_>) -> Result<()> {
    for (c, name) in draft.channels.names.iter().enumerate() {
        let from = &draft.channels.from[c];
        let sender = only(draft, c, true)?;
        let receiver = only(draft, c, false)?;
        match (sender, receiver) {
            (None, None) => {
                let why = format!("no step uses the channel {name:?}; leave it out");
                return Err(from.bad(why));
            }
            (None, Some((p, s))) => {
                let why = format!(
                    "nobody sends over {name:?}, so this waits for ever; add send = {name:?} to another process"
                );
                return Err(draft.bad(p, s, why));
            }
            (Some((p, s)), None) => {
                let why = format!(
                    "nobody receives from {name:?}; add receive = {name:?} to another process"
                );
                return Err(draft.bad(p, s, why));
            }
            (Some((p, _)), Some((q, s))) if p == q => {
                let why = format!(
                    "{} sends and receives over {name:?}; a channel goes from one process to another, so use two",
                    draft.name(p)
                );
                return Err(draft.bad(q, s, why));
            }
            (Some((p, s)), Some((q, _))) => draft.same_replicas(p, s, q)?,
        }
    }
    Ok(())
}

/// The one process that sends or receives, and its first step that does.
fn only(draft: &Draft<'_>, channel: usize, sends: bool) -> Result<Option<(usize, usize)>> {
    let mut users = draft.steps().filter(|(_, _, verb)| match verb {
        Verb::Send { channel: c, .. } => sends && *c == channel,
        Verb::Receive { channel: c } => !sends && *c == channel,
        _ => false,
    });
    let Some((first, step, _)) = users.next() else {
        return Ok(None);
    };
    if let Some((second, step, _)) = users.find(|(p, _, _)| *p != first) {
        let (name, does) = (
            &draft.channels.names[channel],
            if sends { "send over" } else { "receive from" },
        );
        let why = format!(
            "{} and {} both {does} {name:?}; give each a channel of its own",
            draft.name(first),
            draft.name(second)
        );
        return Err(draft.bad(second, step, why));
    }
    Ok(Some((first, step)))
}
