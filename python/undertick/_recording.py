"""Recording of the running process."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Literal

from . import _command, _native
from ._trace import Trace, open

_PAUSE_S = 0.002


class Recording:
    """A recording of this process, made by `record`: a context manager.

    The recorder is a separate process, which attaches to this one and drains its rings.
    """

    path: str
    """The trace directory."""

    notes: str
    """Messages of the recorder; complete when the recording has ended."""

    def __init__(self, path: str | os.PathLike[str], options: Sequence[str]) -> None:
        self.path = os.fspath(path)
        self.notes = ""
        self._options = options
        self._recorder: _command.Process | None = None
        self._said: IO[bytes] | None = None
        self._pid = -1

    def start(self) -> None:
        """Starts the recorder and waits until it records.

        Raises `InputError` or `Error` with the recorder's message if it does not.
        """
        if self._recorder is not None:
            raise _native.InputError(f"{self.path}: this recording was started already")
        if _native.enabled():
            raise _native.InputError(
                f"{self.path}: this process is being recorded already; one recorder at a time"
            )
        command = ["record", "--pid", str(os.getpid()), "-o", self.path, *self._options]
        self._pid = os.getpid()
        self._said = tempfile.TemporaryFile()
        recorder = _command.Process(command, stdout=subprocess.DEVNULL, stderr=self._said)
        try:
            self._recorder = recorder
            process = recorder.start()
            while not _native.enabled():
                if process.poll() is not None:
                    self._failed(process.returncode)
                time.sleep(_PAUSE_S)
        except BaseException:
            self._recorder = None
            recorder.terminate()
            raise

    def stop(self) -> None:
        """Ends the recording and waits until the trace is saved.

        Raises `Error` with the recorder's message if it could not save it.
        """
        recorder, self._recorder = self._recorder, None
        if recorder is None or os.getpid() != self._pid:
            return  # not started, stopped already, or a child of the recorded process
        recorder.terminate()
        status = recorder.wait()
        if status:
            self._failed(status)
        self.notes = self._words()

    def trace(self) -> Trace:
        """Returns the trace, once the recording has ended."""
        return open(self.path)

    def _words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0)
        return self._said.read().decode(errors="replace").strip()

    def _failed(self, status: int) -> None:
        self.notes = self._words()
        kind = _native.InputError if status == 2 else _native.Error
        raise kind(_command.why(self.notes, status))

    def __enter__(self) -> Recording:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"undertick.record({self.path!r})"


def record(
    path: str | os.PathLike[str],
    *,
    kernel: Literal["auto", "on", "off"] = "auto",
    calibration: bool = True,
    overflow: Literal["grow", "drop", "overwrite"] = "grow",
    ring: str | None = None,
    budget: str | None = None,
    sample: Sequence[str] = (),
    perturbation: str | None = None,
    events: str | os.PathLike[str] | None = None,
    parquet: bool = False,
) -> Recording:
    """Records this process, its native parts and forked children inside a ``with`` block.

    `path` is the trace directory to make (NAME.ut). The other arguments are the options of
    ``undertick record``: `ring` and `budget` are sizes such as ``"64MiB"``; without `calibration`
    it starts 0.6 s sooner and no cost of recording is subtracted. However the block ends, even by
    an exception or Ctrl-C, the trace is saved.

    >>> import tempfile, undertick
    >>> with tempfile.TemporaryDirectory() as where:
    ...     with undertick.record(where + "/run.ut", calibration=False, kernel="off") as recording:
    ...         undertick.event("tick")
    ...     recording.trace().manifest["events"]
    1
    """
    options = ["--kernel", kernel, "--overflow", overflow]
    if not calibration:
        options.append("--no-calibration")
    if parquet:
        options.append("--parquet")
    for option, value in (
        ("--ring", ring),
        ("--budget", budget),
        ("--perturbation", perturbation),
        ("--events", None if events is None else os.fspath(events)),
    ):
        if value is not None:
            options += [option, value]
    for one in sample:
        options += ["--sample", one]
    return Recording(path, options)
