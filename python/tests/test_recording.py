"""Recording programs and the running process, against counts that are known."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator

import pyarrow as pa
import pytest
from conftest import hear_ctrl_c

import undertick

INSTANT, BEGIN, END, NEXT, PAIR = 0, 1, 2, 3, 4


def rows(trace: undertick.Trace) -> list[dict[str, Any]]:
    """Returns the program's rows, each with the name of its event."""
    names = trace.names
    found = pa.table(trace.events()).to_pylist()
    for row in found:
        row["name"] = names.get((row["pid"], row["event"]))
    return found


def counts(trace: undertick.Trace) -> Counter[tuple[int, str]]:
    return Counter((row["kind"], row["name"]) for row in rows(trace))


def test_a_program_started_by_record(recorded: Callable[..., str]) -> None:
    trace = undertick.open(
        recorded(
            """
import undertick
undertick.thread_name("the main one")
for i in range(300):
    with undertick.span("outer"):
        with undertick.span("inner"):
            pass
        undertick.event("tick", i)
    undertick.next("read", "parse")
    undertick.pair("reading")
undertick.name(9, "flush")
with undertick.span(9):
    undertick.event("big", 2**40)
    undertick.event("negative", -3)
    undertick.event(payload=7, name="named") if False else undertick.event("named", payload=7)
"""
        )
    )
    assert counts(trace) == {
        (BEGIN, "outer"): 300,
        (END, "outer"): 300,
        (BEGIN, "inner"): 300,
        (END, "inner"): 300,
        (INSTANT, "tick"): 300,
        (NEXT, "read"): 300,
        (PAIR, "reading"): 300,
        (BEGIN, "flush"): 1,
        (END, "flush"): 1,
        (INSTANT, "big"): 1,
        (INSTANT, "negative"): 1,
        (INSTANT, "named"): 1,
    }
    found = rows(trace)
    payloads = {row["name"]: row["payload"] for row in found if row["kind"] == INSTANT}
    assert payloads == {"tick": 299, "big": 2**40, "negative": -3, "named": 7}
    assert [row["payload"] for row in found if row["name"] == "tick"] == list(range(300))
    # The stage that starts is the payload of `next`.
    numbers = {name: event for (_, event), name in trace.names.items()}
    assert {row["payload"] for row in found if row["kind"] == NEXT} == {numbers["parse"]}
    # The begins, ticks and ends of one pass nest.
    kinds = [(row["kind"], row["name"]) for row in found if row["name"] in ("outer", "inner", "tick")]
    one = [(BEGIN, "outer"), (BEGIN, "inner"), (END, "inner"), (INSTANT, "tick"), (END, "outer")]
    assert kinds == one * 300
    assert trace.manifest["lost"] == 0
    assert [thread["name"] for thread in trace.manifest["threads"]] == ["the main one"]
    # Names have a separate range of numbers, apart from those that native code chooses.
    assert all(0x4000 <= event < 0x8000 for name, event in numbers.items() if name != "flush")
    assert numbers["flush"] == 9


def test_sections_take_as_long_as_what_is_in_them(recorded: Callable[..., str]) -> None:
    """The length of a sleep is known from outside: it is never shorter than requested."""
    report = undertick.open(
        recorded(
            """
import time, undertick
for _ in range(20):
    with undertick.span("sleep"):
        time.sleep(0.003)
"""
        )
    ).report(cull="none")
    sleep = report.interval("sleep")
    assert sleep["count"] == 20 and sleep["unmatched"] == 0
    assert sleep["min"] >= 3e6 * 0.999  # the clock's rate is known to 1e-3 at worst
    assert sleep["max"] < 3e9  # a wrong unit would be off by a factor of a thousand


def test_this_process(tmp_path: Path) -> None:
    path = tmp_path / "run.ut"
    undertick.event("before")
    with undertick.record(path, kernel="off", calibration=False) as recording:
        assert undertick.enabled()
        for i in range(1000):
            with undertick.span("work"):
                undertick.event("inside", i)
    undertick.event("after")
    assert not undertick.enabled()
    trace = recording.trace()
    assert counts(trace) == {(BEGIN, "work"): 1000, (END, "work"): 1000, (INSTANT, "inside"): 1000}
    assert trace.manifest["exit"]["interrupted"] is True  # not ended by the program
    assert "1000" not in recording.notes and "3000 events" in recording.notes


def test_one_recording_after_another(tmp_path: Path) -> None:
    for number in range(3):
        with undertick.record(tmp_path / f"{number}.ut", kernel="off", calibration=False) as recording:
            for _ in range(number + 1):
                undertick.event("again")
        assert counts(recording.trace()) == {(INSTANT, "again"): number + 1}


def test_an_exception_keeps_the_trace(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with undertick.record(tmp_path / "run.ut", kernel="off", calibration=False) as recording:
            with undertick.span("fails"):
                1 / 0
    assert counts(recording.trace()) == {(BEGIN, "fails"): 1, (END, "fails"): 1}


def test_ctrl_c_keeps_the_trace(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys, time, undertick
with undertick.record(sys.argv[1], kernel="off", calibration=False):
    undertick.event("here")
    print("ready", flush=True)
    time.sleep(60)
"""
    )
    trace = tmp_path / "run.ut"
    process = subprocess.Popen(
        [sys.executable, str(program), str(trace)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert counts(undertick.open(trace)) == {(INSTANT, "here"): 1}


class Stop(BaseException):
    """Raised like KeyboardInterrupt: no code in between handles it as its error."""


@contextmanager
def stopped(after_s: float) -> Iterator[None]:
    """Interrupts the block after that time, by a signal handler that raises."""

    def stop(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with pytest.raises(Stop):
            signal.setitimer(signal.ITIMER_REAL, after_s)
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


MOMENTS_S = [0.001, 0.002, 0.003, 0.005, 0.01, 0.05, 0.12]


@pytest.mark.parametrize("after_s", MOMENTS_S)
def test_a_start_that_is_interrupted_leaves_no_recorder(tmp_path: Path, after_s: float) -> None:
    recording = undertick.record(tmp_path / "run.ut", kernel="off")
    with stopped(after_s):
        recording.start()
        time.sleep(60)  # a start that was already complete is interrupted here
    recording.stop()  # for such a start: an interrupted one has nothing to stop
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        assert not undertick.enabled()
        time.sleep(0.01)


def processes_with(word: str) -> list[Path]:
    """Returns the processes of this machine whose command contains that word."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes()
        except OSError:
            continue  # ended since the directory was listed
        if word.encode() in words:
            found.append(file)
    return found


@pytest.mark.parametrize("after_s", MOMENTS_S)
def test_an_experiment_that_is_interrupted_leaves_no_process(tmp_path: Path, after_s: float) -> None:
    # The script takes ten seconds if it is not interrupted.
    script = tmp_path / "script.toml"
    script.write_text(
        'passes = 100\nrepetitions = 2\n[[process]]\nname = "A"\n'
        '[[process.step]]\nsleep = "50ms"\n'
    )
    trace = tmp_path / "kept.ut"
    with stopped(after_s):
        undertick.run(script, output=trace)
    time.sleep(0.2)  # a process that was not waited for has started by now
    assert processes_with(str(trace)) == []


def test_a_killed_program_keeps_what_it_wrote(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        """
import os, signal, sys, undertick
undertick.record(sys.argv[1], kernel="off", calibration=False).start()
for i in range(500):
    undertick.event("written", i)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    trace = tmp_path / "run.ut"
    done = subprocess.run([sys.executable, str(program), str(trace)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while True:  # polls, because the recorder is not a child of this process
        try:
            assert counts(undertick.open(trace)) == {(INSTANT, "written"): 500}
            return
        except undertick.Error:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_threads_have_rings_of_their_own(tmp_path: Path) -> None:
    span = undertick.span("shared")

    def work(depth: int) -> None:
        if depth:
            with span:
                work(depth - 1)

    with undertick.record(tmp_path / "run.ut", kernel="off", calibration=False) as recording:
        threads = [threading.Thread(target=lambda: [work(4) for _ in range(250)]) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = rows(recording.trace())
    assert list(Counter(row["tid"] for row in found).values()) == [2000] * 5
    for tid in {row["tid"] for row in found}:
        depths, depth = set(), 0
        for row in found:
            if row["tid"] == tid:
                depth += 1 if row["kind"] == BEGIN else -1
                depths.add(depth)
        assert depths == {0, 1, 2, 3, 4} and depth == 0
    report = recording.trace().report(cull="none")
    assert report.interval("shared")["count"] == 5000


def test_forked_children_have_the_names(recorded: Callable[..., str]) -> None:
    trace = undertick.open(
        recorded(
            """
import os, undertick
undertick.event("both")
child = os.fork()
for _ in range(10 if child else 20):
    undertick.event("both")
if child == 0:
    undertick.event("only the child")
    os._exit(0)
os.waitpid(child, 0)
"""
        )
    )
    found = counts(trace)
    assert found == {(INSTANT, "both"): 31, (INSTANT, "only the child"): 1}
    assert len({row["pid"] for row in rows(trace)}) == 2


def test_a_child_does_not_end_its_parents_recording(tmp_path: Path) -> None:
    with undertick.record(tmp_path / "run.ut", kernel="off", calibration=False) as recording:
        undertick.event("parent")
        child = os.fork()
        if child == 0:
            undertick.event("child")
            recording.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(child, 0)
        assert undertick.enabled()
        undertick.event("parent")
    assert counts(recording.trace()) == {(INSTANT, "parent"): 2, (INSTANT, "child"): 1}


def test_what_cannot_be_recorded_says_why(tmp_path: Path) -> None:
    (tmp_path / "there.ut").mkdir()
    with pytest.raises(undertick.InputError, match="exists already"):
        undertick.record(tmp_path / "there.ut", calibration=False).start()
    assert not undertick.enabled()
    with undertick.record(tmp_path / "run.ut", kernel="off", calibration=False):
        with pytest.raises(undertick.InputError, match="being recorded already"):
            undertick.record(tmp_path / "second.ut").start()
    with pytest.raises(undertick.InputError, match="64XB"):
        undertick.record(tmp_path / "third.ut", ring="64XB").start()


def test_without_a_door_it_says_so(tmp_path: Path) -> None:
    program = "import undertick\nwith undertick.record('never.ut'): pass"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "UNDERTICK_ATTACH": "0"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "InputError" in done.stderr and "UNDERTICK_ATTACH" in done.stderr


def test_kernel_and_calibration_by_default(tmp_path: Path) -> None:
    """The default options work; which kernel events are available here is another question."""
    with undertick.record(tmp_path / "run.ut") as recording:
        for _ in range(100):
            with undertick.span("work"):
                time.sleep(0.0005)
    trace = recording.trace()
    assert trace.manifest["calibration"] is not None or "will not be subtracted" in recording.notes
    assert sum(counts(trace).values()) == 200
    said = pa.table(trace.kernel())
    assert said.num_rows == 0 or set(said.column("mode").to_pylist()) == {1}
    if said.num_rows == 0:
        print("skipped: the kernel says nothing here, so its rows are not looked at")
    elif trace.manifest["kernel"]["sources"][0]["used"]:
        # Each sleep yields the CPU.
        me = said.filter(pa.compute.equal(said.column("tid"), os.getpid()))
        assert me.filter(pa.compute.equal(me.column("kind"), 16)).num_rows >= 100
