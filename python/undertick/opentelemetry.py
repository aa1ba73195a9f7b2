"""Records the spans that a program has for OpenTelemetry's SDK.

>>> from opentelemetry.sdk.trace import TracerProvider
>>> from undertick.opentelemetry import UndertickSpanProcessor
>>> provider = TracerProvider()
>>> provider.add_span_processor(UndertickSpanProcessor())
>>> tracer = provider.get_tracer("shop")
>>> with tracer.start_as_current_span("order"):
...     with tracer.start_as_current_span("payment"):
...         pass

It needs ``opentelemetry-sdk`` (``pip install undertick[opentelemetry]``). Nothing is exported while the
program runs: ``undertick export --to otlp`` turns the trace into OpenTelemetry's spans again, with the
same identifiers. Attributes, events and links are not kept. Events and caveats are those of the Rust
crate ``undertick-opentelemetry`` (docs/book/other-tools.md).
"""

from __future__ import annotations

import threading
import time
from typing import Optional

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from . import _native

__all__ = ["UndertickSpanProcessor"]

_MOST_ELSEWHERE = 1 << 16
# Another thread sees that a name has changed its form a little later.
_MARGIN_NS = 10_000_000


def _signed(number: int) -> int:
    """Returns the 64 bits of an identifier as the number that `event` takes."""
    return number - (1 << 64) if number >> 63 else number


class _Open:
    """A span whose begin was recorded in this thread."""

    __slots__ = ("trace", "span", "name", "is_over")

    def __init__(self, trace: int, span: int, name: str) -> None:
        self.trace = trace
        self.span = span
        self.name = name
        self.is_over = False


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: list[_Open] = []
        self.seen = 0


class UndertickSpanProcessor(SpanProcessor):
    """Records the begin and end of each span while a recorder runs.

    A span that starts and ends in one thread, around those that start in it, is the begin and end of a
    section. A name of which a span ended in another thread, or before a span inside it, is recorded by
    the events ``NAME new`` and ``NAME closed`` from then on, as spans of asyncio tasks are.
    """

    def __init__(self) -> None:
        self._thread = _Thread()
        self._loose: dict[str, int] = {}
        self._elsewhere: set[int] = set()
        self._changes = 0
        # Since when is recorded, Unix ns; 0: not now.
        self._since = 0
        self._lock = threading.Lock()

    def on_start(self, span: Span, parent_context: Optional[Context] = None) -> None:
        if not self._is_recorded():
            return
        context = span.get_span_context()
        if context is None:
            return
        trace, number, name = context.trace_id, context.span_id, span.name
        parent = span.parent.span_id if span.parent is not None else 0
        event = _native.event
        if name in self._loose:
            event(name + " new", _signed(number))
            self._identifiers(trace, parent)
            return
        thread = self._thread
        self._end_elsewhere(thread)
        _native.span(name).__enter__()
        outer = thread.open[-1] if thread.open else None
        if outer is None or outer.span != parent or outer.trace != trace:
            self._identifiers(trace, parent)
        event("otel.span_id", _signed(number))
        thread.open.append(_Open(trace, number, name))

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        if context is None:
            return
        number = context.span_id
        thread = self._thread
        if not self._is_recorded():
            if thread.open:
                thread.open[:] = [known for known in thread.open if known.span != number]
            return
        self._end_elsewhere(thread)
        opened = thread.open
        for at in range(len(opened) - 1, -1, -1):
            if opened[at].span == number:
                ended = opened.pop(at)
                if at < len(opened):
                    # Spans inside it go on: from now on the name takes the message form.
                    self._make_loose(ended.name)
                _native.span(ended.name).__exit__(None, None, None)
                return
        if span.start_time is not None and span.start_time < self._since:
            return  # it began before the recording did
        since = self._make_loose(span.name)
        if span.start_time is not None and span.start_time <= since + _MARGIN_NS:
            self._note_elsewhere(number)
        _native.event(span.name + " closed", _signed(number))

    def _is_recorded(self) -> bool:
        """Whether spans are recorded now; notes since when."""
        if not _native.enabled():
            self._since = 0
            return False
        if self._since == 0:
            # The first span has begun a little earlier.
            self._since = time.time_ns() - _MARGIN_NS
        return True

    def shutdown(self) -> None:
        """Does nothing: nothing is held back."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Returns true: nothing is held back."""
        return True

    def _identifiers(self, trace: int, parent: int) -> None:
        """Records the identifiers that do not follow from the span around it."""
        event = _native.event
        event("otel.trace_id.high", _signed(trace >> 64))
        event("otel.trace_id.low", _signed(trace & 0xFFFF_FFFF_FFFF_FFFF))
        event("otel.parent_span_id", _signed(parent))

    def _make_loose(self, name: str) -> int:
        """Lets spans of the name take the message form; returns since when, Unix ns."""
        return self._loose.setdefault(name, time.time_ns())

    def _note_elsewhere(self, number: int) -> None:
        with self._lock:
            if len(self._elsewhere) >= _MOST_ELSEWHERE:
                self._elsewhere.clear()
            self._elsewhere.add(number)
            self._changes += 1

    def _end_elsewhere(self, thread: _Thread) -> None:
        """Ends the innermost sections of this thread whose spans ended in another one."""
        if thread.seen != self._changes:
            with self._lock:
                thread.seen = self._changes
                for known in thread.open:
                    if known.span in self._elsewhere:
                        self._elsewhere.remove(known.span)
                        known.is_over = True
        while thread.open and thread.open[-1].is_over:
            over = thread.open.pop()
            _native.event("otel.ended_elsewhere", _signed(over.span))
            _native.span(over.name).__exit__(None, None, None)
