"""Proves the properties of the card, and sees each of them fail on a mutated card.

    run.py BUILD_DIRECTORY [--long] [--only TASK] [--no-mutants]

Yosys makes each task an AIGER circuit; ABC (Debian's berkeley-abc, which Yosys needs anyway)
looks for counterexamples in the first cycles (`bmc3`) and makes the step of k-induction
(`ind`). A mutant is a patch in `mutants/`; its first line names the task and the assertion
that must fail: that assertion alone is then asked for. The whole card (tasks "card" and "burst")
takes minutes: it is asked for with --long, and by name."""

import argparse
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RTL = HERE.parent / "rtl"
# Task: top, are inputs of the block assumed, cycles from reset (short, long), k of the induction.
TASKS = {
    "queue": ("queue", True, 10, 12, 3),
    "bus": ("slave", True, 12, 20, 3),
    "registers": ("registers", True, 8, 16, 3),
    "stream": ("stream", True, 12, 20, 3),
    "gray": ("gray", True, 10, 20, 6),
    "card": ("card", False, 11, 12, None),
    "burst": ("card", False, 24, 24, None),
}
# A mutant is looked at for so many cycles more: one assertion alone costs less than all.
MUTANT_CYCLES = 4
SCRIPT = """
read_verilog -sv -defer -formal -DPROOFS {alone} -I{here} {sources} {here}/{file}.sv
prep -top {top} -flatten
memory_map
formalff -clk2ff -ff2anyinit
setundef -undriven -anyseq
opt -fast
{only}
tee -o {build}.asserts select -list t:$assert
opt_clean
techmap
setundef -undriven -anyseq
dffunmap
simplemap
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset {build}.aig
"""


def call(*words: str) -> str:
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(words)}\n{done.stdout}")
    return done.stdout


def circuit(task: str, rtl: Path, build: Path, only: str | None = None) -> list[str]:
    """The circuit of a task, with all its assertions or with one; their names."""
    top, alone, *_ = TASKS[task]
    sources = sorted(rtl.glob("*.sv"), key=lambda path: (not path.stem.endswith("_pkg"), path))
    # Of the whole card only what is about it, and what its queue takes for granted.
    wanted = only or ("card_* queue_left_* queue_take_*" if top == "card" else "*")
    paths = " ".join(f"*/{name} */dut.{name} */dut.*.{name}" for name in wanted.split())
    keep = f"select -set keep {paths}\ndelete t:$assert @keep %d"
    script = build.with_suffix(".ys")
    script.write_text(
        SCRIPT.format(
            alone="-DFORMAL_ALONE" if alone else "", here=HERE, top=top, file=task if task == "burst" else top, build=build, only=keep,
            sources=" ".join(map(str, sources)),
        )
    )  # fmt: skip
    call("yosys", "-q", str(script))
    names = Path(f"{build}.asserts").read_text().split()
    return sorted(name.split("/")[1].split(".")[-1] for name in names)


def abc(build: Path, commands: str) -> str:
    return call("berkeley-abc", "-c", f"read_aiger {build}.aig; fold; strash; {commands}")


def bounded(build: Path, cycles: int) -> int | None:
    """The cycle of a counterexample, None if there is none in the first `cycles`."""
    said = abc(build, f"orpos; scorr; bmc3 -F {cycles}")
    found = re.search(r"asserted in frame (\d+)", said)
    if found:
        return int(found[1])
    # What is equivalent to a constant needs no cycles.
    if re.search(rf"No output asserted in {cycles} frames", said) or "trivially" in said:
        return None
    sys.exit(f"ABC says neither yes nor no: {said}")


def induction(build: Path, k: int) -> bool:
    said = abc(build, f"orpos; strash; ind -F {k}")
    return "Networks are equivalent" in said


def prove(task: str, build: Path, is_long: bool) -> tuple[bool, str, list[str]]:
    _, _, short, deep, k = TASKS[task]
    cycles, started = deep if is_long else short, time.monotonic()
    names = circuit(task, RTL, build)
    found = bounded(build, cycles)
    if found is not None:
        return False, f"{task}: an assertion fails in cycle {found} ({build}.aig)", names
    is_proved = k is not None and induction(build, k)
    if k is not None and not is_proved:
        return False, f"{task}: the induction with k = {k} does not hold", names
    how = f"proved by {k}-induction" if is_proved else f"bounded: {cycles} cycles"
    seconds = time.monotonic() - started
    return True, f"{task}: {len(names)} assertions, {how} ({seconds:.1f} s)", names


def mutant(patch: Path, build: Path) -> tuple[bool, str, str]:
    task, name = patch.read_text().split("\n", 1)[0].split()[:2]
    rtl = build.with_suffix(".rtl")
    shutil.rmtree(rtl, ignore_errors=True)
    shutil.copytree(RTL, rtl)
    call("patch", "-s", "-p1", "-d", str(rtl), "-i", str(patch))
    if name not in circuit(task, rtl, build, name):
        return False, f"{patch.stem}: task {task} has no assertion {name}", name
    found = bounded(build, TASKS[task][3] + MUTANT_CYCLES)
    if found is None:
        return False, f"{patch.stem}: {name} holds on the mutated card", name
    return True, f"{patch.stem}: {name} fails in cycle {found}", name


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("build", type=Path)
    words.add_argument("--long", action="store_true")
    words.add_argument("--only")
    words.add_argument("--no-mutants", action="store_true")
    words = words.parse_args()
    words.build.mkdir(parents=True, exist_ok=True)
    build = words.build.resolve()
    tasks = [task for task in TASKS if words.only in (None, task)]
    if words.only is None and not words.long:
        tasks = [task for task in tasks if TASKS[task][1]]
    patches = [] if words.no_mutants else sorted((HERE / "mutants").glob("*.patch"))
    patches = [p for p in patches if p.read_text().split()[0] in tasks]
    failed, names, broken = 0, set(), set()
    with ThreadPoolExecutor(2) as pool:
        proofs = [pool.submit(prove, task, build / task, words.long) for task in tasks]
        mutants = [pool.submit(mutant, patch, build / patch.stem) for patch in patches]
        for proof in proofs:
            holds, said, those = proof.result()
            names |= set(those)
            failed += not holds
            print(said if holds else f"FAILED: {said}", flush=True)
        for result in mutants:
            fails, said, name = result.result()
            broken |= {name} if fails else set()
            failed += not fails
            print(said if fails else f"FAILED: {said}", flush=True)
    if patches and names - broken:
        failed += 1
        print(f"FAILED: no mutant breaks {', '.join(sorted(names - broken))}")
    print(f"formal: {len(names)} assertions, {len(broken)} seen to fail on a mutant, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
