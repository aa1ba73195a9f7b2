"""Undertick: measures time, and says how wrong it may be.

Record this process, or run it under ``python -m undertick record -- python program.py``:

>>> import tempfile, undertick
>>> where = tempfile.TemporaryDirectory()
>>> path = where.name + "/run.ut"
>>> with undertick.record(path, calibration=False, kernel="off"):
...     for i in range(1000):
...         with undertick.span("square"):
...             square = i * i

The trace can then be read:

>>> report = undertick.open(path).report(cull="none")  # also samples that were disturbed
>>> report.interval("square")["count"]
1000
>>> report.interval("square").mean.unit
'ns'
>>> where.cleanup()

Durations are in nanoseconds, unless a name or a ``unit`` says otherwise.
"""

import os as _os

from . import _native
from ._decorate import decorate as _decorate
from ._estimate import Comparison, Estimate, compare, estimate
from ._experiment import run
from ._native import (
    Batches,
    Error,
    InputError,
    Span,
    __version__,
    enabled,
    event,
    name,
    next,
    pair,
    span,
    thread_name,
)
from ._recording import Recording, record
from ._report import Histogram, Interval, Report
from ._trace import Trace, open

_native._set_decorate(_decorate)
_os.register_at_fork(after_in_child=_native._after_fork)

__all__ = [
    "Batches",
    "Comparison",
    "Error",
    "Estimate",
    "Histogram",
    "InputError",
    "Interval",
    "Recording",
    "Report",
    "Span",
    "Trace",
    "__version__",
    "compare",
    "enabled",
    "estimate",
    "event",
    "name",
    "next",
    "open",
    "pair",
    "record",
    "run",
    "span",
    "thread_name",
]
