"""Reports."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from . import _native
from ._estimate import Estimate
from ._figures import duration, figure, interval_text
from ._native import Batches


class Histogram:
    """A distribution as bins, which a notebook draws."""

    edges: Sequence[float]
    """Bin bounds, ascending, in `unit`, one more than `counts`; widths grow with the value."""
    counts: Sequence[int]
    """Number of samples of each bin: ``edges[i] <= x < edges[i + 1]``."""
    unit: str
    """The unit, ``ns``."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.edges = document["edges"]
        self.counts = document["counts"]
        self.unit = document["unit"]

    def __repr__(self) -> str:
        if not self.counts:
            return "<undertick.Histogram: empty>"
        least, most = duration(self.edges[0]), duration(self.edges[-1])
        return f"<undertick.Histogram: {sum(self.counts)} samples, {least} to {most}>"

    def _repr_html_(self) -> str:
        return self.svg()

    def svg(self, width: int = 480, height: int = 120) -> str:
        """Returns an SVG drawing, sizes in pixels: density over a logarithmic axis, or over a
        linear one if a sample is not above 0."""
        if not self.counts:
            return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20"></svg>'
        edges = list(self.edges)
        logarithmic = edges[0] > 0
        at = [math.log(edge) for edge in edges] if logarithmic else edges
        span = (at[-1] - at[0]) or 1.0
        density = [n / ((b - a) or 1.0) for n, a, b in zip(self.counts, at, at[1:])]
        top, foot = max(density) or 1.0, height - 16
        bars = []
        for count, share, left, right, low, high in zip(
            self.counts, density, at, at[1:], edges, edges[1:]
        ):
            if count == 0:
                continue
            x, wide = (left - at[0]) / span * width, max((right - left) / span * width, 0.5)
            tall = share / top * (foot - 4)
            title = escape(f"{duration(low)} to {duration(high)}: {count}")
            bars.append(
                f'<rect x="{x:.2f}" y="{foot - tall:.2f}" width="{wide:.2f}" height="{tall:.2f}">'
                f"<title>{title}</title></rect>"
            )
        words = (
            f'<text x="0" y="{height - 3}">{escape(duration(edges[0]))}</text>'
            f'<text x="{width}" y="{height - 3}" text-anchor="end">{escape(duration(edges[-1]))}</text>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" fill="#4477aa" role="img">'
            f'{"".join(bars)}<g fill="currentColor">{words}</g></svg>'
        )


class Interval(Mapping[str, Any]):
    """One interval of a report: the entry of the JSON document, and its figures."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def __getitem__(self, key: str) -> Any:
        return self._document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    @property
    def name(self) -> str:
        """The name of the interval."""
        return str(self._document["name"])

    @property
    def mean(self) -> Estimate | None:
        """Mean, ns; None without samples."""
        return self._estimate(self._document["mean"])

    @property
    def median(self) -> Estimate | None:
        """Median, ns; None without samples."""
        return self._estimate(self._document["median"])

    def quantile(self, p: float) -> Estimate | None:
        """Returns the quantile `p` (0.9, 0.99 or 0.999), ns; None without samples.

        Raises `InputError` for another `p`.
        """
        quantiles = self._document["quantiles"]
        found = quantiles.get(f"{p:g}")
        if found is None and quantiles:
            raise _native.InputError(f"quantile {p:g}: the report has {', '.join(quantiles)}")
        return self._estimate(found)

    @property
    def histogram(self) -> Histogram:
        """The distribution of the samples, ns."""
        return Histogram(self._document["histogram"])

    @staticmethod
    def _estimate(document: Mapping[str, Any] | None) -> Estimate | None:
        return None if document is None else Estimate.from_json(document)

    def __repr__(self) -> str:
        return f"<undertick.Interval {self.name!r}: {self['count']} samples, mean {self.mean}>"

    def _repr_html_(self) -> str:
        mean = self.mean
        shown = "no samples" if mean is None else mean._repr_html_()
        return f"<div><b>{escape(self.name)}</b>: mean {shown}<br>{self.histogram.svg()}</div>"


class Report(Mapping[str, Any]):
    """A report: the JSON document as a mapping, a table, a page."""

    def __init__(self, native: _native.Report, document: dict[str, Any] | None = None) -> None:
        self._native = native
        self.document: dict[str, Any] = json.loads(native.json()) if document is None else document
        """The document, as ``undertick report --json`` prints it."""

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Returns the report in the output of ``undertick report --json`` or ``run --json``."""
        return cls(_native.Report(text), json.loads(text))

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)

    def interval(self, name: str) -> Interval:
        """Returns the interval of that name; raises `KeyError` with the existing names."""
        for found in self.document["intervals"]:
            if found["name"] == name:
                return Interval(found)
        names = ", ".join(repr(found["name"]) for found in self.document["intervals"])
        raise KeyError(f"no interval {name!r}; there are: {names or 'none'}")

    @property
    def intervals(self) -> Batches:
        """All intervals as a table for Arrow, one row for each.

        Columns ``name``, ``kind``, ``count``, ``unmatched``, ``culled``, ``total_ns``, ``min_ns``,
        ``max_ns``, ``sd_ns``, and for each of ``mean``, ``median``, ``p90``, ``p99``, ``p99_9`` the
        figure and its bounds: ``mean_ns``, ``mean_lo_ns``, ``mean_hi_ns``, ... (float64, ns, null
        where unknown).
        """
        return self._native.intervals()

    def tree(self) -> Batches:
        """Returns the call tree as a table for Arrow, one row for each path.

        Columns ``path`` (names from the outermost span on, with ``/`` between them; they begin with
        the role where threads of several roles have spans), ``name`` of the innermost span or the
        role, ``parent`` (row of the path around it, null for outermost ones; it comes before),
        ``depth``, ``threads`` (number of threads of a role; null for a span), ``calls`` (0 for a
        role), ``recursive_calls`` (those inside another call of the path), ``is_switched`` (its points were off
        at times, and the program did more than was recorded), and float64, null where unknown: ``total_ns`` with its bounds ``total_lo_ns`` and
        ``total_hi_ns``, ``self_ns``, ``off_cpu_ns``, ``share`` of the time in all outermost spans,
        ``mean_ns``, ``median_ns``, ``p99_ns``, ``max_ns``. They describe this recording.
        """
        return self._native.tree()

    def states(self, path: str | None = None) -> Batches:
        """Returns what tells the short calls of a path from the long ones, one row for each state.

        ``path`` is a path as in :meth:`tree` or the end of one, e.g. ``"lookup/step"``; without it,
        all paths of which something is known. A path without rows was not examined (under 512 calls, under
        1 % of the time, not among the 16 longest), or no known fact separates its calls. Columns ``path``, ``state`` (a number, 0 has most calls), ``conditions`` (what is true of
        its calls, in words), ``share`` of the calls with ``share_lo`` and ``share_hi``, ``median_ns``
        with ``median_lo_ns`` and ``median_hi_ns`` (null where unknown), ``looked_at`` (number of calls examined),
        ``explained`` (share of the scatter of their logarithms that the states of the path explain).
        A condition that coincides with long calls need not be their cause.
        """
        return self._native.states(path)

    @property
    def html(self) -> str:
        """A self-contained page, as ``undertick report --html`` writes it."""
        return self._native.html()

    def __str__(self) -> str:
        return self._native.text(100)

    def __repr__(self) -> str:
        trace = self.document["trace"]
        return (
            f"<undertick.Report: {len(self.document['intervals'])} intervals of "
            f"{trace['events']} events, {trace['lost']} lost>"
        )

    def _repr_html_(self) -> str:
        rows = []
        for one in self.document["intervals"]:
            cells = [escape(one["name"]), str(one["count"])]
            for key in ("mean", "median"):
                found = one[key]
                if found is None:
                    cells.append("")
                    continue
                bounds = (found["interval"][0], found["interval"][1])
                value = figure(found["value"], bounds, found["unit"])
                cells.append(escape(f"{value} {interval_text(bounds, found['unit'])}"))
            cells.append(Histogram(one["histogram"]).svg(160, 40))
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        warnings = "".join(f"<li>{escape(w['text'])}</li>" for w in self.document["warnings"])
        heads = "".join(f"<th>{head}</th>" for head in ("interval", "n", "mean", "median", ""))
        return f"<table><tr>{heads}</tr>{''.join(rows)}</table>" + (warnings and f"<ul>{warnings}</ul>")
