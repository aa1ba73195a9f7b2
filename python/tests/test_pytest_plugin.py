"""The plug-in: limits on both sides of a known length, and limits that cannot be decided."""

from __future__ import annotations

import importlib.metadata

import pytest

from undertick import Estimate, InputError
from undertick.pytest_plugin import Figure, nanoseconds, repetitions_needed

# A span that has the CPU for at least 200 us by another clock. Threads that sleep and wake may take
# the CPU away for most of the wall-clock time, and that time is in no figure.
BODY = """
import time, pytest

def spin(ns):
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        pass

def measured(section, times=60):
    for _ in section.repeat(times):
        with section("outside"):
            with section("spin"):
                spin(200_000)
    return section
"""


def results(pytester: pytest.Pytester, tests: str) -> pytest.RunResult:
    pytester.makepyfile(BODY + tests)
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rA")


def test_the_plug_in_is_found_by_pytest() -> None:
    names = {entry.name: entry.value for entry in importlib.metadata.entry_points(group="pytest11")}
    assert names["undertick"] == "undertick.pytest_plugin"


def test_limits_that_hold_and_limits_that_do_not(pytester: pytest.Pytester) -> None:
    done = results(
        pytester,
        """
def test_above(undertick_section):
    section = measured(undertick_section)
    # Far from the figure: one sample that something hit makes a mean of so few uncertain.
    assert section["spin"].mean > "40us"
    assert section["spin"].mean > 40e3
    assert section["spin"].mean < "50ms"
    assert section["spin"].count > 30
    assert section["outside"].interval["count"] > 30

def test_too_slow(undertick_section):
    assert measured(undertick_section)["spin"].mean < "30us"

def test_too_fast(undertick_section):
    assert measured(undertick_section)["spin"].mean > "60ms"

def test_quantile(undertick_section):
    # Where the machine's speed walks, quantiles of so few have no bounds: the value alone.
    spin = measured(undertick_section)["spin"]
    assert min(spin.quantile(0.9).estimate.value, spin.median.estimate.value) > 150e3
""",
    )
    done.assert_outcomes(passed=2, failed=2)
    done.stdout.re_match_lines_random([r"E +AssertionError: assert spin mean .*us \[.*\] us < '30us'"])


def test_what_cannot_be_told_is_neither(pytester: pytest.Pytester) -> None:
    """A limit that is the figure itself lies within any interval."""
    done = results(
        pytester,
        """
def at_itself(section):
    mean = measured(section)["spin"].mean
    return mean, mean.estimate.value

def test_fails(undertick_section):
    mean, limit = at_itself(undertick_section)
    assert mean < limit

def test_fails_the_other_way(undertick_section):
    mean, limit = at_itself(undertick_section)
    assert not mean > limit

@pytest.mark.undertick(cannot_tell="skip")
def test_skips(undertick_section):
    mean, limit = at_itself(undertick_section)
    assert mean < limit

@pytest.mark.undertick(cannot_tell="xfail", confidence=0.99)
def test_xfails(undertick_section):
    mean, limit = at_itself(undertick_section)
    assert mean.estimate.level == 0.99
    assert mean < limit
""",
    )
    done.assert_outcomes(failed=2, skipped=1, xfailed=1)
    done.stdout.re_match_lines_random(
        [r".*cannot tell whether spin mean .* < .*: the limit lies within the interval of \d+ repetitions; .*"]
    )


def test_the_ini_file_says_it_for_all(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nundertick_cannot_tell = xfail\nundertick_confidence = 0.9\n")
    done = results(
        pytester,
        """
def test_one(undertick_section):
    mean = measured(undertick_section)["spin"].mean
    assert mean.estimate.level == 0.9
    assert mean < mean.estimate.value
""",
    )
    done.assert_outcomes(xfailed=1)


def test_wrong_use_says_so(pytester: pytest.Pytester) -> None:
    done = results(
        pytester,
        """
def test_nothing(undertick_section):
    with pytest.raises(Exception, match="no section was timed"):
        undertick_section["spin"]

def test_unknown(undertick_section):
    with undertick_section("here"):
        pass
    with pytest.raises(KeyError, match="'here'"):
        undertick_section["there"]
    with pytest.raises(Exception, match="looked at already"):
        undertick_section("more")

def test_nobody_looks(undertick_section):
    with undertick_section("here"):
        pass

@pytest.mark.undertick(wrong=1)
def test_marker(undertick_section):
    pass

@pytest.mark.undertick(cannot_tell="pass")
def test_policy(undertick_section):
    pass
""",
    )
    done.assert_outcomes(passed=3, errors=2)
    done.stdout.fnmatch_lines(["*no option 'wrong'*", "*cannot_tell='pass'*"])


def test_a_test_that_fails_leaves_no_recorder(pytester: pytest.Pytester) -> None:
    done = results(
        pytester,
        """
import undertick

def test_fails(undertick_section):
    with undertick_section("here"):
        raise KeyError

def test_after():
    assert not undertick.enabled()
""",
    )
    done.assert_outcomes(failed=1, passed=1)


@pytest.mark.parametrize(
    ("limit", "ns"),
    [("5us", 5e3), ("2.5 ms", 2.5e6), ("1s", 1e9), ("30ns", 30), ("7\u00b5s", 7e3), ("1e3us", 1e6), (12.5, 12.5)],
)
def test_durations(limit: str | float, ns: float) -> None:
    assert nanoseconds(limit) == pytest.approx(ns)


@pytest.mark.parametrize("wrong", ["5", "us", "5 min", "-5us", "1.2.3us", ""])
def test_what_is_no_duration(wrong: str) -> None:
    with pytest.raises(InputError, match="5us"):
        nanoseconds(wrong)


def estimate(value: float, lo: float | None, hi: float | None, n: int = 100) -> Estimate:
    return Estimate(value, (lo, hi), 0.95, "ns", "", n, float(n))


def test_how_many_repetitions_would_do() -> None:
    # To tell at half the half-width takes four times as many, and a third more.
    assert repetitions_needed(estimate(50, 40, 60), 55) == 534
    assert repetitions_needed(estimate(50, 40, 60), 45) == 534
    # Only the side of the interval towards the limit counts.
    assert repetitions_needed(estimate(50, 48, 60), 55) == 534
    assert repetitions_needed(estimate(50, 40, 50.5), 45) == 534
    assert repetitions_needed(estimate(50, 40, 60), 50) is None
    # Without an interval it is the smallest number that has one. 0.9^n < 0.025: n > 35.01.
    assert repetitions_needed(estimate(50, 40, None, 10), 50, 0.9) == 36
    assert repetitions_needed(estimate(50, None, None, 1), 60) == 2


def test_only_a_whole_interval_tells() -> None:
    def told(lo: float | None, hi: float | None, limit: float) -> list[bool | str]:
        figure = Figure("x", estimate(50, lo, hi), "fail")
        found: list[bool | str] = []
        for verdict in (figure < limit, figure > limit, figure <= limit, figure >= limit):
            try:
                found.append(bool(verdict))
            except pytest.fail.Exception:
                found.append("?")
        return found

    assert told(40, 60, 61) == [True, False, True, False]
    assert told(40, 60, 39) == [False, True, False, True]
    assert told(40, 60, 60) == ["?"] * 4
    assert told(40, 60, 45) == ["?"] * 4
    assert told(None, 60, 61) == [True, False, True, False]
    assert told(None, 60, 39) == ["?"] * 4
    assert told(40, None, 61) == ["?"] * 4
