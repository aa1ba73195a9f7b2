"""Functions whose calls are spans."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, TypeVar

from ._native import Span

F = TypeVar("F", bound=Callable[..., Any])


def decorate(span: Span, function: F) -> F:
    """Returns the function with each call recorded as a span.

    Raises `TypeError` for a function that yields its thread (``async def``, a generator). The spans
    of a thread nest, and those of other tasks would come between its begin and its end.
    """
    if not callable(function):
        raise TypeError(f"{span!r} decorates functions, not {type(function).__name__} objects")
    for is_such, kind in (
        (inspect.iscoroutinefunction, "async def"),
        (inspect.isasyncgenfunction, "an async generator"),
        (inspect.isgeneratorfunction, "a generator"),
    ):
        if is_such(function):
            raise TypeError(
                f"{getattr(function, '__qualname__', function)} is {kind}: other sections of its thread would "
                "come between its begin and its end. Put `with undertick.span(...)` around what runs without "
                "await or yield, or mark both ends with undertick.event(name, key) and match them by their "
                "payload (docs/book/python.md)"
            )

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        with span:
            return function(*args, **kwargs)

    return timed  # type: ignore[return-value]
