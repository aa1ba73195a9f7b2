"""Experiments."""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Literal

from . import _command, _native
from ._report import Report


def run(
    script: str | os.PathLike[str],
    machine: str = "here",
    output: str | os.PathLike[str] | None = None,
    *,
    kernel: Literal["auto", "on", "off"] = "off",
    confidence: float = 0.95,
) -> Report:
    """Runs an experiment script, given as a file or as its text (with a line feed in it).

    `machine` is ``here``, ``cmstar``, ``cmstar:medusa`` or a file of parameters of the simulated
    machine. `output` is the directory to save the trace in; without it the trace is deleted. A
    separate process performs the experiment, so the children, signals and memory of this one are
    not affected. Ctrl-C ends the experiment early and discards its trace.

    Raises `InputError` for an invalid script, and `Error` if it could not be performed.

    >>> import undertick
    >>> text = '''
    ... passes = 100
    ... repetitions = 2
    ... [[process]]
    ... name = "A"
    ... [[process.step]]
    ... call = "getppid"
    ... '''
    >>> report = undertick.run(text)
    >>> len(report["intervals"]) > 0
    True
    """
    with tempfile.TemporaryDirectory(prefix="undertick-") as scratch:
        file = os.fspath(script)
        if "\n" in file:
            text, file = file, os.path.join(scratch, "script.toml")
            with open(file, "w", encoding="utf-8") as made:
                made.write(text)
        trace = os.path.join(scratch, "run.ut") if output is None else os.fspath(output)
        command = ["run", file, "--machine", machine, "-o", trace]
        command += ["--kernel", kernel, "--confidence", repr(confidence), "--json"]
        process = _command.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            performer = process.start()
            out, said = performer.communicate()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if performer.returncode not in (0, 1) or not out:
        why = _command.why(said.decode(errors="replace"), performer.returncode)
        raise (_native.InputError if performer.returncode == 2 else _native.Error)(why)
    return Report.from_json(out.decode())
