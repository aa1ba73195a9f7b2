//! `cargo xtask test`, `lint`, `bench`: what CI runs, and the benchmarks.

mod bench;
mod book;
mod card;
mod cycles;
mod exchange;
mod fuzz;
mod levels;
mod licences;
mod lint;
mod lttng;
mod packages;
mod page;
mod python;
mod run;
mod soak;
mod sources;
mod statistics;
mod test;
mod unedited;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [--all]      what a change is tested with; with --all everything that CI runs, the long
                    tests, other tools, the card, the browser and Spark included (half an hour);
                    both install what they need where they may
  lint              format, clippy, documentation, licences, aarch64
  exchange          the part of test --all that has other tools' traces and readers
  book              the part of test that holds README and book to what they say
  go                the part of test --all that tests the Go package
  java              the part of test --all that tests the package for Java
  together          the part of test --all that records five languages at once
  node              the part of test --all that tests the package for Node.js
  packages          the part of test --all that makes what users install, and uses it
  release [--draft] [--twice]  checks the last commit and makes the files of a release, in target/packages/release;
                    --draft: without the checks; --twice: the static program twice, which must be equal
  release --publish  publishes the crates
  first-steps       the README's first steps on a clean checkout, installation included (minutes)
  card [--long]     the part of test --all that has the event card in hardware; with --long ten million events
                    under each policy, the whole card's proofs, 200 runs of the lock (half an hour)
  fuzz [SECONDS]    the fuzz targets under libFuzzer, ten minutes unless said otherwise (needs nightly)
  fuzz directories [SECONDS]  every command on trace directories made to harm, for so much CPU time
  soak [TIME]       5 million events a second for so long (1h unless said otherwise)
  bench recorder    price of an event as a ratio to clock reading + 16-byte store
  bench longest     the longest of a million events, beside a reading and a store
  bench live        what watching costs, beside recording alone (seven minutes)
  bench loss        1e8 events from one thread, ten times; two threads at full speed
  bench drop        a full ring in drop mode beside one that never fills
  bench report      analysis rate and memory on 2e8 events
  bench truth       compensated means against counted work, 20 ns to 1 ms
  bench edges       means of spans around work still under way, against fenced readings
  bench stacks      what sampling threads with their stacks takes from a program and from the recorder
  bench interposed  what record --with locks,malloc adds to a call, and its counts beside heaptrack's
  bench nested      a span around points, against the same program without them
  bench hog         descheduled flag and culling with a hog on the same CPU
  bench sampled     price of a sampled span; with a commit: the other calls beside its header's
  bench python      price of span and event in Python, beside time.perf_counter_ns()
  bench functions   price of a call of a program that nobody edited, beside uftrace
  bench evidence    culling by kernel events, beside the ratio rule
  bench wake        readings of the program against the kernel's wakeups
  bench perturbation  by how much points slow loops, against the same loops without (20 minutes)
  bench survey      do two surveys of one machine agree, ten minutes apart or so many
  bench in_place    5, 20 and 50 ns sections in a running program: error and coverage over 200 recordings
  bench beside-recorders  an event and a section of LTTng-UST, Tracy and Perfetto beside ours
  bench beside-benchmarks  sections of known length under Google Benchmark, Criterion and zenbench
  bench programs    Redis, lz4, zstd, a queue and a copy: what is dropped, time on CPU against the kernel's,
                    medians beside three busy loops (ten minutes)
  bench impossible  50 recordings of the demo beside 0 to 6 busy loops: figures that cannot be true
  bench reruns      do intervals of one run and of five hold what other runs give, six programs (fifteen minutes)
  bench leaves      intervals of states: how narrow, and do they hold what fresh runs give (ten minutes)
  bench states      programs with one known cause: do states name it, 20 recordings of each (ten minutes)
  bench coverage    95 % intervals of known truths, 10000 repetitions each (about ten minutes)
  bench all         all of them (about fifteen minutes)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["test"] => test::of(test::Tier::Usual),
        ["test", "--all"] => test::of(test::Tier::All),
        ["lint"] => lint::all(&mut 0),
        ["exchange"] => test::exchange_alone(),
        ["book"] => test::book_alone(),
        ["release", "--publish"] => packages::release::publish(),
        ["release", ref options @ ..]
            if options
                .iter()
                .all(|option| ["--draft", "--twice"].contains(option)) =>
        {
            let has = |option| options.contains(&option);
            packages::release::make(has("--draft"), has("--twice"))
        }
        ["packages"] => test::packages_alone(),
        ["card"] => test::card_alone(false),
        ["card", "--long"] => test::card_alone(true),
        ["go"] => test::go_alone(),
        ["java"] => test::java_alone(),
        ["together"] => test::together_alone(),
        ["node"] => test::node_alone(),
        ["first-steps"] => book::first_steps(),
        ["fuzz"] => fuzz::all(fuzz::SECONDS),
        ["fuzz", "directories"] => fuzz::directories(fuzz::SECONDS),
        ["fuzz", "directories", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::directories(seconds),
            Err(_) => Err(format!(
                "fuzz directories {seconds}: give a number of seconds"
            )),
        },
        ["fuzz", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::all(seconds),
            Err(_) => Err(format!("fuzz {seconds}: give a number of seconds")),
        },
        ["soak"] => soak::run("1h"),
        ["soak", time] => soak::run(time),
        ["bench", ref which @ ..] => bench::run(which),
        // `bench recorder` records this: the same blocks through the Rust crate.
        ["__rust-recorder", threads, rounds, n] => {
            bench::recorder::rust_program(threads, rounds, n)
        }
        ["__rust-service", requests] => bench::service::run(requests),
        ["__rust-sampled", rounds, n] => bench::sampled::rust_program(rounds, n),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}
