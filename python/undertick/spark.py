"""Reports of traces from many machines, made where the traces are stored: Apache Spark.

>>> from undertick import spark  # needs pyspark and pyarrow: pip install undertick[spark]

The analysis of a trace is the one that `Trace.report` uses, compiled once. Each executor runs it
over shards of a trace that share no thread, and sends its results, which are merged here. No event
is sent from one machine to another, and the report is the one that a single machine makes, figure
by figure.
"""

from __future__ import annotations

import fnmatch
import importlib
import json
import os
import posixpath
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._report import Report
from ._trace import _given

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Reports", "report"]

# Number of rows of a trace that are passed to the analysis at a time.
_ROWS = 1 << 16
# Tables, batches, readers and file systems of pyarrow, which has no type annotations.
_Arrow = Any
# Columns sent for each shard: the trace, the shard, its result, and the process that made it.
_SENT = "trace int, piece int, part binary, maker string"


class Reports(Mapping[str, Report]):
    """The reports by the paths of their traces, in the order of the paths."""

    makers: Mapping[str, Sequence[str]]
    """By path: where its shards were analysed, one word ``host:process`` for each."""

    def __init__(self, reports: dict[str, Report], makers: dict[str, list[str]]) -> None:
        self._reports = reports
        self.makers = makers

    def __getitem__(self, path: str) -> Report:
        return self._reports[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._reports)

    def __len__(self) -> int:
        return len(self._reports)

    def intervals(self) -> _Arrow:
        """Returns all intervals of all traces: the columns of `Report.intervals`, with ``trace``
        (its path) and ``host`` (the machine's name) before them."""
        pa = _arrow()

        tables = []
        for path, found in self._reports.items():
            table = pa.table(found.intervals)
            words = {"trace": path, "host": found["trace"]["host"]["name"]}
            for place, (name, word) in enumerate(words.items()):
                column = pa.array([word] * table.num_rows, pa.string())
                table = table.add_column(place, name, column)
            tables.append(table)
        return pa.concat_tables(tables)

    def __repr__(self) -> str:
        return f"<undertick.spark.Reports: {len(self)} traces>"


def report(
    spark: SparkSession,
    traces: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    table: str | os.PathLike[str] | None = None,
    *,
    confidence: float = 0.95,
    cull: str = "auto",
    compensate: str = "auto",
) -> Reports:
    """Returns reports of many traces, as `Trace.report` makes them, by the executors of `spark`.

    `traces` is a path, a pattern (``/data/*/run.ut``) or several of either, in a file system that
    all executors see, or a URI that pyarrow opens (``hdfs://``, ``s3://``, ``gs://``). A directory
    that is not a trace stands for the traces in it. The other arguments are those of
    `Trace.report`.

    The executors need this package, of the same build, and pyarrow. Raises `InputError` for a path
    without traces, a trace that is not complete, or executors of another build.
    """
    options = _Options(_given(table), confidence, cull, compensate)
    paths = _find([traces] if isinstance(traces, (str, os.PathLike)) else traces)
    jobs = [_Job.of(path, options) for path in paths]
    earlier: list[list[bytes]] = [[] for _ in jobs]
    makers: dict[str, list[str]] = {path: [] for path in paths}
    while pending := [i for i, job in enumerate(jobs) if job.passes_left > 0]:
        parts = _parts(spark, {i: jobs[i].described(earlier[i]) for i in pending}, options)
        for i in pending:
            for part, maker in parts[i]:
                jobs[i].kernel.absorb(part)
                makers[paths[i]].append(maker)
            jobs[i].kernel.finish_pass()
            jobs[i].passes_left -= 1
            earlier[i] = [part for part, _ in parts[i]]
    return Reports({path: Report(job.kernel.report()) for path, job in zip(paths, jobs)}, makers)


def _arrow(module: str = "pyarrow") -> Any:
    return importlib.import_module(module)


@dataclass(frozen=True)
class _Options:
    table: tuple[str, str] | None
    confidence: float
    cull: str
    compensate: str

    def kernel(self, manifest: str) -> _native.Kernel:
        return _native.Kernel(manifest, self.table, self.confidence, self.cull, self.compensate)


@dataclass
class _Job:
    """A trace, while it is analysed."""

    path: str
    kernel: _native.Kernel
    pieces: list[tuple[list[tuple[int, int]], int, bool]]
    passes_left: int

    @classmethod
    def of(cls, path: str, options: _Options) -> _Job:
        files = _Files(path)
        kernel = options.kernel(files.manifest)
        kernel.push_kernel(files.rows(files.of_kernel()))
        return cls(path, kernel, files.pieces(), kernel.passes())

    def described(self, earlier: list[bytes]) -> dict[str, Any]:
        return {"path": self.path, "pieces": self.pieces, "earlier": earlier}


class _Files:
    """The files of a trace, in any file system."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.system, self.base = _system(path)
        self.manifest = self._text("manifest.json")
        about = json.loads(self.manifest)
        if about.get("state") != "complete":
            raise _native.InputError(f"{path}: not complete; finish it where it was recorded: `undertick record --finish RUN.ut`")
        self.parts: list[dict[str, Any]] = about["parts"]
        if any(str(part["file"]).endswith(".utb") for part in self.parts):
            raise _native.InputError(
                f"{path}: its events are raw blocks, which Spark does not read: turn them into Parquet with "
                "`undertick record --finish RUN.ut`, or record with --parquet"
            )
        self._open: dict[int, Any] = {}

    def _text(self, name: str) -> str:
        try:
            with self.system.open_input_stream(posixpath.join(self.base, name)) as file:
                return bytes(file.read()).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise _native.InputError(f"{self.path}: not a trace: {error}") from None

    def _file(self, part: int) -> Any:
        pq = _arrow("pyarrow.parquet")

        if part not in self._open:
            name = self.parts[part]["file"]
            if "/" in name or name in ("", ".."):
                raise _native.InputError(f"{self.path}: part {name!r} is not a file name")
            file = self.system.open_input_file(posixpath.join(self.base, name))
            self._open[part] = pq.ParquetFile(file)
        return self._open[part]

    def _rings(self, part: int, group: int) -> tuple[int, int] | None:
        found = self._file(part).metadata.row_group(group).column(1).statistics
        return (found.min, found.max) if found is not None and found.has_min_max else None

    def _row_groups(self) -> list[tuple[bool, list[tuple[tuple[int, int] | None, int]]]]:
        described = []
        for part, about in enumerate(self.parts):
            metadata = self._file(part).metadata
            groups = [
                (self._rings(part, group), metadata.row_group(group).num_rows)
                for group in range(metadata.num_row_groups)
            ]
            described.append((bool(about.get("by_ring")), groups))
        return described

    def pieces(self) -> list[tuple[list[tuple[int, int]], int, bool]]:
        """Returns the shards, which share no thread: row groups (part, place), rows, by ring."""
        return _native.pieces(self._row_groups())

    def of_kernel(self) -> list[tuple[int, int]]:
        """Returns the row groups with rows of the kernel."""
        return [
            (part, place)
            for part, (_, groups) in enumerate(self._row_groups())
            for place, (rings, _) in enumerate(groups)
            if rings == (-1, -1)
        ]

    def rows(self, row_groups: Iterable[tuple[int, int]]) -> _Arrow:
        """Returns the rows of these row groups, in order."""
        pa = _arrow()

        def batches() -> Iterator[_Arrow]:
            for part, place in row_groups:
                yield from self._file(part).iter_batches(_ROWS, row_groups=[place])

        schema = self._file(0).schema_arrow if self.parts else pa.schema([])
        return pa.RecordBatchReader.from_batches(schema, batches())


def _system(path: str) -> tuple[_Arrow, str]:
    fs = _arrow("pyarrow.fs")

    if "://" in path:
        # A pattern is not a URI, but the text before it is one.
        words = path.split("/")
        plain = next((i for i, word in enumerate(words) if _is_pattern(word)), len(words))
        system, base = fs.FileSystem.from_uri("/".join(words[:plain]))
        return system, posixpath.join(base, *words[plain:])
    return fs.LocalFileSystem(), os.path.abspath(path)


def _find(wanted: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Returns the traces that the paths and patterns stand for, each once."""
    found: list[str] = []
    for path in (os.fspath(path) for path in wanted):
        here = list(_matching(path))
        if not here:
            raise _native.InputError(f"{path}: no trace there (a directory NAME.ut with its manifest.json)")
        found += [trace for trace in here if trace not in found]
    return found


def _is_pattern(word: str) -> bool:
    return any(mark in word for mark in "*?[")


def _matching(path: str) -> Iterator[str]:
    fs = _arrow("pyarrow.fs")

    system, base = _system(path)
    # The text before the path: a scheme, and the name of a machine, if there is one.
    scheme = path.removesuffix(base) if "://" in path else ""

    def is_trace(base: str) -> bool:
        manifest = posixpath.join(base, "manifest.json")
        return bool(system.get_file_info(manifest).type == fs.FileType.File)

    def below(base: str) -> list[str]:
        entries = system.get_file_info(fs.FileSelector(base, allow_not_found=True))
        return sorted(e.path for e in entries if e.type == fs.FileType.Directory)

    # The search goes level by level, so that a pattern may stand for a directory at any level.
    start = posixpath.sep if base.startswith(posixpath.sep) else ""
    places = [start]
    for word in base.split(posixpath.sep):
        if _is_pattern(word):
            places = [b for at in places for b in below(at or ".") if fnmatch.fnmatch(posixpath.basename(b), word)]
        else:
            places = [posixpath.join(at, word) if word else at for at in places]
    for place in places:
        inside = [place] if is_trace(place) else [b for b in below(place) if is_trace(b)]
        yield from (scheme + trace for trace in inside)


def _parts(
    spark: SparkSession, jobs: dict[int, dict[str, Any]], options: _Options
) -> dict[int, list[tuple[bytes, str]]]:
    """Returns the results of the shards of each trace, in the order of the shards."""
    rows = [(trace, piece) for trace, job in jobs.items() for piece in range(len(job["pieces"]))]
    parts: dict[int, list[tuple[bytes, str]]] = {trace: [] for trace in jobs}
    if not rows:
        return parts
    context = spark.sparkContext
    shared = context.broadcast((jobs, options, _native.Kernel.mark()))

    def analysed(batches: Iterable[_Arrow]) -> Iterator[_Arrow]:
        return _analysed(shared.value, batches)

    # One task for each shard.
    wanted = spark.createDataFrame(context.parallelize(rows, len(rows)), "trace int, piece int")
    try:
        found = wanted.mapInArrow(analysed, _SENT).collect()
    finally:
        shared.unpersist()
    for row in sorted(found, key=lambda row: (row["trace"], row["piece"])):
        parts[row["trace"]].append((bytes(row["part"]), row["maker"]))
    return parts


def _analysed(
    shared: tuple[dict[int, dict[str, Any]], _Options, str], batches: Iterable[_Arrow]
) -> Iterator[_Arrow]:
    """Yields the results of shards, on an executor."""
    pa = _arrow()

    jobs, options, mark = shared
    if mark != _native.Kernel.mark():
        raise _native.InputError(
            f"{socket.gethostname()} has {_native.Kernel.mark()!r}, the driver {mark!r}: "
            "install the same undertick everywhere"
        )
    maker = f"{socket.gethostname()}:{os.getpid()}"
    schema = pa.schema(
        [("trace", pa.int32()), ("piece", pa.int32()), ("part", pa.binary()), ("maker", pa.string())]
    )
    for batch in batches:
        for wanted in batch.to_pylist():
            job = jobs[wanted["trace"]]
            row_groups, _, by_ring = job["pieces"][wanted["piece"]]
            part = _piece(_Files(job["path"]), options, job["earlier"], row_groups, by_ring)
            columns = [[wanted["trace"]], [wanted["piece"]], [part], [maker]]
            arrays = [pa.array(c, field.type) for c, field in zip(columns, schema)]
            yield pa.record_batch(arrays, schema)


def _piece(
    files: _Files,
    options: _Options,
    earlier: list[bytes],
    row_groups: list[tuple[int, int]],
    by_ring: bool,
) -> bytes:
    kernel = options.kernel(files.manifest)
    kernel.push_kernel(files.rows(files.of_kernel()))
    if earlier:
        # The second pass begins with the results of the first.
        for part in earlier:
            kernel.absorb(part)
        kernel.finish_pass()
    kernel.begin_part(by_ring)
    kernel.push(files.rows(row_groups))
    return kernel.finish_part()
