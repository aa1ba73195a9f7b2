//! Parses where a process may run.

use super::field::Given;
use super::head::Names;
use super::message::{Bad, Origin, Result};
use super::plan::Placement;

/// CPU numbers are below this.
const MOST_CPUS: usize = 8192;

/// Maximum number of CPUs in a list.
const LONGEST_LIST: usize = 1024;

/// Makes a placement relative to a process.
type RelativePlacement = fn(usize) -> Placement;

/// The forms that name another process.
const OTHERS: [(&str, RelativePlacement); 4] = [
    ("same cpu as ", Placement::SameCpu),
    ("other cpu than ", Placement::OtherCpu),
    ("same core as ", Placement::SameCore),
    ("other core than ", Placement::OtherCore),
];

/// Reads the place of process `own`.
pub(super) fn read(given: &Given<String>, own: usize, processes: &Names) -> Result<Placement> {
    let text = given.value.as_str();
    if text == "any" {
        return Ok(Placement::Any);
    }
    for (form, place) in OTHERS {
        let Some(name) = text.strip_prefix(form) else {
            continue;
        };
        let name = Given {
            value: name.trim().to_owned(),
            from: given.from.clone(),
        };
        let other = processes.find(&name)?;
        if other == own {
            let why = format!("{text:?} is about this process itself; name another one");
            return Err(given.from.bad(why));
        }
        return Ok(place(other));
    }
    if let Some(number) = text.strip_prefix("cluster ") {
        let cluster = number.trim().parse().ok().filter(|n| *n < MOST_CPUS);
        return cluster.map(Placement::Cluster).ok_or_else(|| {
            let why = format!("{text:?} is no place; write a number from 0, \"cluster 0\"");
            given.from.bad(why)
        });
    }
    let list = text
        .strip_prefix("cpus ")
        .or_else(|| text.strip_prefix("cpu "));
    let Some(cpus) = list.and_then(cpus) else {
        let why = format!(
            "{text:?} is no place; write \"any\", \"cpu 0\", \"cpus 0,2-3\", \"cluster 0\", \
             \"same cpu as A\", \"other cpu than A\", \"same core as A\" or \"other core than A\" (CPUs up to {})",
            MOST_CPUS - 1
        );
        return Err(given.from.bad(why));
    };
    Ok(Placement::Cpus(cpus))
}

/// Parses `0,2-3`: sorted, without duplicates.
fn cpus(list: &str) -> Option<Vec<usize>> {
    let number = |text: &str| {
        let number = text.trim().parse().ok()?;
        (number < MOST_CPUS).then_some(number)
    };
    let mut cpus = Vec::new();
    for part in list.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last): (usize, usize) = (number(first)?, number(last)?);
                if first > last || last - first >= LONGEST_LIST {
                    return None;
                }
                cpus.extend(first..=last);
            }
            None => cpus.push(number(part)?),
        }
        if cpus.len() > LONGEST_LIST {
            return None;
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn other(place: &Placement) -> Option<usize> {
    match *place {
        Placement::Any | Placement::Cpus(_) | Placement::Cluster(_) => None,
        Placement::SameCpu(p)
        | Placement::OtherCpu(p)
        | Placement::SameCore(p)
        | Placement::OtherCore(p) => Some(p),
    }
}

/// Checks that no process's place depends on itself.
pub(super) fn check(places: &[Placement], from: &[Origin]) -> Result<()> {
    for (own, from) in from.iter().enumerate() {
        let mut at = own;
        for _ in 0..places.len() {
            let Some(next) = other(&places[at]) else {
                break;
            };
            if next == own {
                return Err(no_end(from));
            }
            at = next;
        }
    }
    Ok(())
}

fn no_end(from: &Origin) -> Bad {
    from.bad(
        "the places refer to each other in a circle; give one of them a CPU, \"cpu 0\", or \"any\"",
    )
}

#[cfg(test)]
mod tests;
