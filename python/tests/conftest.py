"""Fixtures and options that the tests share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
# Options of the tests' recordings: without the kernel's events, which not every machine gives, and
# without calibration.
PLAIN = ["--kernel", "off", "--no-calibration"]


def hear_ctrl_c() -> None:
    """Enables SIGINT in a child: processes started in the background inherit that it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _clean_environment() -> None:
    for name in ("UNDERTICK_SESSION", "UNDERTICK_ATTACH"):
        os.environ.pop(name, None)


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., str]:
    """Records a Python program, given as text, under `python -m undertick record`."""

    def record(program: str, *options: str, name: str = "run.ut") -> str:
        file = tmp_path / (name + ".py")
        file.write_text(program)
        trace = str(tmp_path / name)
        command = [sys.executable, "-m", "undertick", "record", *PLAIN, "-o", trace, *options, "--"]
        subprocess.run([*command, sys.executable, str(file)], check=True, timeout=120)
        return trace

    return record


_SKIPPED: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collects the checks that a passed test skipped, and the tests that were skipped."""
    if report.when == "call" and report.passed:
        lines = report.capstdout.splitlines()
        _SKIPPED.extend(line for line in lines if line.startswith("skipped:"))
    if report.skipped and isinstance(report.longrepr, tuple):
        _SKIPPED.append("skipped: " + report.longrepr[2].removeprefix("Skipped: "))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.ensure_newline()
    for line in _SKIPPED:
        terminalreporter.write_line(line)
