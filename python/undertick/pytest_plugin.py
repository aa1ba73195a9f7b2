"""pytest plug-in: how long does a span take in place, and is that within a limit?

The fixture ``undertick_section`` times spans of a test over repetitions of its body and compares
confidence intervals, not numbers::

    def test_parse(undertick_section):
        section = undertick_section
        for _ in section.repeat(200):
            lines = read()
            with section("parse"):
                parse(lines)
        assert section["parse"].mean < "5us"

The assertion holds if the whole interval lies below the limit, and fails if all of it lies above.
If the limit lies within the interval, neither is known. The test then fails and reports how many
repetitions would suffice, or is skipped or xfailed if the ini option ``undertick_cannot_tell``, or
the marker, says so::

    @pytest.mark.undertick(confidence=0.99, cannot_tell="skip", cull="none")
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from ._estimate import Estimate
from ._figures import duration
from ._native import InputError, Span, span
from ._recording import Recording, record
from ._report import Interval, Report

_UNITS = {"ns": 1.0, "us": 1e3, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}
_LIMIT = re.compile(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*(ns|us|\u00b5s|ms|s)\s*")
_CANNOT_TELL = ("fail", "skip", "xfail")


def nanoseconds(limit: str | float) -> float:
    """Returns a limit in ns, given as a number of ns or as a text such as ``5us``, ``2.5 ms``.

    >>> from undertick.pytest_plugin import nanoseconds
    >>> nanoseconds("2.5 ms"), nanoseconds(40)
    (2500000.0, 40.0)
    """
    if isinstance(limit, (int, float)):
        return float(limit)
    found = _LIMIT.fullmatch(limit)
    try:
        if found is not None:
            return float(found[1]) * _UNITS[found[2]]
    except ValueError:
        pass
    raise InputError(f"{limit!r} is no duration; write for example '5us', '2.5ms' or '1s'")


def repetitions_needed(estimate: Estimate, limit: float, p: float | None = None) -> int | None:
    """Returns roughly how many samples show on which side of the limit (same unit) the truth is.

    Confidence intervals shrink with the root of the number of samples; a third more is added,
    because the figure itself changes. `p` is that of a quantile. None: no number suffices, because
    the figure is the limit.

    >>> from undertick import Estimate
    >>> from undertick.pytest_plugin import repetitions_needed
    >>> repetitions_needed(Estimate(100.0, (90.0, 110.0), 0.95, "ns", "", 50, 50.0), 105.0)
    267
    """
    lo, hi = estimate.interval
    if lo is None or hi is None:
        rare = (1 - estimate.level) / 2
        least = 2 if p is None else math.ceil(math.log(rare) / math.log(max(p, 1 - p)))
        return max(least, 2 * estimate.n)
    distance = limit - estimate.value
    if distance == 0:
        return None
    half = hi - estimate.value if distance > 0 else estimate.value - lo
    return math.ceil(estimate.n * (half / distance) ** 2 * 4 / 3)


class Verdict:
    """The result of a comparison; its bool is true, false, or ends the test if it cannot tell."""

    def __init__(self, figure: Figure, sign: Literal["<", ">"], limit: str | float) -> None:
        self._figure = figure
        self._sign = sign
        self._limit = nanoseconds(limit)

    def __bool__(self) -> bool:
        lo, hi = self._figure.estimate.interval
        below = hi is not None and hi < self._limit
        above = lo is not None and lo > self._limit
        if below or above:
            return below if self._sign == "<" else above
        self._figure.cannot_tell(self)
        raise AssertionError("not reached: cannot_tell ends the test")

    def __repr__(self) -> str:
        return f"{self._figure!r} {self._sign} {duration(self._limit)}"

    def why(self) -> str:
        """Returns why the comparison cannot be decided, and what would help."""
        estimate = self._figure.estimate
        needed = repetitions_needed(estimate, self._limit, self._figure.p)
        mend = (
            "the figure is at the limit, so no number of repetitions will do"
            if needed is None
            else f"about {needed} repetitions would do"
        )
        return (
            f"cannot tell whether {self!r}: the limit lies within the interval of {estimate.n} repetitions; {mend}"
        )


class Figure:
    """A figure of a span, compared with a limit by its whole confidence interval."""

    estimate: Estimate
    """The figure and its confidence interval, ns."""

    def __init__(self, name: str, estimate: Estimate, cannot_tell: str, p: float | None = None) -> None:
        self.name = name
        self.estimate = estimate
        self.p = p
        self._cannot_tell = cannot_tell

    def __lt__(self, limit: str | float) -> Verdict:
        return Verdict(self, "<", limit)

    def __gt__(self, limit: str | float) -> Verdict:
        return Verdict(self, ">", limit)

    def __le__(self, limit: str | float) -> Verdict:
        return Verdict(self, "<", limit)

    def __ge__(self, limit: str | float) -> Verdict:
        return Verdict(self, ">", limit)

    def __repr__(self) -> str:
        return f"{self.name} {self.estimate}"

    def cannot_tell(self, verdict: Verdict) -> None:
        """Ends the test as its options ask."""
        if self._cannot_tell == "skip":
            pytest.skip(verdict.why())
        if self._cannot_tell == "xfail":
            pytest.xfail(verdict.why())
        pytest.fail(verdict.why(), pytrace=False)


class Measured:
    """A span that was timed."""

    interval: Interval
    """The report's entry of the span."""

    def __init__(self, interval: Interval, cannot_tell: str) -> None:
        self.interval = interval
        self._cannot_tell = cannot_tell

    @property
    def count(self) -> int:
        """Number of samples behind the figures: ended, and not dropped on evidence."""
        return int(self.interval["count"])

    @property
    def mean(self) -> Figure:
        """The mean."""
        return self._figure("mean", self.interval.mean)

    @property
    def median(self) -> Figure:
        """The median."""
        return self._figure("median", self.interval.median, 0.5)

    def quantile(self, p: float) -> Figure:
        """Returns the quantile `p`: 0.9, 0.99 or 0.999."""
        return self._figure(f"p{100 * p:g}", self.interval.quantile(p), p)

    def _figure(self, what: str, estimate: Estimate | None, p: float | None = None) -> Figure:
        if estimate is None:
            culled = self.interval["culled"]["count"]
            pytest.fail(
                f"{self.interval.name}: no samples ({culled} were dropped on evidence; cull='none' keeps them)",
                pytrace=False,
            )
        return Figure(f"{self.interval.name} {what}", estimate, self._cannot_tell, p)

    def __repr__(self) -> str:
        return repr(self.interval)


class Section:
    """The fixture ``undertick_section``: times spans, then reports how long they took."""

    def __init__(self, where: Path, confidence: float, cannot_tell: str, options: dict[str, Any]) -> None:
        self._cull = options.pop("cull")
        self._recording: Recording = record(where, **options)
        self._confidence = confidence
        self._cannot_tell = cannot_tell
        self._is_recording = False
        self._report: Report | None = None

    def repeat(self, times: int) -> Iterator[int]:
        """Returns the numbers from 0 on, for the repetitions of the body."""
        self._start()
        return iter(range(times))

    def __call__(self, name: str) -> Span:
        """Returns a span of the body: a context manager, or a decorator."""
        if not self._is_recording:
            self._start()
        return span(name)

    @property
    def report(self) -> Report:
        """The report; the first access ends the recording."""
        if self._report is None:
            if not self._is_recording:
                raise InputError("no section was timed: `with undertick_section(name):` comes first")
            self._is_recording = False
            self._recording.stop()
            trace = self._recording.trace()
            self._report = trace.report(confidence=self._confidence, cull=self._cull)
        return self._report

    def __getitem__(self, name: str) -> Measured:
        """Returns the figures of the span of that name; the first access ends the recording."""
        return Measured(self.report.interval(name), self._cannot_tell)

    def _start(self) -> None:
        if self._report is not None:
            raise InputError("the sections were looked at already; time all of them before the first look")
        if not self._is_recording:
            self._recording.start()
            self._is_recording = True

    def close(self) -> None:
        """Ends a recording whose report was never used."""
        if self._is_recording:
            self._is_recording = False
            self._recording.stop()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the ini file."""
    parser.addini(
        "undertick_cannot_tell",
        "what becomes of a test whose limit lies within the interval: fail, skip or xfail",
        default="fail",
    )
    parser.addini("undertick_confidence", "level of the intervals that are compared", default="0.95")


def pytest_configure(config: pytest.Config) -> None:
    """Adds the marker."""
    config.addinivalue_line(
        "markers",
        "undertick(confidence=0.95, cannot_tell='fail', cull='auto', calibration=False, kernel='auto'): "
        "how undertick_section measures and compares in this test",
    )


@pytest.fixture
def undertick_section(request: pytest.FixtureRequest) -> Iterator[Section]:
    """Times spans in place over repetitions, to compare confidence intervals with limits."""
    given: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("undertick"))):
        given.update(marker.kwargs)
    confidence = float(given.pop("confidence", request.config.getini("undertick_confidence")))
    cannot_tell = given.pop("cannot_tell", request.config.getini("undertick_cannot_tell"))
    if cannot_tell not in _CANNOT_TELL:
        raise InputError(f"cannot_tell={cannot_tell!r}: use one of {', '.join(_CANNOT_TELL)}")
    options = {"cull": "auto", "calibration": False, "kernel": "auto"}
    unknown = sorted(set(given) - set(options))
    if unknown:
        raise InputError(f"marker undertick: no option {unknown[0]!r}; there are confidence, cannot_tell, "
                         + ", ".join(options))
    with tempfile.TemporaryDirectory(prefix="undertick-") as where:
        section = Section(Path(where) / "sections.ut", confidence, cannot_tell, {**options, **given})
        try:
            yield section
        finally:
            section.close()
