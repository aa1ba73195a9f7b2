"""Tasks of asyncio, against readings that the program takes inside and outside of the recorder's calls."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import json
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import undertick
import undertick.asyncio

# The clock of the trace and that of the program may differ in rate by so much.
RATE = 3e-4
STEP_NS = 20


def tasks_of(trace: str) -> dict[str, Any]:
    document = undertick.open(trace).report(cull="none")
    return {row["name"]: row for row in document["tasks"]["rows"]}


def is_whole(row: dict[str, Any]) -> None:
    parts = sum(row[part]["total_ns"] for part in ("busy", "idle", "queued"))
    assert parts == pytest.approx(row["lifetime"]["total_ns"], rel=1e-9)


SCHEDULED = """
import asyncio, json, time, undertick, undertick.asyncio
from time import perf_counter_ns as now
TASKS, POLLS = 20, 10
loop_of = asyncio.get_running_loop
busy, queued, lives = [0, 0], [0, 0], [0, 0]

class Step:
    '''Waits until it is woken; the program knows between which readings that was.'''
    def __init__(self): self.future = loop_of().create_future()
    def wake(self):
        before = now()
        self.future.set_result(None)
        self.woken = [before, now()]

def work(ns):
    end = now() + ns
    while now() < end: pass

async def task(log, wakes):
    for n in range(POLLS):
        start = now()
        work(20_000 * (n % 3 + 1))
        end = now()
        log.append([start, end])
        if n + 1 == POLLS: return
        step = Step()
        wakes.append(step)
        loop_of().call_later(0.001 * (n % 4), step.wake)
        await step.future

class Outside:
    '''Reads the clock outside of the recorder's calls.'''
    def __init__(self, inner, log): self.inner, self.log = inner, log
    def send(self, value):
        before = now()
        try: return self.inner.send(value)
        finally: self.log.append([before, now()])
    def throw(self, *e): return self.inner.throw(*e)
    def close(self): self.inner.close()
    def __await__(self): return self
    __iter__ = __await__
    def __next__(self): return self.send(None)
    @property
    def cr_await(self): return self.inner

import collections.abc
collections.abc.Coroutine.register(Outside)
recorded = undertick.asyncio.task("scheduled")(task)

async def main():
    undertick.asyncio.record_all()
    all = []
    for _ in range(TASKS):
        inner, outer, wakes = [], [], []
        before = now()
        coroutine = recorded(inner, wakes)
        created = [before, now()]
        # The factory does not record this one again.
        loop = loop_of()
        factory = loop.get_task_factory()
        loop.set_task_factory(None)
        all.append((loop.create_task(Outside(coroutine, outer)), created, inner, outer, wakes))
        loop.set_task_factory(factory)
    for one in all: await one[0]
    def add(to, lo, hi):
        to[0] += max(lo, 0); to[1] += max(hi, 0)
    for _, created, inner, outer, wakes in all:
        for n in range(POLLS):
            add(busy, inner[n][1] - inner[n][0], outer[n][1] - outer[n][0])
            since = created if n == 0 else wakes[n - 1].woken
            add(queued, outer[n][0] - since[1], inner[n][0] - since[0])
        add(lives, inner[-1][1] - created[1], outer[-1][1] - created[0])
    return {"busy": busy, "queued": queued, "lifetime": lives}

print(json.dumps(asyncio.run(main(), debug=DEBUG)), file=open(OUT, "w"))
"""


@pytest.mark.parametrize("debug", [False, True])
def test_busy_idle_and_queued_time_are_those_of_the_program(
    recorded: Callable[..., str], tmp_path: Path, debug: bool
) -> None:
    out = tmp_path / "truth"
    trace = recorded(f"DEBUG, OUT = {debug}, {str(out)!r}\n" + SCHEDULED)
    truth = json.loads(out.read_text())
    row = tasks_of(trace)["scheduled"]
    counts = [row[of] for of in ("tasks", "done", "polls", "wakes", "unwoken_polls")]
    assert counts == [20, 20, 200, 180, 0]
    is_whole(row)
    for part, (lo, hi) in truth.items():
        slack = 2 * 200 * STEP_NS
        assert lo > 0
        assert lo * (1 - RATE) - slack <= row[part]["total_ns"] <= hi * (1 + RATE) + slack, part


ENDS = """
import asyncio, undertick.asyncio
task = undertick.asyncio.task

@task()
async def returns(n):
    await asyncio.sleep(0)
    return (n, n)

@task("fails")
async def fails():
    await asyncio.sleep(0)
    raise KeyError("as it should")

@task("waits")
async def waits():
    await asyncio.Event().wait()

@task("outer")
async def outer(event):
    return await inner(event)

@task("inner")
async def inner(event):
    await event.wait()
    return 7

@task("producer")
async def producer(event):
    await asyncio.sleep(0.01)
    event.set()

async def undecorated():
    await asyncio.sleep(0)

async def main():
    loop = asyncio.get_running_loop()
    assert [await returns(n) for n in range(3)] == [(n, n) for n in range(3)]
    for _ in range(2):
        try: await fails()
        except KeyError: pass
    cancelled = [asyncio.create_task(waits()) for _ in range(4)]
    await asyncio.sleep(0)
    for one in cancelled: one.cancel()
    assert all(isinstance(e, asyncio.CancelledError)
               for e in await asyncio.gather(*cancelled, return_exceptions=True))
    event = asyncio.Event()
    both = asyncio.gather(outer(event), producer(event))
    assert await both == [7, None]
    undertick.asyncio.record_all()
    undertick.asyncio.record_all()
    await asyncio.gather(*[asyncio.create_task(undecorated()) for _ in range(5)])
    for _ in range(6):
        with undertick.asyncio.span("block"):
            await asyncio.sleep(0)
    never = returns(1)
    never.close()
    del never

asyncio.run(main())
"""


def test_tasks_end_as_the_program_ended_them(recorded: Callable[..., str]) -> None:
    rows = tasks_of(recorded(ENDS))

    def ends(name: str) -> list[int]:
        return [rows[name][of] for of in ("tasks", "done", "cancelled", "polls")]

    assert ends("returns") == [4, 3, 1, 6]
    assert ends("fails") == [2, 2, 0, 4]
    assert ends("waits") == [4, 0, 4, 8]
    assert ends("undecorated") == [5, 5, 0, 10]
    assert ends("outer") == ends("inner") == [1, 1, 0, 2]
    for name in ("outer", "inner"):
        is_whole(rows[name])
        [waker] = rows[name]["wakers"]
        assert (waker["task"], waker["wakes"]) == ("producer", 1)
    assert rows["inner"]["busy"]["total_ns"] <= rows["outer"]["busy"]["total_ns"]
    assert ends("block") == [6, 6, 0, 0]
    assert rows["block"]["busy"] is None


def test_a_coroutine_behaves_as_it_did() -> None:
    """Also where nothing is recorded."""

    async def twice(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    made = undertick._native.TaskCoroutine(twice(4), "twice")
    assert asyncio.iscoroutine(made)
    assert made.__qualname__.endswith("twice") and made.cr_await is None  # type: ignore[attr-defined]
    assert asyncio.run(made) == 8  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="cannot reuse already awaited"):
        made.send(None)
    with pytest.raises(TypeError, match="parentheses"):
        undertick.asyncio.task(twice)  # type: ignore[arg-type]

    decorated = undertick.asyncio.task("twice")(twice)
    assert asyncio.iscoroutinefunction(decorated)
    assert asyncio.iscoroutinefunction(undertick.asyncio.task("again")(decorated))
    if sys.version_info >= (3, 12):
        assert inspect.iscoroutinefunction(decorated)
    with pytest.raises(TypeError, match="async def"):
        undertick.asyncio.task("plain")(lambda: None)  # type: ignore[arg-type, return-value]

    @undertick.asyncio.task("raises")
    async def raises() -> None:
        raise StopIteration("a value")

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(raises())


def test_what_a_coroutine_held_is_freed() -> None:
    class Held:
        alive = 0

        def __init__(self) -> None:
            Held.alive += 1

        def __del__(self) -> None:
            Held.alive -= 1

    async def holds(held: Held, tasks: list[Any]) -> None:
        await asyncio.sleep(0)

    for _ in range(10):
        tasks: list[Any] = []
        made = undertick._native.TaskCoroutine(holds(Held(), tasks), "holds")
        tasks.append(made)  # a circle
        asyncio.run(made)  # type: ignore[arg-type]
        del made, tasks
    gc.collect()
    assert Held.alive == 0


def test_other_factories_and_loops(tmp_path: Path) -> None:
    made: list[str] = []

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        made.append(coroutine.__qualname__)
        return asyncio.Task(coroutine, loop=loop, **options)

    async def child() -> int:
        return 3

    async def main() -> int:
        asyncio.get_running_loop().set_task_factory(factory)
        undertick.asyncio.record_all()
        return await asyncio.get_running_loop().create_task(child())

    with undertick.record(str(tmp_path / "t.ut"), calibration=False, kernel="off"):
        assert asyncio.run(main()) == 3
    assert made[0].endswith("child")
    # The loop makes tasks of its own when it ends.
    rows = tasks_of(str(tmp_path / "t.ut"))
    [row] = [row for name, row in rows.items() if name.endswith("child")]
    assert (row["tasks"], row["done"]) == (1, 1)


def test_a_span_is_not_begun_twice(tmp_path: Path) -> None:
    with undertick.record(str(tmp_path / "t.ut"), calibration=False, kernel="off"):
        scope = undertick.asyncio.span("one")
        for _ in range(2):
            with scope:
                pass
        with scope, pytest.raises(RuntimeError, match="make another one"), scope:
            pass
        with contextlib.ExitStack() as stack:
            stack.enter_context(undertick.asyncio.span("one"))
            stack.enter_context(undertick.asyncio.span("one"))
        with pytest.raises(TypeError, match="used by"):
            scope(1)  # type: ignore[operator]
        with pytest.raises(TypeError, match="a name is a str"):
            undertick.asyncio.span(1.5)  # type: ignore[arg-type]
        with pytest.raises(ZeroDivisionError), undertick.asyncio.span("one"):
            print(1 / 0)
    [row] = tasks_of(str(tmp_path / "t.ut")).values()
    assert (row["tasks"], row["done"], row["busy"]) == (6, 6, None)
