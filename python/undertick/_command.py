"""The command line, as a process of its own."""

from __future__ import annotations

import os
import sys


def words() -> list[str]:
    """The words that start the command line."""
    # Without the directory that it is started in, whose files could pass for modules.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "undertick"]


def why(said: str, status: int) -> str:
    """The line of what it said that tells why it failed."""
    lines = [line for line in said.splitlines() if not line.startswith("undertick: note:")]
    for mark in ("undertick: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    return lines[-1] if lines else f"the process ended with status {status} and without a word"


def environment() -> dict[str, str]:
    """The environment in which it finds this package, and is no program to be recorded."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    before = os.environ.get("PYTHONPATH")
    paths = here if not before else here + os.pathsep + before
    return {**os.environ, "PYTHONPATH": paths, "UNDERTICK_ATTACH": "0"}
