"""SQL queries, which DuckDB answers from Parquet: the trace's files, or a temporary copy of its raw blocks."""

from __future__ import annotations

import argparse
import atexit
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._trace import Trace

if TYPE_CHECKING:
    import duckdb

_MISSING = "undertick sql needs DuckDB: pip install 'undertick[sql]', or pip install duckdb"

_KINDS = {
    0: "instant",
    1: "begin",
    2: "end",
    3: "next",
    4: "pair",
    5: "begin ordered",
    6: "end ordered",
    7: "gap",
    16: "switch out",
    17: "switch in",
    18: "waking",
    19: "migrate",
    20: "interrupt",
    21: "soft interrupt",
    22: "fault",
    23: "steal",
    24: "frequency",
    25: "kernel gap",
    26: "epoch",
}

# The names of a process come before the names of all processes.
_EVENTS = """
create view events as
select (e.ts - {first}) * {ns_per_tick} as at_ns, e.ts, e.ring, e.pid, e.tid, e.cpu,
    k.name as kind, e.event, coalesce(n.name, a.name, 'event ' || e.event) as name,
    e.payload, e.descheduled, e.host
from {rows} e
join kinds k on k.kind = e.kind
left join own_names n on n.pid = e.pid and n.event = e.event
left join names_of_all a on a.event = e.event
where e.mode = 0
"""

_KERNEL = """
create view kernel as
select (e.ts - {first}) * {ns_per_tick} as at_ns, e.ts, e.pid, e.tid, e.cpu, k.name as kind,
    e.event, e.payload,
    case when e.kind in (20, 21, 22) and e.payload >= 0 then e.payload * {ns_per_tick}
        when e.kind = 23 then e.payload::double end as took_ns,
    e.host
from {rows} e
join kinds k on k.kind = e.kind
where e.mode = 1
"""

_POINTS = """
create view points as
select at_ns, ts, ring, pid, tid, cpu, event, name, payload, host from events where kind = 'instant'
"""

_INTERVALS = """
create view intervals as
select (start - {first}) * {ns_per_tick} as at_ns, ns as took_ns, name::text as name, kind::text as kind,
    ring, pid, tid, start as ts, start + ticks as end_ts, depth, parent::text as parent,
    dropped::text as dropped, host
from {spans}
"""

# The program's spans; the other intervals are distances between points.
_SPANS = "create view spans as select * from intervals where kind in ('nested', 'stage')"


# Traces whose files a connection may still read: DuckDB opens them at each query.
_READ: list[Trace] = []
atexit.register(_READ.clear)


def _text(value: str) -> str:
    """Returns a text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


# The columns of files of events, for a trace without files.
_NO_ROWS = """(select null::bigint as ts, null::integer as ring, null::integer as pid, null::integer as tid,
    null::smallint as cpu, null::tinyint as mode, null::tinyint as kind, null::tinyint as descheduled,
    null::integer as event, null::bigint as payload, null::smallint as host where false)"""

# Fields of the manifest (crates/format/src/manifest.rs).
_NAMES_OF_MANIFEST = {
    "names": {"pid": "integer", "event": "integer", "name": "text"},
    "threads": {"pid": "integer", "tid": "integer", "name": "text"},
}
# The reader refuses a longer manifest before DuckDB reads it.
_MOST_OF_MANIFEST = 256 << 20


def _path(path: str) -> str:
    """Returns a path as an SQL literal in which `*`, `?` and `[` are not patterns."""
    return _text(re.sub(r"([*?\[])", r"[\1]", path))


def _files(paths: list[str]) -> str:
    return "read_parquet([" + ", ".join(_path(path) for path in paths) + "])" if paths else _NO_ROWS


def connect(path: str | os.PathLike[str], *, paths: bool = False) -> duckdb.DuckDBPyConnection:
    """Returns a connection of DuckDB that has a trace's rows as views.

    ``events`` (the program's events), ``points`` (its instants), ``spans`` (its spans),
    ``intervals`` (all intervals of a report), ``kernel`` (kernel events), ``names``, ``threads``
    and ``manifest``; with ``paths=True`` also ``paths``, the call tree, and ``states``, what tells the
    calls of its paths apart, for which the whole trace is analysed. docs/book/sql.md has their columns
    and a cookbook. Times ``at_ns`` are nanoseconds since the first row of the trace, ``took_ns`` nanoseconds (double).

    The views `spans` and `intervals` are missing, with a warning, where the trace has no spans and
    no temporary file can be written. Raises `Error` where DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise _native.Error(_MISSING) from None
    trace = Trace(path)
    # Files that were made for an earlier connection to it serve again.
    trace = next((known for known in _READ if (known.path, known.manifest) == (trace.path, trace.manifest)), trace)
    where = Path(trace.path)
    connection = duckdb.connect()
    try:
        fill(connection, trace, where)
        if paths:
            report = trace.report()
            tree, found = report.tree(), report.states()  # by name in the queries
            connection.execute("create table paths as select row_number() over () - 1 as id, * from tree")
            connection.execute("create table states as select * from found")
            del tree, found
    except duckdb.Error as error:
        raise _native.InputError(f"{trace.path}: {error}") from None
    return connection


def fill(connection: duckdb.DuckDBPyConnection, trace: Trace, where: Path) -> None:
    """Creates the views of the trace, whose manifest is in the directory `where`."""
    parts = [str(file) for file in trace._native.files()]
    if trace not in _READ:
        _READ.append(trace)
    connection.execute("create table kinds (kind tinyint, name text)")
    connection.executemany("insert into kinds values (?, ?)", list(_KINDS.items()))
    _names(connection, trace)
    rows = _files(parts)
    first = connection.execute(f"select min(ts) from {rows}").fetchone()
    known = {
        "rows": rows,
        "first": (first and first[0]) or 0,
        "ns_per_tick": f"{trace.ns_per_tick!r}::double",
    }
    for view in (_EVENTS, _KERNEL, _POINTS):
        connection.execute(view.format(**known))
    spans = _spans(trace)
    if spans is not None:
        for view in (_INTERVALS, _SPANS):
            connection.execute(view.format(**known, spans=spans))
    manifest = _path(str(where / "manifest.json"))
    connection.execute(
        f"create view manifest as select * from read_json({manifest}, maximum_object_size = {_MOST_OF_MANIFEST})"
    )


def _spans(trace: Trace) -> str | None:
    """Returns the spans' files as SQL: those in the trace, or those made for this process.

    Returns None, with a warning, if they cannot be made.
    """
    try:
        directory = Path(trace._native.spans_dir())
    except _native.InputError:
        raise
    except _native.Error as error:
        # An empty view would be a wrong answer.
        warnings.warn(f"no views spans and intervals: {error}", RuntimeWarning, stacklevel=4)
        return None
    return _files(sorted(str(file) for file in directory.glob("*.parquet")))


def _names(connection: duckdb.DuckDBPyConnection, trace: Trace) -> None:
    """Creates the tables of names in one step: one by one took minutes for many names."""
    for table, columns in _NAMES_OF_MANIFEST.items():
        shape = _text(json.dumps([columns]))
        connection.execute(
            f"create table {table} as select unnest(from_json(?, {shape}), recursive := true)",
            [json.dumps(trace.manifest[table])],
        )
    # There is one row to an event, whatever the manifest has: a join must not multiply rows.
    connection.execute(
        "create view own_names as select pid, event, any_value(name) as name from names"
        " where pid is not null group by pid, event"
    )
    connection.execute(
        "create view names_of_all as select event, any_value(name) as name from names"
        " where pid is null group by event"
    )


def main(arguments: list[str]) -> int:
    """Runs the command ``undertick sql``; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="undertick sql",
        description="Answer a question about a trace in SQL, by DuckDB.",
        epilog="views: spans, paths, states, points, events, intervals, kernel, names, threads, manifest; without a query "
        "their columns are shown. Example: undertick sql run.ut \"select name, count(*), avg(took_ns) from spans group by name\"",
    )
    parser.add_argument("trace", metavar="NAME.ut", help="trace directory, as made by `undertick record`")
    parser.add_argument("query", nargs="?", help="a query; - reads it from standard input")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document on standard output, nothing else")
    form.add_argument("--csv", action="store_true", help="comma-separated values with a heading")
    given = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", RuntimeWarning)
            query = sys.stdin.read() if given.query == "-" else given.query
            connection = connect(given.trace, paths=query is None or any(view in query.lower() for view in ("paths", "states")))
        for one in said:
            print(f"undertick: note: {_native.shown_lines(str(one.message))}", file=sys.stderr)
    except _native.InputError as error:
        return _fail(2, str(error))
    except _native.Error as error:
        return _fail(1, str(error))
    import duckdb

    if query is None:
        query = (
            "select table_name as view, string_agg(column_name || ' ' || lower(data_type), ', ' order by column_index)"
            " as columns from duckdb_columns() where table_name in ('events', 'points', 'spans', 'paths', 'states', 'intervals',"
            " 'kernel', 'names', 'threads') group by view order by view"
        )
    try:
        found = connection.execute(query)
        if found.description is None:
            return _fail(2, "the query gives no rows; ask with select")
        if given.json:
            _print(json.dumps({"schema_version": 1, **_document(found)}, indent=2) + "\n")
        elif given.csv:
            _csv(found)
        else:
            _print(_table(found))
    except duckdb.Error as error:
        return _fail(2, f"{given.trace}: {error}")
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    except KeyboardInterrupt:
        return 130
    return 0


def _fail(status: int, why: str) -> int:
    print(f"undertick: {_native.shown_lines(why)}", file=sys.stderr)
    return status


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    """Returns a value for JSON: null for a number that is not finite, text for other types."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return str(value)


def _heads(found: duckdb.DuckDBPyConnection) -> list[str]:
    return [str(column[0]) for column in found.description or ()]


def _document(found: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    heads = _heads(found)
    return {"columns": heads, "rows": [[_plain(value) for value in row] for row in found.fetchall()]}


def _csv(found: duckdb.DuckDBPyConnection) -> None:
    def line(cells: Iterable[Any]) -> str:
        return ",".join(map(_cell, cells)) + "\n"

    sys.stdout.write(line(_heads(found)))
    while rows := found.fetchmany(10_000):
        sys.stdout.write("".join(map(line, rows)))
    sys.stdout.flush()


def _cell(value: Any) -> str:
    """Returns a CSV cell: a number unchanged, text made safe for spreadsheets and terminals."""
    if value is None:
        return ""
    if isinstance(value, (bool, int, float, Decimal)):
        return str(value)
    return _native.csv_cell(str(value))


def _table(found: duckdb.DuckDBPyConnection) -> str:
    """Returns all rows in columns of text, numbers right-aligned."""
    heads, rows = [_native.shown(head) for head in _heads(found)], found.fetchall()
    numbers = (int, float, Decimal, type(None))
    right = [all(isinstance(value, numbers) for value in column) for column in zip(*rows)]
    shown = [[_shown(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *shown)]

    def line(cells: list[str]) -> str:
        placed = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(cells, widths, right or [False] * len(heads))
        )
        return "  ".join(placed).rstrip() + "\n"

    ruled = line(["-" * width for width in widths])
    return line(heads) + ruled + "".join(line(row) for row in shown)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return _native.shown(str(value))
