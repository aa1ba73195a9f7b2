"""A Python program with a native part gives one trace."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from conftest import ROOT
from test_recording import BEGIN, END, INSTANT, counts, rows

import undertick

COMPILER = shutil.which(os.environ.get("CC", "cc"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if COMPILER is None:
        pytest.skip("no C compiler, so no native part")
    out = tmp_path_factory.mktemp("native") / "libnative_part.so"
    source = Path(__file__).parent / "native_part.c"
    subprocess.run(
        [COMPILER, "-O2", "-shared", "-fPIC", "-pthread", f"-I{ROOT / 'include'}", source, "-o", out, "-ldl"],
        check=True,
    )
    library = ctypes.CDLL(str(out))
    library.native_setup()
    return library


def test_both_in_one_trace(library: ctypes.CDLL, tmp_path: Path) -> None:
    with undertick.record(tmp_path / "run.ut", kernel="off", calibration=False) as recording:
        assert library.native_enabled()
        for _ in range(50):
            with undertick.span("python around native"):
                assert library.native_work(4) == 6
            with undertick.span(1):  # the native part's event number, from Python
                pass
    trace = recording.trace()
    assert counts(trace) == {
        (BEGIN, "python around native"): 50,
        (END, "python around native"): 50,
        (BEGIN, "native work"): 250,
        (END, "native work"): 250,
        (INSTANT, "native tick"): 200,
    }
    found = rows(trace)
    # Both use one clock: each native span lies within the Python span that called it.
    assert len({row["ring"] for row in found}) == 2 and len({row["tid"] for row in found}) == 1
    python = [row for row in found if row["name"] == "python around native"]
    sections = [(a["ts"], b["ts"]) for a, b in zip(python[::2], python[1::2])]
    ticks = [row["ts"] for row in found if row["name"] == "native tick"]
    inside = Counter(at for at, (lo, hi) in enumerate(sections) for tick in ticks if lo <= tick <= hi)
    assert inside == {at: 4 for at in range(50)}
    report = trace.report(cull="none")
    assert report.interval("native work")["count"] == 250
    outer, inner = report.interval("python around native"), report.interval("native work")
    assert outer["total_ns"] > inner["total_ns"]


def test_a_second_recording_has_both_too(library: ctypes.CDLL, tmp_path: Path) -> None:
    with undertick.record(tmp_path / "run.ut", kernel="off", calibration=False) as recording:
        undertick.event("python")
        library.native_work(3)
    assert counts(recording.trace()) == {
        (INSTANT, "python"): 1,
        (BEGIN, "native work"): 3,
        (END, "native work"): 3,
        (INSTANT, "native tick"): 3,
    }
