"""SQL: each query of the cookbook against an answer computed by plain loops over the rows of the
trace."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable

import duckdb
import pyarrow as pa
import pytest
from conftest import PLAIN, ROOT
from made import INTERRUPT, START, SWITCH_OUT, TICKS_PER_NS, Made, example

import undertick

MADE = example()
Rows = list[tuple[Any, ...]]


def questions() -> dict[int, str]:
    text = (ROOT / "docs" / "book" / "sql.md").read_text()
    found = re.findall(r"^### (\d+)\. .*?^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return {int(number): query for number, query in found}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    where = tmp_path_factory.mktemp("sql")
    any_trace = where / "any.ut"
    command = [sys.executable, "-m", "undertick", "record", *PLAIN, "-o", str(any_trace), "--"]
    program = "import undertick; undertick.event('x')"
    subprocess.run([*command, sys.executable, "-c", program], check=True, timeout=60)
    made = where / "made, it's.ut"  # a name that SQL must quote
    MADE.write(made, json.loads((any_trace / "manifest.json").read_text()))
    return str(made)


def spans(name: str) -> list[dict[str, Any]]:
    return sorted((s for s in MADE.spans if s["name"] == name), key=lambda s: s["at"])


FIRST = (min(row["ts"] for row in MADE.rows) - START) / TICKS_PER_NS


def where_the_time_goes() -> Rows:
    rows = []
    for name in ("request", "parse"):
        took = [s["took"] for s in spans(name)]
        rows.append((name, len(took), sum(took) / 1e6, sum(took) / len(took)))
    return sorted(rows, key=lambda row: -row[2])


def usual_and_rare() -> Rows:
    rows: Rows = []
    for name in ("parse", "request"):
        took = sorted(s["took"] for s in spans(name))
        rows.append((name, statistics.median(took), took[math.ceil(0.99 * len(took)) - 1], took[-1]))
    return rows


def slowest() -> Rows:
    found = sorted(spans("request"), key=lambda s: (-s["took"], s["at"]))[:10]
    return [((s["at"] - FIRST) / 1e6, s["took"], 11 + s["ring"], depth(s)) for s in found]


def depth(span: dict[str, Any]) -> int:
    """Returns the number of other spans of its thread that contain it."""
    holds = (s["at"] < span["at"] and span["at"] + span["took"] < s["at"] + s["took"] for s in MADE.spans if s["ring"] == span["ring"])
    return sum(holds)


def distribution() -> Rows:
    bins: defaultdict[int, int] = defaultdict(int)
    for s in spans("request"):
        bins[math.floor(math.log2(s["took"]))] += 1
    return [(at, 2.0**at, n) for at, n in sorted(bins.items())]


def over_time() -> Rows:
    windows: defaultdict[int, list[float]] = defaultdict(list)
    for s in spans("request"):
        windows[int((s["at"] - FIRST) // 100e3)].append(s["took"])
    return [(at, len(took), sum(took) / len(took)) for at, took in sorted(windows.items())]


def share_inside() -> Rows:
    inside = 0.0
    for outer in spans("request"):
        for inner in spans("parse"):
            if (
                inner["ring"] == outer["ring"]
                and inner["at"] >= outer["at"]
                and inner["at"] + inner["took"] <= outer["at"] + outer["took"]
            ):
                inside += inner["took"]
    return [(inside / sum(s["took"] for s in spans("request")),)]


def from_one_to_the_next() -> Rows:
    rows: Rows = []
    for ring in (0, 1):
        mine = [s for s in spans("request") if s["ring"] == ring]
        gaps = [b["at"] - a["at"] - a["took"] for a, b in zip(mine, mine[1:])]
        rows.append((11 + ring, len(gaps), min(gaps), max(gaps)))
    return rows


def how_often() -> Rows:
    events = [row["ts"] for row in MADE.rows if row["mode"] == 0]
    seconds = (max(events) - min(events)) / TICKS_PER_NS / 1e9
    counts: defaultdict[str, int] = defaultdict(int)
    for point in MADE.points:
        counts[point["name"]] += 1
    return [(name, n, n / seconds) for name, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]


def payloads() -> Rows:
    rows: Rows = []
    for name in ("queue", "receive", "send"):
        found = [p["payload"] for p in MADE.points if p["name"] == name]
        rows.append((name, len(found), min(found), sum(found) / len(found), max(found)))
    return rows


def messages() -> Rows:
    sent = {p["payload"]: p["at"] for p in MADE.points if p["name"] == "send"}
    took = [p["at"] - sent[p["payload"]] for p in MADE.points if p["name"] == "receive"]
    return [(len(took), min(took), sum(took) / len(took), max(took))]


def the_slowest_one() -> Rows:
    worst = max(spans("request"), key=lambda s: (s["took"], -s["at"]))
    lo, hi = worst["at"], worst["at"] + worst["took"]
    names = {1: "request", 2: "parse", 3: "queue", 4: "send", 5: "receive"}
    kinds = {0: "instant", 1: "begin", 2: "end"}
    rows: Rows = []
    for row in sorted(MADE.rows, key=lambda row: row["ts"]):
        at = (row["ts"] - START) / TICKS_PER_NS
        if row["ring"] == worst["ring"] and lo <= at <= hi:
            rows.append((at - lo, kinds[row["kind"]], names[row["event"]], row["payload"]))
    return rows


def preempted() -> Rows:
    hits: defaultdict[str, list[float]] = defaultdict(list)
    for s in MADE.spans:
        for row in MADE.rows:
            at = (row["ts"] - START) / TICKS_PER_NS
            if (row["kind"], row["payload"], row["tid"]) == (SWITCH_OUT, 1, 11 + s["ring"]):
                if s["at"] <= at <= s["at"] + s["took"]:
                    hits[s["name"]].append(s["took"])
    return [(name, len(took), sum(took) / len(took)) for name, took in sorted(hits.items())]


def interrupts() -> Rows:
    of: defaultdict[tuple[int, str], list[float]] = defaultdict(list)
    for row in MADE.rows:
        if row["kind"] in (20, 21):
            kind = "interrupt" if row["kind"] == INTERRUPT else "soft interrupt"
            of[row["cpu"], kind].append(row["payload"] / TICKS_PER_NS)
    return [(*key, len(took), sum(took)) for key, took in sorted(of.items())]


def open_at_once() -> Rows:
    most = 0
    for s in spans("request"):
        most = max(most, sum(1 for o in spans("request") if o["at"] <= s["at"] < o["at"] + o["took"]))
    return [(most,)]


def missing() -> Rows:
    written = sum(1 for row in MADE.rows if row["mode"] == 0 and row["kind"] != 7)
    return [(written, 9, 1, 9, 1)]


ANSWERS: dict[int, Callable[[], Rows]] = dict(
    enumerate(
        [
            where_the_time_goes,
            usual_and_rare,
            slowest,
            distribution,
            over_time,
            share_inside,
            from_one_to_the_next,
            how_often,
            payloads,
            messages,
            the_slowest_one,
            preempted,
            interrupts,
            open_at_once,
            missing,
        ],
        start=1,
    )
)


def test_the_cookbook_has_fifteen_questions() -> None:
    assert sorted(questions()) == sorted(ANSWERS) == list(range(1, 16))


@pytest.mark.parametrize("number", range(1, 16))
def test_cookbook(trace: str, number: int) -> None:
    found = undertick.open(trace).sql().sql(questions()[number]).fetchall()
    expected = ANSWERS[number]()
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected):
        assert len(row) == len(wanted)
        for value, truth in zip(row, wanted):
            if isinstance(truth, float):
                assert float(value) == pytest.approx(truth, rel=1e-9, abs=1e-6), (row, wanted)
            else:
                assert value == truth, (row, wanted)


def test_the_answers_are_not_trivial() -> None:
    """Each query has an answer that could be wrong."""
    assert len(distribution()) > 3 and len(interrupts()) > 2 and open_at_once()[0][0] >= 3
    assert 0.01 < share_inside()[0][0] < 0.5 and len(the_slowest_one()) > 4 and preempted()[0][1] >= 1


def test_the_views(trace: str) -> None:
    connection = undertick.open(trace).sql()

    def count(view: str) -> int:
        row = connection.execute(f"select count(*) from {view}").fetchone()
        assert row is not None
        return int(row[0])

    assert count("spans") == len(MADE.spans)
    assert count("points") == len(MADE.points)
    assert count("events") == sum(1 for row in MADE.rows if row["mode"] == 0)
    assert count("kernel") == sum(1 for row in MADE.rows if row["mode"] == 1)
    assert connection.execute("select * from threads").fetchall() == [(10, 11, "first")]
    assert count("names") == 6 and count("manifest") == 1
    row = connection.execute("select clock.ticks_per_second_numerator, state from manifest").fetchone()
    assert row == (TICKS_PER_NS * 10**9, "complete")
    # Each point after the first of its thread ends a period.
    assert count("intervals") == len(MADE.spans) + len(MADE.points) - 4
    # Every span is one that was written.
    found = connection.execute("select ring, name, at_ns, took_ns from spans").fetchall()
    put_in = [(s["ring"], s["name"], s["at"] - FIRST, s["took"]) for s in MADE.spans]
    assert sorted(found) == sorted(put_in)


def test_the_call_tree(trace: str) -> None:
    """A table of its own, for which a connection or a query must ask."""
    connection = undertick.open(trace).sql(paths=True)
    found = connection.execute(
        "select name, sum(calls)::bigint from paths where threads is null group by name order by name"
    ).fetchall()
    counted: dict[str, int] = defaultdict(int)
    for span in MADE.spans:
        counted[span["name"]] += 1
    assert found == sorted(counted.items())
    joined = connection.execute(
        "select inner_.path = outer_.path || '/' || inner_.name and inner_.depth = outer_.depth + 1"
        " from paths inner_ join paths outer_ on inner_.parent = outer_.id"
    ).fetchall()
    assert joined and all(same for (same,) in joined)
    roles = connection.execute(
        "select role.calls, role.total_ns, sum(inside.total_ns) from paths role join paths inside"
        " on inside.parent = role.id where role.threads is not null group by all"
    ).fetchall()
    assert len(roles) > 1, "the trace has threads of several names"
    assert all(calls == 0 and total == pytest.approx(inside, rel=1e-9) for calls, total, inside in roles)
    with pytest.raises(duckdb.CatalogException):
        undertick.open(trace).sql().execute("select * from paths")
    answer = ask(trace, "select name, calls from paths order by self_ns desc limit 1", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["columns"] == ["name", "calls"]
    columns = ask(trace)
    assert re.search(r"^paths +id bigint, path varchar, name varchar, parent bigint", columns.stdout, re.MULTILINE)
    assert re.search(r"^states +path varchar, state bigint, conditions varchar, share double", columns.stdout, re.MULTILINE)
    # So few calls have no states.
    answer = ask(trace, 'select count(*) as n from states', "--json")
    assert json.loads(answer.stdout)["rows"] == [[0]], answer.stdout


def test_rows_of_both_modes_in_one_batch(trace: str) -> None:
    """Arrow gets the rows that were written, the kernel's rows separately."""
    opened = undertick.open(trace)
    for batches, mode in ((opened.events(), 0), (opened.kernel(), 1)):
        wanted = [row for row in MADE.rows if row["mode"] == mode]
        found = pa.table(batches).to_pylist()
        assert sorted(found, key=lambda row: sorted(row.items())) == sorted(
            wanted, key=lambda row: sorted(row.items())
        )


def test_a_real_trace_agrees_with_its_report(recorded: Callable[..., str]) -> None:
    program = """
import undertick
def work(n):
    with undertick.span("work"):
        if n: work(n - 1)
for i in range(100): work(i % 5)
undertick.span("open").__enter__()
"""
    trace = undertick.open(recorded(program))
    work = trace.report(cull="none", compensate="none").interval("work")
    row = trace.sql().execute("select count(*), avg(took_ns), max(took_ns), min(name) from spans").fetchone()
    assert row is not None and work.mean is not None
    assert (row[0], row[3]) == (work["count"], "work") and work["count"] == 300
    assert row[1] == pytest.approx(work.mean.value, rel=1e-9)
    assert row[2] == pytest.approx(work["max"], rel=1e-9)


def ask(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "undertick", "sql", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def test_without_room_for_spans_there_are_the_other_views(
    trace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.ut"
    shutil.copytree(trace, copy, ignore=shutil.ignore_patterns("spans"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.warns(RuntimeWarning, match="no views spans"):
        connection = undertick.open(copy).sql()
    assert connection.execute("select count(*) from points").fetchone() == (len(MADE.points),)
    with pytest.raises(duckdb.Error, match="spans"):
        connection.execute("select count(*) from spans")
    said = ask(str(copy), "select count(*) as n from points", "--csv")
    assert (said.returncode, said.stdout) == (0, f"n\n{len(MADE.points)}\n") and "note: no views" in said.stderr


def test_nothing_is_written_into_the_trace(trace: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.ut"
    shutil.copytree(trace, copy, ignore=shutil.ignore_patterns("spans"))
    before = sorted(os.listdir(copy))
    said = ask(str(copy), "select count(*) as n from spans", "--csv")
    assert (said.returncode, said.stdout) == (0, f"n\n{len(MADE.spans)}\n"), said.stderr
    assert sorted(os.listdir(copy)) == before


def test_the_command(trace: str) -> None:
    query = "select name, count(*) as n, max(payload) * 1.5 as most from points group by name order by name"
    shown = ask(trace, query)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert [line.split() for line in lines[:1] + lines[2:]][0] == ["name", "n", "most"]
    assert lines[2].split() == ["queue", "65", "10.5"]
    document = json.loads(ask(trace, query, "--json").stdout)
    assert document["schema_version"] == 1 and document["columns"] == ["name", "n", "most"]
    assert [row[:2] for row in document["rows"]] == [["queue", 65], ["receive", 25], ["send", 40]]
    assert ask(trace, "-", "--csv", input=query).stdout.splitlines()[:2] == ["name,n,most", "queue,65,10.5"]
    assert "took_ns double" in ask(trace).stdout
    assert json.loads(ask(trace, "select 'nan'::double as x, [1, null] as y", "--json").stdout)["rows"] == [
        [None, [1, None]]
    ]


def test_what_goes_wrong_says_what(trace: str, tmp_path: Path) -> None:
    wrong = ask(trace, "select nothing from spans")
    assert wrong.returncode == 2 and "nothing" in wrong.stderr and "Traceback" not in wrong.stderr
    absent = ask(str(tmp_path / "none.ut"), "select 1")
    assert absent.returncode == 2 and "none.ut" in absent.stderr
    assert ask().returncode == 2
    (tmp_path / "duckdb.py").write_text("raise ImportError('not here')")
    without = ask(trace, "select 1", env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert without.returncode == 1 and "pip install" in without.stderr
    head = subprocess.run(
        f"{sys.executable} -m undertick sql \"$TRACE\" 'select range from range(300000)' | head -1",
        shell=True,
        env={**os.environ, "TRACE": trace},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in head.stderr


def test_the_program_asks_the_package(trace: str) -> None:
    program = os.environ.get("UNDERTICK_PROGRAM", str(ROOT / "target" / "release" / "undertick"))
    if not Path(program).exists():
        pytest.skip("the program undertick is not built, so its sql is not asked")
    words = [program, "sql", trace, "select count(*) as n from points", "--json"]
    done = subprocess.run(
        words, env={**os.environ, "UNDERTICK_PYTHON": sys.executable}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == [[len(MADE.points)]]
    bare = {**os.environ, "UNDERTICK_PYTHON": shutil.which("false") or "/bin/false"}
    without = subprocess.run(words, env=bare, capture_output=True, text=True, timeout=60)
    assert without.returncode == 1 and "pip install" in without.stderr


def damaged(trace: str, where: Path, name: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """Returns a copy of the trace with a changed manifest."""
    copy = where / name
    shutil.copytree(trace, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def refused(trace: Path, *named: str) -> None:
    said = ask(str(trace), "select count(*) from events", check=False)
    assert said.returncode == 2, said
    assert "Traceback" not in said.stderr and "\x1b" not in said.stderr, said.stderr
    for word in named:
        assert word in said.stderr, said.stderr


def test_a_trace_without_files_has_no_rows(trace: str, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest.update(parts=[], rings=[], events=0)

    empty = damaged(trace, tmp_path, "empty.ut", change)
    for view in ("events", "points", "spans", "intervals", "kernel"):
        assert ask(str(empty), f"select count(*) as n from {view}", "--csv").stdout == "n\n0\n"
    assert ask(str(empty)).returncode == 0


def test_what_is_wrong_names_trace_and_file(trace: str, tmp_path: Path) -> None:
    missing = damaged(trace, tmp_path, "missing.ut", lambda manifest: None)
    events = json.loads((missing / "manifest.json").read_text())["parts"][-1]["file"]
    (missing / events).unlink()
    refused(missing, "missing.ut", events)
    torn = damaged(trace, tmp_path, "torn \x1b[2J.ut", lambda manifest: None)
    (torn / events).write_bytes(b"PAR1")
    refused(torn, "torn \\u{1b}[2J.ut", events)
    refused(tmp_path / "nowhere.ut", "nowhere.ut", "no such trace")
    refused(Path(__file__), "test_sql.py", "not a trace")
    fifo = damaged(trace, tmp_path, "fifo.ut", lambda manifest: None)
    (fifo / "manifest.json").unlink()
    os.mkfifo(fifo / "manifest.json")
    refused(fifo, "fifo.ut", "manifest.json", "a fifo")


def test_a_path_is_no_pattern(trace: str, tmp_path: Path) -> None:
    rows = ask(trace, "select count(*) as n from events", "--csv").stdout
    odd = damaged(trace, tmp_path, "[a]*?'b.ut", lambda manifest: None)
    assert ask(str(odd), "select count(*) as n from events", "--csv").stdout == rows
    assert ask(str(odd), "select count(*) as n from spans, manifest", "--csv").stdout != "n\n0\n"


def test_names_steer_no_terminal_and_are_no_formula(trace: str, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["names"] = [
            {"pid": None, "event": event, "name": f'{first}1+1,"\x1b[2J\u202e\x9b'}
            for event, first in enumerate("=+-@\t\ra")
        ]

    steering = damaged(trace, tmp_path, "steering.ut", change)
    query = "select name, -event as n from names order by event"
    for form in ("--csv", None):
        said = ask(str(steering), query, *([form] if form else []))
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", said.stdout), said
        assert "\\u{1b}[2J\\u{202e}\\u{9b}" in said.stdout
    lines = ask(str(steering), query, "--csv").stdout.splitlines()
    assert [line[:4] for line in lines[1:]] == ["\"'=1", "\"'+1", "\"'-1", "\"'@1", "\"' 1", "\"' 1", '"a1+']
    assert lines[2].endswith(',-1')
    found = json.loads(ask(str(steering), query, "--json").stdout)
    assert found["rows"][0][0].startswith('=1+1,"\x1b[2J')


def test_many_names_take_no_time_to_speak_of(trace: str, tmp_path: Path) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["names"] = [{"pid": i, "event": i % 60_000, "name": f"name {i}"} for i in range(300_000)]
        manifest["threads"] = [{"pid": i, "tid": i, "name": f"thread {i}"} for i in range(300_000)]

    many = damaged(trace, tmp_path, "many.ut", change)
    said = ask(str(many), "select count(*) as n, max(pid) as last from names", "--csv")
    assert said.stdout == "n,last\n300000,299999\n"


def test_a_trace_of_raw_blocks(tmp_path: Path) -> None:
    """Events that stay in raw blocks are in the views, and nothing is written into their trace."""
    trace, events = tmp_path / "large.ut", 4_000_000
    program = f"import undertick\nfor i in range({events}): undertick.event(7, i * 2654435761 % 2**32)"
    command = [sys.executable, "-m", "undertick", "record", *PLAIN, "--overflow", "block", "-o", str(trace), "--"]
    subprocess.run([*command, sys.executable, "-c", program], check=True, timeout=300)
    before = sorted(file.name for file in trace.iterdir())
    assert "raw.utb" in before and "events.parquet" not in before
    connection = undertick.open(trace).sql()
    found = connection.execute("select count(*), sum(payload), min(event), max(event) from points").fetchone()
    assert found == (events, sum(i * 2654435761 % 2**32 for i in range(events)), 7, 7)
    assert sorted(file.name for file in trace.iterdir()) == before
