"""Price of the calls, each beside time.perf_counter_ns() in the same round: one JSON line for
each state, with the ratios of all rounds. Usage: points.py ROUNDS"""

import json
import sys
import tempfile
import time
import timeit

import undertick

CALLS = 5000
WHAT = {
    "pass": "pass",
    "one": "time.perf_counter_ns()",
    "two": "time.perf_counter_ns(); time.perf_counter_ns()",
    "span": "with undertick.span('x'): pass",
    "event": "undertick.event('x')",
    "payload": "undertick.event('x', 7)",
    "next": "undertick.next('x', 'y')",
}


def measure(rounds: int) -> dict[str, list[float]]:
    timers = {name: timeit.Timer(text, globals={"undertick": undertick, "time": time}) for name, text in WHAT.items()}
    found: dict[str, list[float]] = {name: [] for name in WHAT}
    for timer in timers.values():
        timer.timeit(CALLS)
    for _ in range(rounds):
        for name, timer in timers.items():
            found[name].append(timer.timeit(CALLS) / CALLS * 1e9)
    return found


def main() -> None:
    rounds = int(sys.argv[1])
    print(json.dumps({"state": "nothing is recorded", "ns": measure(rounds)}), flush=True)
    with tempfile.TemporaryDirectory() as where:
        with undertick.record(where + "/x.ut", kernel="off", calibration=False) as recording:
            found = measure(rounds)
        lost = recording.trace().manifest["lost"]
    print(json.dumps({"state": "while recording", "lost": lost, "ns": found}))


main()
