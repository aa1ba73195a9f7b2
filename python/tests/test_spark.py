"""Reports by Spark's executors, against reports made here and against the input."""

from __future__ import annotations

import json
import os
import signal
import shutil
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import undertick

from made import BEGIN, END, GAP, INSTANT, example

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("no Java, which Spark needs", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402

import undertick.spark  # noqa: E402

TABLE = """
[[interval]]
name = "work"
start = 1
end = 1
[[interval]]
name = "sent"
start = 3
end = 4
match = "message"
"""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A cluster of two executors on this machine, each in a separate process."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("undertick")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.task.maxFailures", "8")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def like(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The manifest of a trace of this version."""
    path = str(tmp_path_factory.mktemp("like") / "like.ut")
    with undertick.record(path, calibration=False, kernel="off"):
        undertick.event("one")
    return undertick.open(path).manifest


class Large:
    """Threads with spans of known length, which send messages to one another."""

    def __init__(self, threads: int, spans: int, seed: int, hosts: int = 1) -> None:
        random = np.random.default_rng(seed)
        self.rings: list[dict[str, np.ndarray[Any, Any]]] = []
        self.took = random.integers(50, 5000, (threads, spans))
        self.lost = self.unmatched = 0
        for ring in range(threads):
            took = self.took[ring]
            start = np.cumsum(took + 700) - took + ring
            # Each span has a begin, a message and an end; every 1000th end is lost in a gap.
            ts = np.stack([start, start + 20, start + took], 1)
            kind = np.tile(np.array([BEGIN, INSTANT, END], np.int8), (spans, 1))
            event = np.tile(np.array([1, 3 + ring % 2, 1], np.int32), (spans, 1))
            payload = np.zeros((spans, 3), np.int64)
            payload[:, 1] = np.arange(spans) + (ring // 2 << 32)
            lost = np.arange(spans) % 1000 == 999
            kind[lost, 2], payload[lost, 2] = GAP, 1
            self.lost += int(lost.sum())
            rows = 3 * spans
            self.rings.append(
                {
                    "ts": ts.ravel(),
                    "ring": np.full(rows, ring, np.int32),
                    "pid": np.full(rows, 50 + ring // 2, np.int32),
                    "tid": np.full(rows, 500 + ring, np.int32),
                    "cpu": np.zeros(rows, np.int16),
                    "mode": np.zeros(rows, np.int8),
                    "kind": kind.ravel(),
                    "descheduled": np.zeros(rows, np.int8),
                    "event": event.ravel(),
                    "payload": payload.ravel(),
                    "host": np.full(rows, ring % hosts, np.int16),
                }
            )
            self.unmatched += int(lost.sum())
        ended = np.ones(spans, bool)
        ended[999::1000] = False
        self.n = threads * int(ended.sum())
        self.sum = int(self.took[:, ended].sum())

    def write(self, trace: Path, like: dict[str, Any], host: str, mixed: bool = False) -> str:
        trace.mkdir(parents=True)
        file = trace / "events.parquet"
        fields = [pa.field(name, pa.from_numpy_dtype(c.dtype), False) for name, c in self.rings[0].items()]
        with pq.ParquetWriter(file, pa.schema(fields), compression="zstd") as writer:
            tables = [pa.table(ring, schema=pa.schema(fields)) for ring in self.rings]
            if mixed:  # the rings take turns in short stretches, as older versions wrote them
                step = 70_000
                for at in range(0, tables[0].num_rows, step):
                    for table in tables:
                        writer.write_table(table.slice(at, step))
            else:
                for table in tables:
                    writer.write_table(table, row_group_size=1 << 19)
        size = file.stat().st_size
        rows = sum(len(ring["ts"]) for ring in self.rings)
        part = {"file": file.name, "rows": rows, "bytes": size, "crc32": zlib.crc32(file.read_bytes())}
        of = [(int(r["ring"][0]), int(r["pid"][0]), int(r["tid"][0]), len(r["ts"])) for r in self.rings]
        manifest = like | {
            "state": "complete",
            "host": like["host"] | {"name": host},
            "clock": like["clock"]
            | {"ticks_per_second_numerator": 10**9, "ticks_per_second_denominator": 1, "granularity_ticks": 1},
            "calibration": None,
            "names": [{"pid": None, "event": 1, "name": "work"}],
            "threads": [],
            "rings": [
                {"ring": r, "pid": p, "tid": t, "written": n, "received": n, "dropped": 0, "overwritten": 0}
                for r, p, t, n in of
            ],
            "sampled": [],
            "events": rows - self.lost,
            "lost": self.lost,
            "parts": [part | {"by_ring": not mixed}],
            "kernel": None,
            "warnings": [],
        }
        (trace / "manifest.json").write_text(json.dumps(manifest))
        return str(trace)

    def check(self, report: undertick.Report) -> None:
        work = report.interval("work")
        assert (work["count"], work["unmatched"], work["total_ns"]) == (self.n, self.unmatched, self.sum)
        assert report["trace"]["events"] == sum(len(r["ts"]) for r in self.rings) - self.lost


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory, like: dict[str, Any]) -> dict[str, Any]:
    """Five traces of four hosts."""
    at = tmp_path_factory.mktemp("traces")
    made = example()
    # The second ring belongs to another host.
    for row in made.rows:
        row["host"] = int(row["ring"] == 1)
    made.write(at / "a.ut", like | {"host": like["host"] | {"name": "small"}})
    large = {
        "b.ut": (Large(5, 500_000, 1), "north", False),
        "c.ut": (Large(4, 300_000, 2, hosts=2), "south", False),
        "d.ut": (Large(3, 60_000, 3), "south", True),
        "nested/e.ut": (Large(1, 400_000, 4), "east", False),
    }
    for name, (trace, host, mixed) in large.items():
        trace.write(at / name, like, host, mixed)
    return {"at": at, "large": {name: trace for name, (trace, *_) in large.items()}}


def test_the_report_of_spark_is_the_one_made_here(spark: SparkSession, traces: dict[str, Any]) -> None:
    at: Path = traces["at"]
    wanted = [str(at / "?.ut"), at / "nested"]
    for options in ({}, {"table": TABLE}, {"cull": "ratio:4", "confidence": 0.9}):
        reports = undertick.spark.report(spark, wanted, **options)
        assert [Path(path).name for path in reports] == ["a.ut", "b.ut", "c.ut", "d.ut", "e.ut"]
        for path, report in reports.items():
            here = undertick.open(path).report(**options)
            assert report.document == here.document, (path, options)
        for name, large in traces["large"].items():
            if "cull" not in options:
                large.check(reports[str(at / name)])
        pieces = len(reports.makers[str(at / "b.ut")])
        assert pieces == 5 * max(options.get("cull", "").count("ratio") * 2, 1)
        assert len({maker for makers in reports.makers.values() for maker in makers}) > 1, "one did it all"
    table = undertick.spark.report(spark, f"file://{at}/[bc].ut").intervals()
    assert table.column("trace")[0].as_py() == f"file://{at}/b.ut"
    assert table.column("host").unique().to_pylist() == ["north", "south"]
    assert table.num_rows == sum(len(undertick.open(at / n).report()["intervals"]) for n in ("b.ut", "c.ut"))


def executors(spark: SparkSession) -> list[int]:
    """Returns the processes of the cluster's executors."""
    application = spark.sparkContext.applicationId
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if entry.name.isdigit() and "CoarseGrainedExecutorBackend" in words and application in words:
            found.append(int(entry.name))
    return found


def test_the_work_of_a_killed_executor_is_done_again(spark: SparkSession, traces: dict[str, Any]) -> None:
    path = str(traces["at"] / "b.ut")
    here = undertick.open(path).report()
    killed: list[int] = []

    def kill() -> None:
        status = spark.sparkContext.statusTracker()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            stages = [status.getStageInfo(stage) for stage in status.getActiveStageIds()]
            if any(stage is not None and stage.numActiveTasks > 1 for stage in stages):
                killed.extend(executors(spark)[:1])
                os.kill(killed[0], signal.SIGKILL)
                return
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    report = undertick.spark.report(spark, path)
    killer.join()
    assert killed, "nobody was killed while the work was under way"
    assert killed[0] not in executors(spark)
    assert report[path].document == here.document
    traces["large"]["b.ut"].check(report[path])


def test_a_part_of_another_build_is_refused(traces: dict[str, Any]) -> None:
    manifest = json.dumps(undertick.open(traces["at"] / "a.ut").manifest)

    def kernel() -> Any:
        return undertick._native.Kernel(manifest, None, 0.95, "auto", "auto")

    made = kernel()
    made.begin_part(True)
    part = made.finish_part()
    assert part.startswith(undertick._native.Kernel.mark().encode() + b"\n")
    kernel().absorb(part)
    with pytest.raises(undertick.InputError, match="install the same undertick everywhere"):
        kernel().absorb(part.replace(b"undertick part", b"undertick pert", 1))
    with pytest.raises(undertick.InputError, match="not a part"):
        kernel().absorb(part[: len(part) // 2])


def test_what_cannot_be_read_is_said(
    spark: SparkSession, traces: dict[str, Any], tmp_path: Path, like: dict[str, Any]
) -> None:
    with pytest.raises(undertick.InputError, match="no trace there"):
        undertick.spark.report(spark, str(tmp_path / "*.ut"))
    unfinished = tmp_path / "x.ut"
    unfinished.mkdir()
    (unfinished / "manifest.json").write_text(json.dumps(like | {"state": "recording"}))
    with pytest.raises(undertick.InputError, match="not complete"):
        undertick.spark.report(spark, unfinished)
    blocks = {"state": "complete", "parts": [{"file": "raw.utb", "rows": 1, "bytes": 1, "crc32": 0}]}
    (unfinished / "manifest.json").write_text(json.dumps(like | blocks))
    with pytest.raises(undertick.InputError, match="record --finish"):
        undertick.spark.report(spark, unfinished)
    with pytest.raises(undertick.InputError, match="no event named"):
        undertick.spark.report(spark, traces["at"] / "a.ut", "[[interval]]\nname='x'\nstart='nobody'\nend=1\n")
