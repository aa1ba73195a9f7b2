"""Traces."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import Batches
from ._report import Report

if TYPE_CHECKING:
    import duckdb


class Trace:
    """A trace, opened by `open`."""

    path: str
    """The directory of the trace."""

    manifest: dict[str, Any]
    """The content of ``manifest.json``: everything that is not an event."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._native = _native.Trace(self.path)
        self.manifest = json.loads(self._native.manifest())

    @property
    def ns_per_tick(self) -> float:
        """Nanoseconds for one tick of the trace's clock."""
        clock = self.manifest["clock"]
        ticks: float = clock["ticks_per_second_numerator"] / clock["ticks_per_second_denominator"]
        return 1e9 / ticks

    @property
    def names(self) -> dict[tuple[int | None, int], str]:
        """Names of events, by process id (None: all processes) and event number."""
        return {(name["pid"], name["event"]): name["name"] for name in self.manifest["names"]}

    def events(self) -> Batches:
        """Returns the program's events: one row for each, in the order of recording.

        Columns ``ts`` (int64, ticks of the trace's clock), ``ring``, ``pid``, ``tid``, ``cpu``
        (-1 not known), ``mode`` (0), ``kind`` (0 instant, 1 begin, 2 end, ...),
        ``descheduled``, ``event``, ``payload`` (int64), ``host``: docs/format.md, section 6.

        They are passed by the Arrow PyCapsule interface without a copy:
        ``pyarrow.table(trace.events())``, ``polars.from_arrow(...)``, ``duckdb``.
        """
        return self._native.events()

    def kernel(self) -> Batches:
        """Returns the kernel events: columns as of `events`, ``mode`` 1, kinds of 16 and above."""
        return self._native.kernel()

    def report(
        self,
        table: str | os.PathLike[str] | None = None,
        *,
        confidence: float = 0.95,
        cull: str = "auto",
        compensate: str = "auto",
    ) -> Report:
        """Returns intervals, frequencies and estimates, as ``undertick report`` does.

        `table` is a file of the wanted intervals, or its text; without one, every pair that the
        events form is an interval. `cull` is ``auto``, ``kernel``, ``ratio:R`` or ``none``;
        `compensate` is ``auto``, ``none``, ``long-term``, ``pairs``, ``sampler`` or
        ``control-variate``.
        """
        return Report(self._native.report(_given(table), confidence, cull, compensate))

    def explain(self, path: str, *, slowest: int = 20) -> Batches:
        """Returns why the slowest calls of a path took longer than its typical one, as ``undertick
        explain`` does: one row for each part of a call's excess, the slowest call first.

        `path` has the names of the spans from the outermost on, e.g. ``"request/lookup"``, or its last
        ones where that is clear. Columns ``call`` (0 is the slowest), ``start_ns`` (after the first
        event), ``took_ns``, ``excess_ns`` (the sum of ``ns`` over the parts of the call), ``tid``,
        ``thread``, ``cpu``, ``cause`` (``preempted``, ``waited``, ``child``, ..., see
        docs/book/explain.md), ``of`` (the thread or the span inside), ``words`` (both in words), ``ns``, ``n`` (how often
        in this call) and ``typical_n`` (how often in the typical one). No rows: the path has fewer
        than 20 calls. Raises `InputError` where `path` is no path, or the end of several.
        """
        if slowest < 1:
            raise _native.InputError(f"slowest={slowest}: give a number from 1 on")
        return self._native.explain(path, slowest)

    def spans(
        self,
        table: str | os.PathLike[str] | None = None,
        *,
        cull: str = "auto",
        compensate: str = "auto",
    ) -> Batches:
        """Returns one row for each interval. The rows are made once for this object, unless
        ``undertick report --spans`` has stored them in the trace. The arguments are those of
        `report`.

        Columns ``name``, ``kind`` (``nested``, ``stage``, ``pair``, ``period``, ``key``,
        ``message``), ``ring``, ``pid``, ``tid``, ``start`` (ticks), ``start_ns`` (since the
        recording's first anchor), ``ticks`` (end less start, as read), ``ns`` (float64, less the
        cost of recording), ``depth``, ``parent``, ``dropped`` (why it counts in no figure; null if
        it counts), ``host``. Raises `Error` where no temporary file can be written.
        """
        return self._native.spans(_given(table), cull, compensate)

    def sql(self, *, paths: bool = False) -> duckdb.DuckDBPyConnection:
        """Returns a connection of DuckDB that has the rows as views: ``events``, ``points``,
        ``spans``, ``intervals``, ``kernel``, ``names``, ``threads``, ``manifest``, and with
        ``paths=True`` the call tree (``paths``) and what tells the calls of its paths apart
        (``states``), for which the whole trace is analysed (docs/book/sql.md).

        ``trace.sql().sql("select name, avg(took_ns) from spans group by name").show()``
        """
        from ._sql import connect

        return connect(self.path, paths=paths)

    def __repr__(self) -> str:
        return f"undertick.open({self.path!r})"


def _given(table: str | os.PathLike[str] | None) -> tuple[str, str] | None:
    """Returns a table's text, and the name to call it by."""
    if table is None:
        return None
    if isinstance(table, str) and "\n" in table:
        return (table, "table")
    return (_native.read_table(os.fspath(table)), os.fspath(table))


def open(path: str | os.PathLike[str]) -> Trace:
    """Opens a trace directory. A recording that was cut short is refused: `undertick record --finish` ends it.

    Raises `InputError` if the directory is missing, not a trace, or damaged; `Error` if it is still
    being recorded.
    """
    return Trace(path)
