//! Random scripts: no panic, no hang, and every message has a place in the text.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use undertick_experiment::script::Script;

const EXAMPLES: [&str; 9] = [
    include_str!("../../../experiments/clocks.toml"),
    include_str!("../../../experiments/fork.toml"),
    include_str!("../../../experiments/injection.toml"),
    include_str!("../../../experiments/locks.toml"),
    include_str!("../../../experiments/memory.toml"),
    include_str!("../../../experiments/round-trip.toml"),
    include_str!("../../../experiments/rpc.toml"),
    include_str!("../../../experiments/traffic-controller.toml"),
    include_str!("../../../experiments/traffic-two-cpus.toml"),
];

/// Pieces that have a meaning in scripts, or nearly.
const PIECES: [&str; 40] = [
    "$n",
    "${n}",
    "$",
    "${",
    "}",
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}}",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "-1",
    "0",
    "18446744073709551616",
    "1e999",
    "nan",
    "inf",
    "0x7f",
    "true",
    "false",
    "1979-05-27",
    "\"1..10000\"",
    "\"0us\"",
    "\"cpus 0-8191\"",
    "\u{e4}",
    "\u{1f600}",
    "\\u0000",
    "go_to = 1",
    "[[process]]\n",
    "[[process.step]]\n",
    "[sweep]\n",
    "replicas = 64\n",
    "end of A.1",
];

fn some(rng: &mut ChaCha8Rng, below: usize) -> usize {
    rng.random_range(0..below.max(1))
}

/// Returns the nearest place at or below `at` that lies between two characters.
fn between(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn change(text: &mut String, rng: &mut ChaCha8Rng) {
    let length = text.len();
    let at = between(text, some(rng, length + 1));
    match some(rng, 6) {
        0 => text.insert_str(at, PIECES[some(rng, PIECES.len())]),
        1 => {
            let end = between(text, (at + some(rng, 12)).min(length));
            if at < end {
                text.replace_range(at..end, "");
            }
        }
        // A line is removed, doubled or swapped, or comes from another script.
        choice => {
            let lines: Vec<&str> = text.lines().collect();
            let mut lines: Vec<String> = lines.iter().map(|l| (*l).to_owned()).collect();
            if lines.is_empty() {
                return;
            }
            let (i, j) = (some(rng, lines.len()), some(rng, lines.len()));
            match choice {
                2 => drop(lines.remove(i)),
                3 => lines.insert(i, lines[j].clone()),
                4 => lines.swap(i, j),
                _ => {
                    let other: Vec<&str> = EXAMPLES[some(rng, EXAMPLES.len())].lines().collect();
                    lines[i] = other[some(rng, other.len())].to_owned();
                }
            }
            *text = lines.join("\n");
        }
    }
}

/// Returns whether a text is a script; otherwise its message must have a place in it and some text.
fn look(text: &str) -> bool {
    let Err(error) = Script::parse(text) else {
        return true;
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let line = lines.get(error.line() - 1);
    let columns = line.map_or(0, |line| line.chars().count()) + 1;
    assert!((1..=columns).contains(&error.column()), "{error}\n{text}");
    assert!(error.text().len() > 10, "{error}");
    false
}

#[test]
fn changed_examples() {
    let seed = 5;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..4000 {
        let mut text = EXAMPLES[some(&mut rng, EXAMPLES.len())].to_owned();
        for _ in 0..=some(&mut rng, 4) {
            change(&mut text, &mut rng);
        }
        if look(&text) {
            good += 1;
        } else {
            bad += 1;
        }
    }
    // Most changes spoil a script, but not all: comments are text, too.
    assert!(
        good > 100 && bad > 1000,
        "seed {seed}: {good} good, {bad} bad"
    );
}

#[test]
fn any_bytes() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for _ in 0..4000 {
        let bytes: Vec<u8> = (0..some(&mut rng, 200)).map(|_| rng.random()).collect();
        look(&String::from_utf8_lossy(&bytes));
        let pieces = (0..some(&mut rng, 30)).map(|_| PIECES[some(&mut rng, PIECES.len())]);
        look(&pieces.collect::<String>());
    }
}
