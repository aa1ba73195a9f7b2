"""An artificial trace, of which everything is known: its rows are written as specified."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Two ticks to a nanosecond, and a start other than 0, so that a figure in the wrong unit is wrong.
TICKS_PER_NS = 2
START = 1_000_000

NAMES = {1: "request", 2: "parse", 3: "queue", 4: "send", 5: "receive", 6: "lone"}
EVENT = {name: event for event, name in NAMES.items()}
PID = 10
INSTANT, BEGIN, END, GAP, SWITCH_OUT, SWITCH_IN, INTERRUPT, SOFT = 0, 1, 2, 7, 16, 17, 20, 21


@dataclass
class Made:
    """The content of the trace, times in ns from the start."""

    rows: list[dict[str, int]] = field(default_factory=list)
    spans: list[dict[str, Any]] = field(default_factory=list)
    points: list[dict[str, Any]] = field(default_factory=list)

    def _row(self, ring: int, tid: int, cpu: int, at_ns: float, kind: int, event: int, payload: int) -> None:
        self.rows.append(
            {
                "ts": START + int(at_ns * TICKS_PER_NS),
                "ring": ring,
                "pid": PID if ring >= 0 else 0,
                "tid": tid,
                "cpu": cpu,
                "mode": int(ring < 0),
                "kind": kind,
                "descheduled": 0,
                "event": event,
                "payload": payload,
                "host": 0,
            }
        )

    def span(self, ring: int, name: str, at_ns: float, took_ns: float) -> None:
        self._row(ring, 11 + ring, ring, at_ns, BEGIN, EVENT[name], 0)
        self._row(ring, 11 + ring, ring, at_ns + took_ns, END, EVENT[name], 0)
        self.spans.append({"ring": ring, "name": name, "at": at_ns, "took": took_ns})

    def point(self, ring: int, name: str, at_ns: float, payload: int) -> None:
        self._row(ring, 11 + ring, ring, at_ns, INSTANT, EVENT[name], payload)
        self.points.append({"ring": ring, "name": name, "at": at_ns, "payload": payload})

    def begin(self, ring: int, name: str, at_ns: float) -> None:
        self._row(ring, 11 + ring, ring, at_ns, BEGIN, EVENT[name], 0)

    def gap(self, ring: int, at_ns: float, lost: int) -> None:
        self._row(ring, 11 + ring, ring, at_ns, GAP, 0, lost)

    def kernel(self, tid: int, cpu: int, at_ns: float, kind: int, payload: int, event: int = 0) -> None:
        self._row(-1, tid, cpu, at_ns, kind, event, payload)

    def write(self, trace: Path, like: dict[str, Any]) -> None:
        """Writes the trace; `like` is the manifest of any trace."""
        trace.mkdir()
        rows = sorted(self.rows, key=lambda row: (row["ring"], row["ts"]))
        types = dict.fromkeys(("ts", "payload"), pa.int64())
        types |= dict.fromkeys(("ring", "pid", "tid", "event"), pa.int32())
        types |= dict.fromkeys(("cpu", "host"), pa.int16())
        types |= dict.fromkeys(("mode", "kind", "descheduled"), pa.int8())
        fields = [pa.field(name, types[name], nullable=False) for name in rows[0]]
        table = pa.Table.from_pylist(rows, schema=pa.schema(fields))
        file = trace / "events.parquet"
        pq.write_table(table, file, compression="zstd")
        bytes_ = file.read_bytes()
        part = {"file": file.name, "rows": len(rows), "bytes": len(bytes_), "crc32": zlib.crc32(bytes_)}
        clock = like["clock"] | {
            "ticks_per_second_numerator": TICKS_PER_NS * 10**9,
            "ticks_per_second_denominator": 1,
            "anchors": [],
        }
        lost = sum(row["payload"] for row in rows if row["kind"] == GAP)
        rings = []
        for ring in sorted({row["ring"] for row in rows if row["ring"] >= 0}):
            received = sum(1 for row in rows if row["ring"] == ring and row["kind"] != GAP)
            dropped = sum(row["payload"] for row in rows if row["ring"] == ring and row["kind"] == GAP)
            rings.append(
                {
                    "ring": ring,
                    "pid": PID,
                    "tid": 11 + ring,
                    "written": received + dropped,
                    "received": received,
                    "dropped": dropped,
                    "overwritten": 0,
                }
            )
        manifest = like | {
            "state": "complete",
            "clock": clock,
            "calibration": None,
            "names": [{"pid": None if event == 1 else PID, "event": event, "name": name} for event, name in NAMES.items()],
            "threads": [{"pid": PID, "tid": 11, "name": "first"}],
            "rings": rings,
            "sampled": [],
            "events": sum(ring["received"] for ring in rings),
            "lost": lost,
            "parts": [part],
            "kernel": None,
            "warnings": [],
        }
        (trace / "manifest.json").write_text(json.dumps(manifest))


def example() -> Made:
    """Returns two threads with requests, some nested in themselves, and kernel events."""
    made = Made()
    for ring, count in ((0, 40), (1, 25)):
        at = 1000.0 * (ring + 1)
        for i in range(count):
            took = 300.0 + (i * 37 % 50) * 10 + (5000.5 if i == 17 else 0) + 100 * ring
            made.span(ring, "request", at, took)
            for j in range(i % 3):
                made.span(ring, "parse", at + 20 + 60 * j, 30.5 + j + i % 7)
            if i % 8 == 3:  # a request within a request
                made.span(ring, "request", at + 200, 40)
            made.point(ring, "queue", at + 10, (i * 13) % 11 - 3)
            made.point(ring, "send" if ring == 0 else "receive", at + 15, i)
            if i % 10 == 4:
                made.kernel(11 + ring, ring, at + 150, SWITCH_OUT, 1)
                made.kernel(11 + ring, ring, at + 160, SWITCH_IN, 0)
            if i % 6 == 1:
                made.kernel(11 + ring, ring, at + 170, INTERRUPT if i % 4 == 1 else SOFT, 2 * (5 + i), 7)
            at += took + 25 + i * 3
        if ring == 1:
            made.kernel(99, 1, at + 5, SWITCH_OUT, 1)  # another program's thread
            made.begin(ring, "lone", at + 10)
            made.gap(ring, at + 20, 9)
    return made
