"""The text of figures: no more digits than the confidence interval justifies."""

from __future__ import annotations

import math

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))

Interval = tuple["float | None", "float | None"]


def _scale(value: float, unit: str) -> tuple[float, str]:
    """Returns the divisor of the value, and the unit of the quotient."""
    if unit != "ns":
        return 1.0, "" if unit == "1" else " " + unit
    for size, name in _TIMES:
        if abs(value) >= size:
            return size, " " + name
    return 1.0, " ns"


def _digits(value: float, half_width: float | None) -> int:
    """Returns the digits after the point: two of the half-width, or four of the value."""
    if half_width is not None and half_width > 0:
        return max(0, 1 - math.floor(math.log10(half_width)))
    if value == 0:
        return 0
    return max(0, 3 - math.floor(math.log10(abs(value))))


def _half_width(interval: Interval) -> float | None:
    lo, hi = interval
    return None if lo is None or hi is None else (hi - lo) / 2


def figure(value: float, interval: Interval, unit: str) -> str:
    """Returns a value with its unit as text."""
    scale, name = _scale(value, unit)
    half = _half_width(interval)
    return f"{value / scale:.{_digits(value / scale, None if half is None else half / scale)}f}{name}"


def interval_text(interval: Interval, unit: str) -> str:
    """Returns an interval as text, in the scale of its larger bound; ``?`` for an unknown bound."""
    known = [bound for bound in interval if bound is not None]
    if not known:
        return "[?, ?]"
    scale, name = _scale(max(known, key=abs), unit)
    half = _half_width(interval)
    half = None if half is None else half / scale
    shown = ["?" if b is None else f"{b / scale:.{_digits(b / scale, half)}f}" for b in interval]
    return f"[{shown[0]}, {shown[1]}]{name}"


def duration(ns: float) -> str:
    """Returns a duration, given in ns, as text with a suitable unit."""
    return figure(ns, (None, None), "ns")
