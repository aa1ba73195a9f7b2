"""The lock experiment, many times: what `undertick report` says of the card's stream, beside
what the simulator knows.

    experiment.py SIMULATION UNDERTICK DIRECTORY [--runs 200] [--cycles 4000000] [--json]

Each run has its own seed. The truth of a mean is that of a run of its own, a hundred times
as long (ten times for fewer than 100 runs), with another seed: what any run's 95 % interval should hold. Exit status 1 if
fewer than 93 % of the intervals do (of 100 runs or more: fewer say little), or if anything
that is exact differs."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("lock", "unlock")
TRUTH_SEED = 1_000_003


def call(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def one(words, seed: int, *choice: str) -> tuple[dict, dict, dict]:
    """Truth of a run, its report, and one that drops what is over ten times the least."""
    stream, trace = words.directory / f"{seed}.bin", words.directory / f"{seed}.ut"
    shutil.rmtree(trace, ignore_errors=True)
    truth = json.loads(call(words.simulation, seed, words.cycles, stream, *choice))
    call(words.undertick, "import", "--from", "card", "--events", HERE / "events.toml",
         stream, "-o", trace)  # fmt: skip
    report = [words.undertick, "report", trace, "--table", HERE / "lock.toml", "--json"]
    plain = json.loads(call(*report, "--cull", "none"))
    culled = json.loads(call(*report, "--cull", "ratio:10"))
    shutil.rmtree(trace)
    stream.unlink()
    return truth, plain, culled


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("simulation", type=Path)
    words.add_argument("undertick", type=Path)
    words.add_argument("directory", type=Path)
    words.add_argument("--runs", type=int, default=200)
    words.add_argument("--cycles", type=int, default=4_000_000)
    words.add_argument("--json", action="store_true")
    words = words.parse_args()
    words.directory.mkdir(parents=True, exist_ok=True)
    # Few runs judge no share of intervals, and need no precise truth.
    longer = 100 if words.runs >= 100 else 10
    truth = json.loads(call(words.simulation, TRUTH_SEED, longer * words.cycles, "-"))
    hits = {name: 0 for name in NAMES} | {"locks per second": 0}
    half, errors, wrong = {name: 0.0 for name in NAMES}, {name: 0.0 for name in NAMES}, []
    shown = None
    for seed in range(1, words.runs + 1):
        run, plain, culled = one(words, seed)
        rows = []
        if plain["trace"]["lost"]:
            wrong.append(f"run {seed}: {plain['trace']['lost']} events lost")
        for name in NAMES:
            said = next(i for i in plain["intervals"] if i["name"] == name)
            less = next(i for i in culled["intervals"] if i["name"] == name)
            if said["count"] != run[name]["count"]:
                wrong.append(f"run {seed}: {said['count']} of {name}, truly {run[name]['count']}")
            mean = said["mean"]
            if mean["unit"] != "ns" or mean["interval"] is None:
                wrong.append(f"run {seed}: the mean of {name} is {mean}")
                continue
            lo, hi = mean["interval"]
            hits[name] += lo <= truth[name]["mean_ns"] <= hi
            half[name] += (hi - lo) / 2 / words.runs
            errors[name] += abs(mean["value"] - run[name]["mean_ns"]) / words.runs
            rows.append((name, said, less, run[name]))
        rate = next(f for f in plain["frequencies"] if f["name"] == "locks")["per_second"]
        lo, hi = rate["interval"]
        hits["locks per second"] += lo <= truth["acquired"] / truth["seconds"] <= hi
        shown = shown or (rows, rate, run)
    rows, rate, run = shown
    share = {name: count / words.runs for name, count in hits.items()}
    if words.json:
        print(json.dumps({"runs": words.runs, "held": share, "half_width_ns": half, "wrong": wrong}))
    else:
        print("run 1                report                                        simulator")
        for name, said, less, true in rows:
            lo, hi = said["mean"]["interval"]
            print(f"  {name:7} n          {said['count']:8}                               {true['count']:12}")
            print(f"  {name:7} mean ns    {said['mean']['value']:10.1f} [{lo:.1f}, {hi:.1f}] {true['mean_ns']:24.1f}")
            print(f"  {name:7} min..max   {said['min']} .. {said['max']}   {true['min_ns']} .. {true['max_ns']}")
            print(f"  {name:7} over 10 x min {less['culled']['count']:5}                        {true['anomalies']:12}")
        lo, hi = rate["interval"]
        print(f"  locks per second   {rate['value']:10.1f} [{lo:.1f}, {hi:.1f}] {run['acquired'] / run['seconds']:24.1f}")
        for name in NAMES:
            print(f"{name}: true mean {truth[name]['mean_ns']:.1f} ns in {hits[name]} of {words.runs} intervals "
                  f"(half-width {half[name]:.1f} ns; the runs' own means differ by {errors[name]:.1f} ns)")  # fmt: skip
        print(f"locks per second: true rate in {hits['locks per second']} of {words.runs} intervals")
        for line in wrong[:20]:
            print(f"FAILED: {line}")
    is_low = words.runs >= 100 and min(share.values()) < 0.93
    return 1 if wrong or is_low else 0


if __name__ == "__main__":
    sys.exit(main())
