"""The command line, run in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO

# How long an interrupted start waits until the process exists, seconds.
_SPAWN_S = 10.0


class Process:
    """A process of the command line, in a new session: Ctrl-C reaches only the program.

    A separate thread makes the process. Signal handlers run in the main thread: one that raises
    while the process is made there would leave it running, without a reference to it.
    """

    def __init__(self, arguments: Sequence[str], *, stdout: int, stderr: int | IO[bytes]) -> None:
        self._arguments = arguments
        self._stdout = stdout
        self._stderr = stderr
        self._made: subprocess.Popen[bytes] | None = None
        self._failed: BaseException | None = None
        self._is_there = threading.Event()

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the process and returns it. If this or a later step raises, call `terminate`."""
        threading.Thread(target=self._make, daemon=True).start()
        self._is_there.wait()
        if self._made is None:
            raise self._failed or RuntimeError("no process")
        return self._made

    def _make(self) -> None:
        try:
            self._made = subprocess.Popen(
                [*words(), *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._stdout,
                stderr=self._stderr,
                env=environment(),
                start_new_session=True,
            )
        except BaseException as error:
            self._failed = error
        finally:
            self._is_there.set()

    def terminate(self) -> None:
        """Asks the process to end, if it exists."""
        self._is_there.wait(_SPAWN_S)
        # SIGINT would be lost while an interpreter starts.
        if self._made is not None and self._made.poll() is None:
            self._made.send_signal(signal.SIGTERM)

    def wait(self) -> int | None:
        """Returns the exit status of the process after its end; None if it was never made."""
        return None if self._made is None else self._made.wait()


def words() -> list[str]:
    """Returns the words that start the command line."""
    # Leave out the current directory, whose files could be imported as modules.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "undertick"]


def why(said: str, status: int) -> str:
    """Returns the line of the process's messages `said` that tells why it failed."""
    lines = [line for line in said.splitlines() if not line.startswith("undertick: note:")]
    for mark in ("undertick: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    return lines[-1] if lines else f"the process ended with status {status} and without a word"


def environment() -> dict[str, str]:
    """Returns an environment that finds this package, and in which no attach page is made."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    before = os.environ.get("PYTHONPATH")
    paths = here if not before else here + os.pathsep + before
    return {**os.environ, "PYTHONPATH": paths, "UNDERTICK_ATTACH": "0"}
