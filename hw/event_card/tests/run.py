"""Builds the card for each set of parameters and runs the tests of cocotb on it.

    run.py BUILD_DIRECTORY [--rtl DIRECTORY] [--only NAME] [--long]
"""

import argparse
import sys
import xml.etree.ElementTree
from pathlib import Path

from cocotb.runner import get_runner

HERE = Path(__file__).resolve().parent
# name, top, module of tests, parameters
SETS = [
    ("card", "event_card", "test_card", {"DEPTH_LOG2": 4, "GAPS_LOG2": 4}),
    ("clocks", "event_card", "test_clocks", {"DEPTH_LOG2": 4, "GAPS_LOG2": 4, "ASYNC_TICK": "1'b1"}),
    ("wishbone", "event_card_wishbone", "test_wishbone", {"DEPTH_LOG2": 4, "GAPS_LOG2": 4}),
]  # fmt: skip


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("build", type=Path)
    words.add_argument("--rtl", type=Path, default=HERE.parent / "rtl")
    words.add_argument("--only")
    words.add_argument("--long", action="store_true")
    words = words.parse_args()
    sources = sorted(words.rtl.glob("*.sv"), key=lambda path: (not path.stem.endswith("_pkg"), path))
    failed = passed = 0
    for name, top, module, parameters in SETS:
        if words.only not in (None, name):
            continue
        where = (words.build / name).resolve()
        runner = get_runner("verilator")
        runner.build(
            sources=[str(path) for path in sources],
            hdl_toplevel=top,
            parameters={**parameters, "CLOCK_HZ": "32'd100000000"},
            build_dir=str(where),
            build_args=["-Wno-fatal", "--x-assign", "unique", "--x-initial", "unique", "-O3"],
            timescale=("1ns", "1ps"),
            always=True,
            log_file=str(where) + ".log",
        )
        for seed in range(1, 9 if words.long else 2):
            results = where / f"results-{seed}.xml"
            runner.test(
                hdl_toplevel=top,
                test_module=module,
                build_dir=str(where),
                test_dir=str(where),
                results_xml=str(results),
                extra_env={
                    "PYTHONPATH": str(HERE),
                    "CARD_DEPTH_LOG2": str(parameters["DEPTH_LOG2"]),
                    "CARD_GAPS_LOG2": str(parameters["GAPS_LOG2"]),
                    "CARD_SEED": str(seed),
                    "CARD_EVENTS": "8000" if words.long else "1500",
                    "RANDOM_SEED": str(seed),
                    "COCOTB_ANSI_OUTPUT": "0",
                },
                log_file=str(where / f"run-{seed}.log"),
            )
            cases = list(xml.etree.ElementTree.parse(results).iter("testcase"))
            bad = [case.get("name") for case in cases if case.find("failure") is not None]
            passed += len(cases) - len(bad)
            failed += len(bad) + (not cases)
            for test in bad:
                print(f"FAILED: {name}: {test} (seed {seed}; {where}/run-{seed}.log)")
    print(f"cocotb: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
