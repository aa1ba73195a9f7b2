"""Estimates: a figure and its confidence interval."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from . import _native
from ._figures import figure, interval_text

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.ArrayLike | Iterable[float]
    Document = Mapping[str, Any] | str | os.PathLike[str]


@dataclass(frozen=True)
class Estimate:
    """A figure with the confidence interval that covers the truth with probability `level`.

    A bound that the data cannot give is None.
    """

    value: float
    """The figure, in `unit`."""
    interval: tuple[float | None, float | None]
    """Lower and upper bound, in `unit`."""
    level: float
    """Nominal coverage, e.g. 0.95."""
    unit: str
    """The unit: ``ns``, ``1/s``, ``1``, ..."""
    method: str
    """How the estimate was made."""
    n: int
    """Number of samples used."""
    n_effective: float
    """Number of independent samples that would carry the same information."""
    notes: tuple[str, ...] = ()
    """What the reader must know to use the figure."""

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Estimate:
        """Returns an estimate made from the form that all JSON documents of Undertick use."""
        lo, hi = document["interval"]
        return cls(
            value=document["value"],
            interval=(lo, hi),
            level=document["level"],
            unit=document["unit"],
            method=document["method"],
            n=document["n"],
            n_effective=document["n_effective"],
            notes=tuple(document.get("notes", ())),
        )

    @property
    def lo(self) -> float | None:
        """Lower bound, in `unit`."""
        return self.interval[0]

    @property
    def hi(self) -> float | None:
        """Upper bound, in `unit`."""
        return self.interval[1]

    def to_json(self) -> dict[str, Any]:
        """Returns the form that all JSON documents of Undertick use."""
        return {
            "value": self.value,
            "interval": list(self.interval),
            "level": self.level,
            "unit": self.unit,
            "method": self.method,
            "n": self.n,
            "n_effective": self.n_effective,
            "notes": list(self.notes),
        }

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{figure(self.value, self.interval, self.unit)} {interval_text(self.interval, self.unit)}"

    def _repr_html_(self) -> str:
        notes = "".join(f"<br><small>{escape(note)}</small>" for note in self.notes)
        return (
            f"<b>{escape(figure(self.value, self.interval, self.unit))}</b> "
            f"{escape(interval_text(self.interval, self.unit))} "
            f"<small>{self.level:.4g} interval, n = {self.n}; {escape(self.method)}</small>{notes}"
        )


@dataclass(frozen=True)
class Comparison:
    """A comparison of two series of numbers."""

    difference: Estimate
    """The first minus the second."""
    ratio: Estimate | None
    """The first divided by the second; None where that has no meaning."""

    def __str__(self) -> str:
        over = "" if self.ratio is None else f"; ratio {self.ratio}"
        return f"difference {self.difference}{over}"

    def _repr_html_(self) -> str:
        over = "" if self.ratio is None else f"<br>ratio {self.ratio._repr_html_()}"
        return f"difference {self.difference._repr_html_()}{over}"


def _doubles(values: Any, name: str) -> bytes:
    """Returns the bytes of the numbers as doubles of this machine; raises `InputError`."""
    if hasattr(values, "__array__"):
        import numpy as np

        found = np.asarray(values, dtype=np.float64)
        if found.ndim != 1:
            raise _native.InputError(
                f"{name}: {found.ndim} dimensions; a series in the order of measuring has one"
            )
        return found.tobytes()
    try:
        return array("d", values).tobytes()
    except TypeError as error:
        raise _native.InputError(f"{name}: not a series of numbers: {error}") from None


def estimate(values: Numbers, of: str = "mean", level: float = 0.95, unit: str = "1") -> Estimate:
    """Returns an estimate of numbers, one dimension, in the order in which they were measured.

    `of` is ``mean``, ``median`` or a quantile such as ``p99``; `unit` is that of the numbers.
    Correlation between neighbours is detected, and widens the interval. Raises `InputError` if
    there are no numbers, or one is not finite.

    >>> import undertick
    >>> found = undertick.estimate([4.0, 5.0, 6.0, 5.0, 4.0, 6.0, 5.0, 5.0], unit="ms")
    >>> found.value
    5.0
    >>> 4.0 < found.lo < 5.0 < found.hi < 6.0
    True
    >>> undertick.estimate(range(101), of="median").value
    50.0
    """
    found = json.loads(_native.estimate(_doubles(values, "values"), of, level))
    return Estimate.from_json({**found, "unit": unit})


def compare(
    a: Numbers | Document,
    b: Numbers | Document,
    of: str = "mean",
    level: float = 0.95,
    *,
    paired: bool = False,
    unit: str = "1",
) -> Comparison | dict[str, Any]:
    """Returns the difference and the ratio of two series of numbers.

    With `paired` they were measured in turn, a, b, a, b, ...: slow drift cancels.

    Two reports or surveys (`Report`, their JSON as a dict, or files of it) are compared figure by
    figure, with false discoveries controlled; the result is the document of
    ``undertick compare --json``.

    >>> import undertick
    >>> faster = [10.1, 9.9, 10.0, 10.2, 9.8, 10.0]
    >>> slower = [12.0, 12.1, 11.9, 12.0, 12.2, 11.8]
    >>> found = undertick.compare(slower, faster)
    >>> round(found.difference.value, 6), round(found.ratio.value, 6)
    (2.0, 1.2)
    >>> found.difference.lo > 0
    True
    """
    documents = [isinstance(side, (Mapping, str, os.PathLike)) for side in (a, b)]
    if all(documents):
        sides = [_document(side, name) for side, name in ((a, "a"), (b, "b"))]  # type: ignore[arg-type]
        found, _ = _native.compare_documents(sides[0], sides[1], level)
        loaded: dict[str, Any] = json.loads(found)
        return loaded
    if any(documents):
        raise _native.InputError("compare: a document and a series; give two of a kind")
    less, over = _native.compare(_doubles(a, "a"), _doubles(b, "b"), of, level, paired)
    difference = Estimate.from_json({**json.loads(less), "unit": unit})
    ratio = None if over is None else Estimate.from_json(json.loads(over))
    return Comparison(difference, ratio)


def _document(side: Document, name: str) -> tuple[str, str]:
    """Returns a document's JSON, and the name to call it by."""
    if isinstance(side, Mapping):
        return json.dumps(dict(side)), name
    path = os.fspath(side)
    return _native.read_document(path), path
