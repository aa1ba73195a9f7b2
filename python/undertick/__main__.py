"""The command line: ``python -m undertick``."""

from __future__ import annotations

import signal
import sys

from . import _command, _native


def main() -> int:
    """Runs the command line that the interpreter was started with; returns the exit status."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["sql"]:
        from ._sql import main as sql

        return sql(arguments[1:])
    # Restores the defaults: recorded programs inherit them, and only Python changes them.
    for number in (signal.SIGINT, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    return _native.command_line(["undertick", *arguments], _command.words())


if __name__ == "__main__":
    sys.exit(main())
