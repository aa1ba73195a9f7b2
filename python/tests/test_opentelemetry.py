"""The span processor: what is exported again is what OpenTelemetry's own exporter had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

pytest.importorskip("opentelemetry.sdk", reason="no opentelemetry-sdk here")

PROGRAM = """
import asyncio, json, threading
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from undertick.opentelemetry import UndertickSpanProcessor

provider, truth = TracerProvider(), InMemorySpanExporter()
provider.add_span_processor(UndertickSpanProcessor())
provider.add_span_processor(SimpleSpanProcessor(truth))
tracer = provider.get_tracer("shop")
for _ in range(200):
    with tracer.start_as_current_span("order"):
        for _ in range(2):
            with tracer.start_as_current_span("part"):
                pass

async def task(n):
    with tracer.start_as_current_span("task"):
        await asyncio.sleep(0.001 * (n % 7))

async def tasks():
    await asyncio.gather(*(task(n) for n in range(30)))

asyncio.run(tasks())
with tracer.start_as_current_span("all moved"):
    for _ in range(20):
        moved = tracer.start_span("moved")
        thread = threading.Thread(target=moved.end)
        thread.start()
        thread.join()
spans = [
    [
        span.name,
        format(span.context.trace_id, "032x"),
        format(span.context.span_id, "016x"),
        format(span.parent.span_id, "016x") if span.parent else "",
    ]
    for span in truth.get_finished_spans()
]
json.dump(spans, open(TRUTH, "w"))
"""


def test_spans_and_identifiers(recorded: Callable[..., str], tmp_path: Path) -> None:
    truth, out = tmp_path / "truth.json", tmp_path / "out.jsonl"
    trace = recorded(f"TRUTH = {str(truth)!r}\n" + PROGRAM)
    command = [sys.executable, "-m", "undertick", "export", trace, "--to", "otlp", str(out)]
    subprocess.run(command, check=True)
    found = [
        (span["name"], span["traceId"], span["spanId"], span["parentSpanId"])
        for line in out.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    expected = [tuple(span) for span in json.loads(truth.read_text())]
    names = [name for name, *_ in expected]
    counts = {name: names.count(name) for name in set(names)}
    assert counts == {"order": 200, "part": 400, "task": 30, "moved": 20, "all moved": 1}
    assert sorted(found) == sorted(expected)


def test_without_a_recorder_it_does_nothing() -> None:
    from opentelemetry.sdk.trace import TracerProvider

    from undertick.opentelemetry import UndertickSpanProcessor

    provider, processor = TracerProvider(), UndertickSpanProcessor()
    provider.add_span_processor(processor)
    with provider.get_tracer("shop").start_as_current_span("order"):
        pass
    assert processor.force_flush() and not processor._thread.open
    provider.shutdown()
