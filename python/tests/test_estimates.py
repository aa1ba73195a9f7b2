"""The estimators on arrays, against values computed otherwise and the command's output."""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
from array import array
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import undertick

_DRAWN = random.Random(8)
SAMPLE = [_DRAWN.gauss(100, 5) for _ in range(2000)]


@pytest.mark.parametrize(
    "values",
    [
        SAMPLE,
        tuple(SAMPLE),
        iter(SAMPLE),
        array("d", SAMPLE),
        np.array(SAMPLE),
        np.array([[x, 0.0] for x in SAMPLE])[:, 0],  # not contiguous
        np.array(SAMPLE).astype(">f8"),
        pl.Series(SAMPLE),
    ],
    ids=["list", "tuple", "iterator", "array", "numpy", "strided", "swapped", "polars"],
)
def test_any_series_of_numbers(values: object) -> None:
    found = undertick.estimate(values, unit="ms")  # type: ignore[arg-type]
    assert found.value == pytest.approx(statistics.fmean(SAMPLE), rel=1e-12)
    assert (found.unit, found.level, found.n) == ("ms", 0.95, 2000)
    assert found.lo is not None and found.hi is not None
    # The half-width of independent normal numbers is about 1.96 * 5 / sqrt(2000) = 0.219.
    assert 0.15 < (found.hi - found.lo) / 2 < 0.33


def test_integers_and_single_precision() -> None:
    assert undertick.estimate(np.arange(11)).value == 5
    assert undertick.estimate(np.arange(11, dtype=np.float32), of="median").value == 5
    assert undertick.estimate(np.array([True, False])).value == 0.5


@pytest.mark.parametrize("of", ["mean", "median", "p90", "p99"])
def test_as_the_command_says(of: str, tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_text("\n".join(map(repr, SAMPLE)))
    command = [sys.executable, "-m", "undertick", "estimate", str(file), "--of", of, "--json"]
    command += ["--confidence", "0.9"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    found = undertick.estimate(SAMPLE, of=of, level=0.9).to_json()
    assert found == {key: value for key, value in said.items() if key not in ("schema_version", "of")}


def test_correlated_numbers_widen_the_interval() -> None:
    drawn = random.Random(5)
    value, walk = 0.0, []
    for _ in range(4000):
        value = 0.95 * value + drawn.gauss(0, 1)
        walk.append(value)
    mixed = walk[:]
    drawn.shuffle(mixed)
    kept, lost = undertick.estimate(walk), undertick.estimate(mixed)
    assert None not in (*kept.interval, *lost.interval)
    # The interval of an AR(1) of 0.95 is sqrt(1.95 / 0.05) = 6.2 times as wide.
    ratio = (kept.hi - kept.lo) / (lost.hi - lost.lo)  # type: ignore[operator]
    assert 3 < ratio < 12
    assert kept.n_effective < 400


def test_comparison_of_series() -> None:
    drawn = random.Random(3)
    a = [drawn.gauss(12, 1) for _ in range(800)]
    b = [drawn.gauss(10, 1) for _ in range(800)]
    found = undertick.compare(np.array(a), b, unit="us")
    assert isinstance(found, undertick.Comparison) and found.ratio is not None
    assert found.difference.value == pytest.approx(statistics.fmean(a) - statistics.fmean(b), rel=1e-9)
    assert found.ratio.value == pytest.approx(statistics.fmean(a) / statistics.fmean(b), rel=1e-9)
    assert (found.difference.unit, found.ratio.unit) == ("us", "1")
    # The half-width is sqrt(2 / 800) * 1.96 = 0.098.
    assert found.difference.lo is not None and found.difference.hi is not None
    assert 0.07 < (found.difference.hi - found.difference.lo) / 2 < 0.14
    median = undertick.compare(a, b, of="median")
    assert isinstance(median, undertick.Comparison)
    assert median.difference.value == pytest.approx(
        statistics.median(a) - statistics.median(b), rel=1e-9
    )


def test_pairs_cancel_what_drifts() -> None:
    drawn = random.Random(4)
    drift = [0.0]
    for _ in range(599):
        drift.append(0.8 * drift[-1] + drawn.gauss(0, 3))
    a = [x + 1 + drawn.gauss(0, 0.1) for x in drift]
    b = [x + drawn.gauss(0, 0.1) for x in drift]
    paired = undertick.compare(a, b, paired=True)
    apart = undertick.compare(a, b)
    assert isinstance(paired, undertick.Comparison) and isinstance(apart, undertick.Comparison)
    assert None not in (*paired.difference.interval, *apart.difference.interval)
    narrow = paired.difference.hi - paired.difference.lo  # type: ignore[operator]
    wide = apart.difference.hi - apart.difference.lo  # type: ignore[operator]
    assert narrow < wide / 20 and paired.difference.value == pytest.approx(1, abs=0.03)
    # A steady drift is worth fewer than ten independent numbers: without pairs there is no
    # interval.
    ramp = [i * 0.05 for i in range(600)]
    drifting = undertick.compare([x + 1 for x in ramp], ramp)
    assert isinstance(drifting, undertick.Comparison)
    assert drifting.difference.interval == (None, None)
    with pytest.raises(undertick.InputError, match="600 numbers in a and 599 in b"):
        undertick.compare(a, b[1:], paired=True)


def test_a_ratio_that_has_no_meaning_is_none() -> None:
    found = undertick.compare([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert isinstance(found, undertick.Comparison) and found.ratio is None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: undertick.estimate([]), "no numbers"),
        (lambda: undertick.estimate([1.0, float("nan")]), r"values\[1\] is NaN"),
        (lambda: undertick.estimate([1.0, 2.0, float("-inf")]), r"values\[2\] is -inf"),
        (lambda: undertick.estimate(np.zeros((2, 2))), "2 dimensions"),
        (lambda: undertick.estimate(np.array(3.0)), "0 dimensions"),
        (lambda: undertick.estimate(["a"]), "not a series"),  # type: ignore[list-item]
        (lambda: undertick.estimate([1.0], of="most"), "median"),
        (lambda: undertick.estimate([1.0], level=95), "0.95"),
        (lambda: undertick.compare([1.0], []), "b: no numbers"),
        (lambda: undertick.compare([1.0, 2.0], {}), "two of a kind"),
        (lambda: undertick.compare([1.0, 2.0], [1.0, 2.0], of="p90", paired=True), "means"),
        (lambda: undertick.compare({}, {}), "a: "),
        (lambda: undertick.compare("none.json", "none.json"), "none.json"),
    ],
)
def test_what_is_no_series_says_what_and_where(call: object, words: str) -> None:
    with pytest.raises(undertick.InputError, match=words):
        call()  # type: ignore[operator]


def test_one_number_has_no_interval() -> None:
    found = undertick.estimate([3.0])
    assert found.value == 3 and found.interval == (None, None)
    assert "[?, ?]" in str(found) and "?" in found._repr_html_()


def test_figures_bear_no_more_digits_than_they_have() -> None:
    def shown(value: float, lo: float | None, hi: float | None, unit: str) -> str:
        return str(undertick.Estimate(value, (lo, hi), 0.95, unit, "", 9, 9.0))

    assert shown(1234.5678, 1200.0, 1260.0, "ns") == "1.235 us [1.200, 1.260] us"
    assert shown(12.3456, 12.0, 12.7, "ns") == "12.35 ns [12.00, 12.70] ns"
    assert shown(2.5e9, 2.4e9, None, "ns") == "2.500 s [2.400, ?] s"
    assert shown(0.5, 0.25, 0.75, "1") == "0.50 [0.25, 0.75]"
    assert shown(250.0, 200.0, 300.0, "1/s") == "250 1/s [200, 300] 1/s"


def test_reports_are_compared_as_by_the_command(tmp_path: Path) -> None:
    text = 'passes = 200\nrepetitions = 3\n[[process]]\nname = "A"\n[[process.step]]\ncall = "getppid"\n'
    reports = [undertick.run(text) for _ in range(2)]
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, report in zip(files, reports):
        file.write_text(json.dumps(report.document))
    command = [sys.executable, "-m", "undertick", "compare", *map(str, files), "--json"]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)
    assert undertick.compare(*files) == said
    by_reports = undertick.compare(*reports)
    assert isinstance(by_reports, dict) and by_reports["rows"] == said["rows"] and said["rows"]


def test_an_experiment_on_the_simulated_machine(tmp_path: Path) -> None:
    """A simulated experiment gives the same report each time, and the command gives the same."""
    script = Path(__file__).resolve().parents[2] / "experiments" / "cmstar-messages.toml"
    first = undertick.run(script, "cmstar", tmp_path / "kept.ut")
    again = undertick.run(script, "cmstar")
    assert [one["mean"] for one in first["intervals"]] == [one["mean"] for one in again["intervals"]]
    assert undertick.open(tmp_path / "kept.ut").manifest["events"] == first["trace"]["events"]
    with pytest.raises(undertick.InputError, match="exists already"):
        undertick.run(script, "cmstar", tmp_path / "kept.ut")
    with pytest.raises(undertick.InputError, match="none.toml"):
        undertick.run("none.toml")
    with pytest.raises(undertick.InputError, match="script.toml:"):
        undertick.run("passes = 'many'\n")
