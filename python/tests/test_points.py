"""The calls of a measured program: their arguments, results and errors."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Iterator

import pytest

import undertick


def test_the_same_name_gives_the_same_object() -> None:
    first = undertick.span("same")
    # Another object with the same text, so that its address differs.
    again = "".join(["sa", "me"])
    assert again is not "same"  # noqa: F632
    assert undertick.span(again) is first
    assert undertick.span("other") is not first
    assert undertick.span("other").event != first.event
    assert (first.name, repr(first)) == ("same", "undertick.span('same')")


def test_a_number_is_itself() -> None:
    for number in (0, 7, 300, 65535):
        assert undertick.span(number).event == number
        assert undertick.span(int(str(number))) is undertick.span(number)
    assert undertick.span(7).name == "7" and undertick.span("7").event != 7


def test_many_names_do_not_get_mixed_up() -> None:
    """More names than the cache of addresses holds, given by strings that die. The test needs
    another process, because a program's attach page holds only 64 KiB of names."""
    program = f"{many_names.__name__}()"
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.append({str(Path(__file__).parent)!r})\n"
         f"from test_points import *\n{program}"],
        check=True,
        timeout=60,
    )


def many_names() -> None:
    spans = {i: undertick.span(f"mix {i}") for i in range(3000)}
    assert len({span.event for span in spans.values()}) == 3000
    for _ in range(3):
        for i in range(3000):
            assert undertick.span(f"mix {i}") is spans[i]
        gc.collect()


def test_a_subclass_of_str_is_its_text() -> None:
    class Name(str):
        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = str.__hash__

    assert undertick.span(Name("plain")) is undertick.span("plain")


@pytest.mark.parametrize("wrong", [None, 1.5, b"bytes", ("a",), object()])
def test_what_is_no_name(wrong: object) -> None:
    for call in (undertick.span, undertick.event, undertick.pair):
        with pytest.raises(TypeError, match="a name is a str"):
            call(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        undertick.next("a", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["", -1, 65536, 2**70, "\ud800"])
def test_names_and_numbers_out_of_range(wrong: str | int) -> None:
    with pytest.raises(ValueError):
        undertick.span(wrong)


def test_payloads() -> None:
    for fits in (0, 2**32 - 1, 2**32, 2**63 - 1, -(2**63), True):
        undertick.event("payload", fits)
    for too_large in (2**63, -(2**63) - 1):
        with pytest.raises(OverflowError):
            undertick.event("payload", too_large)
    with pytest.raises(TypeError):
        undertick.event("payload", 1.5)  # type: ignore[arg-type]
    for call in (
        lambda: undertick.event(),  # type: ignore[call-arg]
        lambda: undertick.event("a", 1, 2),  # type: ignore[call-arg]
        lambda: undertick.event("a", load=1),  # type: ignore[call-arg]
        lambda: undertick.event("a", 1, payload=1),  # type: ignore[misc]
        lambda: undertick.next("a"),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError):
            call()


def test_a_span_is_a_context_manager_everywhere() -> None:
    span = undertick.span("context")
    with span as inside:
        assert inside is span
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(span) is span
        assert stack.enter_context(undertick.span("another")) is undertick.span("another")
    assert span.__enter__() is span
    assert span.__exit__(None, None, None) is None
    with pytest.raises(KeyError):  # the exception is not swallowed
        with span:
            raise KeyError
    for wrong in (lambda: span(), lambda: span(1, 2), lambda: span(function=len)):  # type: ignore[call-arg,arg-type,type-var]
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="first argument is a span"):
        type(span).__enter__(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        type(span)()


def test_a_span_is_a_decorator() -> None:
    @undertick.span("decorated")
    def add(a: int, b: int = 2) -> int:
        """Adds."""
        return a + b

    assert (add(1), add(1, b=5), add.__name__, add.__doc__) == (3, 6, "add", "Adds.")

    class Thing:
        @undertick.span("method")
        def me(self) -> Thing:
            return self

    thing = Thing()
    assert thing.me() is thing
    with pytest.raises(TypeError):
        undertick.span("decorated")(3)  # type: ignore[type-var]


def test_what_gives_its_thread_away_is_refused() -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    async def both():  # type: ignore[no-untyped-def]
        yield 1

    for function, word in ((coroutine, "async def"), (generator, "generator"), (both, "async generator")):
        with pytest.raises(TypeError, match=word):
            undertick.span("async")(function)


def test_no_references_are_lost_or_kept() -> None:
    """The interpreter's reference counts of the arguments stay the same."""
    names = ["".join(["ref", str(i)]) for i in range(50)]
    payload = 123456789
    for name in names:
        undertick.event(name)
    span = undertick.span(names[0])

    def all_of_them() -> None:
        with undertick.span(names[0]):
            pass
        undertick.event(names[1])
        undertick.event(names[2], payload)
        undertick.next(names[3], names[4])
        undertick.pair(names[5])

    def counts() -> list[int]:
        return [sys.getrefcount(thing) for thing in (*names, payload, span)]

    # A name that was used recently is held by a table of few places: what comes first may take the
    # place of another name.
    all_of_them()
    before, none = counts(), sys.getrefcount(None)
    for _ in range(10_000):
        all_of_them()
    assert counts() == before
    assert abs(sys.getrefcount(None) - none) < 100 or sys.version_info >= (3, 12)


def test_threads_that_ask_for_new_names_at_once() -> None:
    found: list[list[int]] = []

    def ask() -> None:
        found.append([undertick.span(f"at once {i}").event for i in range(100)])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(one == found[0] for one in found)
    assert len(set(found[0])) == 100


def test_more_names_than_numbers(recorded: Callable[..., str]) -> None:
    trace = undertick.open(
        recorded(
            """
import warnings, undertick
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for i in range(16390):
        undertick.event(f"name {i}")
assert [w.category for w in caught] == [RuntimeWarning], caught
assert "16383" in str(caught[0].message)
"""
        )
    )
    import pyarrow as pa

    events = pa.table(trace.events()).column("event").to_pylist()
    assert sorted(events[:16383]) == list(range(0x4000, 0x7FFF)) and events[16383:] == [0x7FFF] * 7
    names = {event: name for (_, event), name in trace.names.items()}
    assert [names[event] for event in events[:16383]] == [f"name {i}" for i in range(16383)]
    assert names[0x7FFF] == "(other names)"


def test_a_second_interpreter_is_refused(tmp_path: Path) -> None:
    program = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import undertick
other = interpreters.create()
try:
    failed = interpreters.run_string(other, "import undertick")
except Exception as error:
    failed = error
assert failed is not None
print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "refused\n", done.stderr
