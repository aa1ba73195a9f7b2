"""Tasks of asyncio: how long they were busy, idle and queued.

>>> import asyncio, undertick.asyncio
>>> @undertick.asyncio.task("request")
... async def serve(n):
...     await asyncio.sleep(0)
...     return n + 1
>>> asyncio.run(serve(41))
42

Run the program under ``python -m undertick record -o run.ut -- python program.py``, then run
``undertick tasks run.ut``. A decorated coroutine is a task each time it is called, awaited or spawned: its creation,
each poll, what woke it and its end are recorded. `record_all` does so for every task of a loop.

Times between two awaits are also spans of their thread, in which other spans may lie. A span that contains an await is
`span` of this module:

>>> async def fetch(n):
...     with undertick.asyncio.span("fetch"):
...         await asyncio.sleep(0)
>>> asyncio.run(fetch(1))
"""

from __future__ import annotations

import asyncio
import collections.abc
import functools
import inspect
from typing import Any, Callable, Coroutine, Optional, TypeVar

from . import _native

__all__ = ["record_all", "span", "task"]

F = TypeVar("F", bound=Callable[..., Coroutine[Any, Any, Any]])

collections.abc.Coroutine.register(_native.TaskCoroutine)

span = _native.scope


def task(name: Optional[str] = None) -> Callable[[F], F]:
    """Decorates a function of coroutines: each is recorded as a task of that name.

    Without a name, the tasks have the function's qualified name. `asyncio.iscoroutinefunction` knows the result as one
    that makes coroutines; that of `inspect` does from Python 3.12 on.
    """

    def decorate(function: F) -> F:
        if not (inspect.iscoroutinefunction(function) or hasattr(function, "_is_coroutine")):
            raise TypeError("undertick.asyncio.task decorates an async def; for other code use undertick.span")
        shown = name or function.__qualname__

        @functools.wraps(function)
        def make(*arguments: Any, **options: Any) -> Any:
            coroutine = function(*arguments, **options)
            if not _native.enabled():
                return coroutine
            _watch()
            return _native.TaskCoroutine(coroutine, shown)

        # Frameworks ask whether a function makes coroutines; before 3.12, only asyncio's own question can be answered.
        if hasattr(inspect, "markcoroutinefunction"):
            inspect.markcoroutinefunction(make)
        else:
            make._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]
        return make  # type: ignore[return-value]

    if callable(name):
        raise TypeError('@undertick.asyncio.task needs parentheses: @task(), or @task("request")')
    return decorate


def record_all(loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
    """Records every task that is created in a loop from now on, by the qualified name of its coroutine.

    Call it in the loop: ``undertick.asyncio.record_all()`` as the first line of the main coroutine. A task factory that
    the loop has is called with the recorded coroutine.
    """
    loop = loop or asyncio.get_running_loop()
    _watch(loop)
    factory = loop.get_task_factory()
    if getattr(factory, "_records_for_undertick", False):
        return

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        if _native.enabled() and not isinstance(coroutine, _native.TaskCoroutine):
            name = getattr(coroutine, "__qualname__", type(coroutine).__qualname__)
            coroutine = _native.TaskCoroutine(coroutine, name)
        if factory is not None:
            return factory(loop, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)

    make._records_for_undertick = True  # type: ignore[attr-defined]
    loop.set_task_factory(make)


def _watch(loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
    """Records from now on which tasks the loop wakes, where its `call_soon` can be replaced."""
    if loop is None:
        loop = asyncio._get_running_loop()
    if loop is None or isinstance(loop.call_soon, _native.CallSoon):
        return
    try:
        loop.call_soon = _native.CallSoon(loop.call_soon)  # type: ignore[method-assign, assignment]
    except AttributeError:
        pass  # uvloop: wakes are not known
