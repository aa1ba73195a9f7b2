"""The published lock (NBSIR 87-3585, Tables 3a and 3b) on the simulated board: what `undertick report`
says of the card's stream, as lines for crates/reproduce/src/trams/card.txt.

    published.py SIMULATION UNDERTICK DIRECTORY [--check FILE]

Times are those of the card's ticks, us. With --check: exit status 1 if FILE has other lines. The
simulation has no other chance than its seed."""

import argparse
import sys
from pathlib import Path

from experiment import NAMES, one

SEED = 1
# Half a second at 10 MHz: some 14 000 locks, four times as many as were published.
CYCLES = 5_000_000


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("simulation", type=Path)
    words.add_argument("undertick", type=Path)
    words.add_argument("directory", type=Path)
    words.add_argument("--check", type=Path)
    words.set_defaults(cycles=CYCLES)
    words = words.parse_args()
    words.directory.mkdir(parents=True, exist_ok=True)
    truth, plain, culled = one(words, SEED, "published")
    lines = []
    for name in NAMES:
        said = next(i for i in plain["intervals"] if i["name"] == name)
        less = next(i for i in culled["intervals"] if i["name"] == name)
        if plain["trace"]["lost"] or said["count"] != truth[name]["count"]:
            sys.exit(f"FAILED: {said['count']} of {name}, truly {truth[name]['count']}")
        figures = [said["max"], said["min"], said["mean"]["value"], said["median"]["value"]]
        shown = [f"{ns / 1e3:.2f}" for ns in figures]
        counts = str(said["count"]), str(less["culled"]["count"])
        lines.append(" | ".join(["board", name, counts[0], *shown, counts[1]]))
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
