"""Calls a part in Rust, which calls a part in C, beside a program in Go and one in Java."""

import ctypes
import subprocess
import sys

import undertick

rust, *others = sys.argv[1:]
part = ctypes.CDLL(rust).rust_part
running = [subprocess.Popen(command.split("\t")) for command in others]
for n in range(50):
    with undertick.span("in Python"):
        part(n)
for one in running:
    assert one.wait() == 0
