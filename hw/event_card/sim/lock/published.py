"""The published lock (NBSIR 87-3585, Tables 3a and 3b) on the simulated board: what `undertick report`
says of the card's stream, as lines for crates/reproduce/src/trams/card.txt.

    published.py SIMULATION UNDERTICK DIRECTORY [--check FILE]

Times are those of the card's ticks, us. With --check: exit status 1 if FILE has other lines. The
simulation has no other chance than its seed."""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 1
# Half a second at 10 MHz: some 14 000 locks, four times as many as were published.
CYCLES = 5_000_000
# An anomaly is over this times the least, as in the source.
ANOMALY = 10


def call(*words: object) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("simulation", type=Path)
    words.add_argument("undertick", type=Path)
    words.add_argument("directory", type=Path)
    words.add_argument("--check", type=Path)
    words = words.parse_args()
    words.directory.mkdir(parents=True, exist_ok=True)
    stream, trace = words.directory / "published.bin", words.directory / "published.ut"
    shutil.rmtree(trace, ignore_errors=True)
    truth = json.loads(call(words.simulation, SEED, CYCLES, stream, "published"))
    call(words.undertick, "import", "--from", "card", "--events", HERE / "events.toml",
         stream, "-o", trace)  # fmt: skip
    report = [words.undertick, "report", trace, "--table", HERE / "lock.toml", "--json"]
    plain = json.loads(call(*report, "--cull", "none"))
    culled = json.loads(call(*report, "--cull", f"ratio:{ANOMALY}"))
    lines = []
    for name in ("lock", "unlock"):
        said = next(i for i in plain["intervals"] if i["name"] == name)
        less = next(i for i in culled["intervals"] if i["name"] == name)
        if plain["trace"]["lost"] or said["count"] != truth[name]["count"]:
            sys.exit(f"FAILED: {said['count']} of {name}, truly {truth[name]['count']}")
        figures = [said["max"], said["min"], said["mean"]["value"], said["median"]["value"]]
        shown = [f"{ns / 1e3:.2f}" for ns in figures]
        lines.append(" | ".join([name, str(said["count"]), *shown, str(less["culled"]["count"])]))
    shutil.rmtree(trace)
    stream.unlink()
    print("\n".join(lines))
    if words.check:
        kept = [line for line in words.check.read_text().splitlines() if not line.startswith("#")]
        if kept != lines:
            print(f"FAILED: {words.check} has other figures:\n" + "\n".join(kept))
            return 1
        print(f"the published lock: {len(lines)} lines as in {words.check.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
