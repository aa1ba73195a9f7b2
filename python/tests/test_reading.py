"""Reading traces: other libraries accept our batches, and the report is that of the command."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Callable

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import hear_ctrl_c

import undertick

PROGRAM = """
import undertick
for i in range(2000):
    with undertick.span("outer"):
        for j in range(i % 3):
            with undertick.span("inner"):
                undertick.event("tick", i * 10 + j)
"""
INNER = sum(i % 3 for i in range(2000))
TICKS = [i * 10 + j for i in range(2000) for j in range(i % 3)]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> undertick.Trace:
    where = tmp_path_factory.mktemp("reading")
    (where / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "undertick", "record", "--kernel", "off", "--no-calibration"]
    command += ["-o", str(where / "run.ut"), "--", sys.executable, str(where / "program.py")]
    subprocess.run(command, check=True, timeout=60)
    return undertick.open(where / "run.ut")


def tick(trace: undertick.Trace) -> int:
    return next(event for (_, event), name in trace.names.items() if name == "tick")


def test_every_library_takes_the_events(trace: undertick.Trace) -> None:
    number = tick(trace)
    table = pa.table(trace.events())
    arrow = table.filter(pa.compute.equal(table.column("event"), number)).column("payload").to_pylist()
    frame = pl.DataFrame(trace.events())
    polars = frame.filter(pl.col("event") == number)["payload"].to_list()
    events = trace.events()  # DuckDB finds the variable by its name
    sql = f"select payload from events where event = {number} order by ts"
    duck = [row[0] for row in duckdb.sql(sql).fetchall()]
    # Before pandas 3 the conversion goes through pyarrow.
    of_arrow = getattr(pd.DataFrame, "from_arrow", lambda batches: pa.table(batches).to_pandas())
    data = of_arrow(events)
    pandas = data[data["event"] == number]["payload"].tolist()
    assert arrow == polars == duck == pandas == TICKS
    assert table.num_rows == frame.height == len(data) == 4000 + 3 * INNER
    # Each reading of the batches starts at the beginning.
    batches = trace.events()
    assert pa.table(batches).num_rows == pa.table(batches).num_rows
    assert pa.table(trace.kernel()).num_rows == 0


def test_nothing_is_copied(trace: undertick.Trace) -> None:
    """Arrow's memory pool does not grow: the buffers are ours."""
    before = pa.total_allocated_bytes()
    table = pa.table(trace.events())
    assert table.nbytes > 500_000 / 4
    assert pa.total_allocated_bytes() - before < table.nbytes / 10


def test_a_stream_that_nobody_reads_is_given_back(trace: undertick.Trace) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some() -> None:
        for _ in range(200):
            trace.events().__arrow_c_stream__()
            reader = pa.RecordBatchReader.from_stream(trace.events())
            reader.read_next_batch()

    some()
    before = resident()
    for _ in range(5):
        some()
    assert resident() - before < 30e6


def test_a_stream_outlives_its_trace(trace: undertick.Trace) -> None:
    again = undertick.open(trace.path)
    reader = pa.RecordBatchReader.from_stream(again.events())
    del again
    assert sum(batch.num_rows for batch in reader) == 4000 + 3 * INNER


@pytest.mark.parametrize("options", [{}, {"cull": "ratio:4", "confidence": 0.9}, {"compensate": "none"}])
def test_the_report_is_that_of_the_command(trace: undertick.Trace, options: dict[str, object]) -> None:
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    command = [sys.executable, "-m", "undertick", "report", trace.path, "--json", *words]
    said = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    report = trace.report(**options)  # type: ignore[arg-type]
    assert report.document == json.loads(said)
    assert dict(report) == report.document and len(report) == len(report.document)
    again = undertick.Report.from_json(said.decode())
    assert again.document == report.document
    # The last digits may differ: the page is drawn from figures that were parsed again.
    assert re.sub(r"[0-9.]+", "#", again.html) == re.sub(r"[0-9.]+", "#", report.html)


def test_the_report_counts_what_was_done(trace: undertick.Trace) -> None:
    report = trace.report(cull="none")
    assert report.interval("outer")["count"] == 2000
    assert report.interval("inner")["count"] == INNER
    assert report.interval("outer")["unmatched"] == 0
    mean = report.interval("inner").mean
    assert mean is not None and mean.lo is not None and mean.hi is not None
    assert mean.lo <= mean.value <= mean.hi and mean.unit == "ns" and mean.level == 0.95
    assert report.interval("inner").quantile(0.99) is not None
    with pytest.raises(undertick.InputError, match="0.9"):
        report.interval("inner").quantile(0.77)
    with pytest.raises(KeyError, match="'outer'"):
        report.interval("nothing")
    histogram = report.interval("outer").histogram
    assert sum(histogram.counts) == 2000 and len(histogram.edges) == len(histogram.counts) + 1
    assert "outer" in str(report) and "2 intervals" not in repr(report)


def test_the_mean_is_that_of_a_plain_loop(trace: undertick.Trace) -> None:
    """The expected mean comes from a loop over the rows of the events."""
    open_since: list[int] = []
    durations: list[int] = []
    for row in pa.table(trace.events()).to_pylist():
        if trace.names[(row["pid"], row["event"])] != "inner":
            continue
        if row["kind"] == 1:
            open_since.append(row["ts"])
        elif row["kind"] == 2:
            durations.append(row["ts"] - open_since.pop())
    inner = trace.report(cull="none", compensate="none").interval("inner")
    assert len(durations) == inner["count"] == INNER
    assert inner.mean is not None
    assert inner.mean.value == pytest.approx(sum(durations) / len(durations) * trace.ns_per_tick, rel=1e-9)
    assert inner["max"] == pytest.approx(max(durations) * trace.ns_per_tick, rel=1e-9)


def test_intervals_as_a_table(trace: undertick.Trace) -> None:
    report = trace.report()
    table = pa.table(report.intervals)
    assert table.column("name").to_pylist() == [one["name"] for one in report["intervals"]]
    for row, one in zip(table.to_pylist(), report["intervals"]):
        assert row["count"] == one["count"] and row["kind"] == one["kind"]
        assert (row["total_ns"], row["min_ns"], row["sd_ns"]) == (one["total_ns"], one["min"], one["sd"])
        for key, found in (
            ("mean", one["mean"]),
            ("median", one["median"]),
            ("p90", one["quantiles"].get("0.9")),
            ("p99_9", one["quantiles"].get("0.999")),
        ):
            shown = [row[f"{key}_ns"], row[f"{key}_lo_ns"], row[f"{key}_hi_ns"]]
            assert shown == ([None] * 3 if found is None else [found["value"], *found["interval"]])


def test_the_call_tree_as_a_table(trace: undertick.Trace) -> None:
    report = trace.report()
    rows = pa.table(report.tree()).to_pylist()
    assert [row["path"] for row in rows] == ["outer", "outer/inner"]
    outer, inner = rows
    assert (outer["parent"], inner["parent"], inner["depth"]) == (None, 0, 1)
    assert (outer["calls"], inner["calls"], inner["recursive_calls"]) == (2000, INNER, 0)
    for row, one in zip(rows, report["paths"]):
        total = one["total"]
        assert [row["total_ns"], row["total_lo_ns"], row["total_hi_ns"]] == [total["value"], *total["interval"]]
        assert row["mean_ns"] == pytest.approx(total["value"] / one["calls"], rel=1e-12)
        for key in ("name", "self_ns", "off_cpu_ns", "share", "median_ns", "p99_ns", "max_ns"):
            assert row[key] == one[key]
    assert outer["self_ns"] == pytest.approx(outer["total_ns"] - inner["total_ns"], rel=1e-9)
    frame = pl.DataFrame(report.tree())
    assert frame["share"][0] == 1.0


def test_states_as_a_table(trace: undertick.Trace) -> None:
    document = json.loads(json.dumps(trace.report().document))
    share = {
        "value": 0.25,
        "interval": [0.2, 0.3],
        "level": 0.95,
        "unit": "1",
        "method": "of the test",
        "n": 9,
        "n_effective": 9.0,
        "notes": [],
    }
    median = share | {"value": 10.0, "interval": [9.0, None], "unit": "ns"}
    beside = {"fact": "beside", "of": "compactor", "is": True, "from": None, "below": None}
    state = {"conditions": [beside], "share": share, "median": median}
    unknown = state | {"conditions": [beside | {"is": False}], "median": None}
    document["states"] = [{"path": 1, "looked_at": 9, "explained": 0.5, "states": [state, unknown]}]
    report = undertick.Report.from_json(json.dumps(document))
    first, second = pa.table(report.states()).to_pylist()
    assert first == {
        "path": "outer/inner",
        "state": 0,
        "conditions": 'beside "compactor"',
        "share": 0.25,
        "share_lo": 0.2,
        "share_hi": 0.3,
        "median_ns": 10.0,
        "median_lo_ns": 9.0,
        "median_hi_ns": None,
        "looked_at": 9,
        "explained": 0.5,
    }
    assert second["median_ns"] is None and second["state"] == 1
    assert second["conditions"] == 'while "compactor" is off its CPU'
    assert pl.DataFrame(report.states("outer/inner")).height == 2
    assert pa.table(report.states("outer")).num_rows == 0


def test_slow_calls_in_parts(trace: undertick.Trace) -> None:
    """The parts of a call sum to its excess, and the calls are those that the spans show."""
    rows = pa.table(trace.explain("outer", slowest=5)).to_pylist()
    calls = {row["call"]: row for row in rows}
    assert sorted(calls) == [0, 1, 2, 3, 4]
    for call, row in calls.items():
        parts = sum(other["ns"] for other in rows if other["call"] == call)
        assert parts == pytest.approx(row["excess_ns"], abs=1e-6)
    spans = pa.table(trace.spans(cull="none", compensate="none")).to_pylist()
    longest = sorted((s["ticks"] for s in spans if s["name"] == "outer"), reverse=True)[:5]
    took = [calls[call]["took_ns"] for call in range(5)]
    assert took == sorted(took, reverse=True)
    # The program was recorded without its costs, so nothing is subtracted.
    assert took == pytest.approx([ticks * trace.ns_per_tick for ticks in longest], rel=1e-12)
    assert pl.DataFrame(trace.explain("inner")).height > 0  # its last name is clear
    with pytest.raises(undertick.InputError, match="no path 'inne'|no path \"inne\""):
        trace.explain("inne")
    with pytest.raises(undertick.InputError):
        trace.explain("outer", slowest=0)


def test_spans_one_by_one(trace: undertick.Trace) -> None:
    """Each span is paired as in a loop over the events."""
    open_since: dict[str, list[int]] = {"outer": [], "inner": []}
    paired: list[tuple[str, int, int, int]] = []
    for row in pa.table(trace.events()).to_pylist():
        name = trace.names[(row["pid"], row["event"])]
        if row["kind"] == 1:
            open_since[name].append(row["ts"])
        elif row["kind"] == 2:
            start = open_since[name].pop()
            paired.append((name, start, row["ts"] - start, int(name == "inner")))
    batches = trace.spans(compensate="none", cull="none")
    table = pa.table(batches).filter(pa.compute.equal(pa.table(batches).column("kind"), "nested"))
    rows = table.to_pylist()
    assert sorted((r["name"], r["start"], r["ticks"], r["depth"]) for r in rows) == sorted(paired)
    assert {(r["name"], r["parent"]) for r in rows} == {("outer", None), ("inner", "outer")}
    for row in rows:
        assert row["ns"] == pytest.approx(row["ticks"] * trace.ns_per_tick, rel=1e-9)
    frame = pl.DataFrame(trace.spans(cull="none"))  # other options, so the spans are made again
    assert frame.filter(pl.col("kind") == "nested").height == len(paired)
    # The trace stays unchanged.
    assert not Path(trace.path, "spans").exists()
    assert pl.DataFrame(trace.spans(cull="none")).equals(frame)


def test_a_table_of_intervals(trace: undertick.Trace, tmp_path: Path) -> None:
    text = '[[interval]]\nname = "mine"\nstart = "outer"\nend = "outer"\n'
    file = tmp_path / "table.toml"
    file.write_text(text)
    try:
        by_text = trace.report(text)
    except undertick.InputError as error:
        pytest.fail(str(error))
    assert [one["name"] for one in by_text["intervals"]] == ["mine"]
    assert trace.report(file)["intervals"] == by_text["intervals"]
    with pytest.raises(undertick.InputError, match="none.toml"):
        trace.report(tmp_path / "none.toml")
    with pytest.raises(undertick.InputError, match="table:1"):
        trace.report("[[interval\n")


def test_bad_input_says_what_and_where(trace: undertick.Trace, tmp_path: Path) -> None:
    with pytest.raises(undertick.InputError, match="none.ut"):
        undertick.open(tmp_path / "none.ut")
    with pytest.raises(undertick.InputError, match="--cull"):
        trace.report(cull="wrong")
    with pytest.raises(undertick.InputError, match="confidence"):
        trace.report(confidence=95)
    with pytest.raises(undertick.InputError, match="not a report"):
        undertick.Report.from_json("{}")
    copy = tmp_path / "damaged.ut"
    subprocess.run(["cp", "-r", trace.path, copy], check=True)
    part = next(copy.glob("*.parquet"))
    bytes_ = bytearray(part.read_bytes())
    bytes_[len(bytes_) // 2] ^= 1
    part.write_bytes(bytes_)
    with pytest.raises(undertick.InputError, match="checksum"):
        undertick.open(copy)


def test_other_threads_run_meanwhile(trace: undertick.Trace) -> None:
    """The interpreter's lock is released: a counting thread runs while reports are made."""
    counted, over = [0], False

    def count() -> None:
        while not over:
            counted[0] += 1
            time.sleep(0.0001)

    thread = threading.Thread(target=count)
    thread.start()
    got_on = 0
    end = time.monotonic() + 60
    while got_on < 5 and time.monotonic() < end:
        before = counted[0]
        trace.report()
        # A thread that waits until the report is made gets one turn, then it sleeps.
        got_on += counted[0] - before >= 3
    over = True
    thread.join()
    assert got_on == 5


def test_ctrl_c_ends_an_analysis(recorded: Callable[..., str]) -> None:
    """Ctrl-C is handled while the analysis runs; the analysis continues in another thread."""
    path = recorded("""
import undertick
for i in range(4_000_000):
    with undertick.span("step"):
        pass
""")
    program = """
import os, signal, sys, undertick
trace = undertick.open(sys.argv[1])
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    trace.spans()
    print("not interrupted")
except KeyboardInterrupt:
    print("still at work" if threads() > before else "when it was done")
sys.stdout.flush()
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("still at work\n", "")


def test_ctrl_c_ends_the_program(trace: undertick.Trace) -> None:
    program = """
import os, signal, sys, threading, undertick
trace = undertick.open(sys.argv[1])
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
while True:
    trace.report()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(trace.path)],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=hear_ctrl_c,
    )
    assert "KeyboardInterrupt" in done.stderr and done.returncode == -signal.SIGINT


def test_notebook_display(trace: undertick.Trace) -> None:
    import xml.etree.ElementTree as ElementTree

    report = trace.report()
    outer = report.interval("outer")
    drawing = ElementTree.fromstring(outer.histogram._repr_html_())
    bars = drawing.findall("{http://www.w3.org/2000/svg}rect")
    assert len(bars) == sum(1 for count in outer.histogram.counts if count)
    for bar in bars:
        x, y = float(bar.get("x", "nan")), float(bar.get("y", "nan"))
        assert 0 <= x <= 480 and 0 <= y <= 120 and float(bar.get("height", "nan")) >= 0
    for shown in (outer.mean, outer, report):
        page = ElementTree.fromstring(f"<p>{shown._repr_html_()}</p>".replace("<br>", "<br/>"))  # type: ignore[union-attr]
        assert "".join(page.itertext())
    assert "outer" in report._repr_html_()
    evil = undertick.Report.from_json(json.dumps(report.document).replace("outer", "<script>"))
    assert "<script>" not in evil._repr_html_() and "<script>" not in evil.interval("<script>")._repr_html_()


def test_a_histogram_below_zero_is_drawn() -> None:
    drawn = undertick.Histogram({"edges": [-5.0, 0.0, 5.0, 20.0], "counts": [1, 0, 4], "unit": "ns"})
    assert drawn.svg().count("<rect") == 2
    assert undertick.Histogram({"edges": [], "counts": [], "unit": "ns"}).svg().startswith("<svg")


def test_numpy_sees_the_columns(trace: undertick.Trace) -> None:
    number = tick(trace)
    table = pa.table(trace.events())
    events, payloads = (table.column(name).to_numpy() for name in ("event", "payload"))
    assert np.array_equal(payloads[events == number], np.array(TICKS))
