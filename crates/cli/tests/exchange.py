"""Other tools' own readers beside what Undertick imported or exported.

Usage: exchange.py slices EXPORT.pftrace EXPORT.csv   the export to Perfetto has the same
                                                      slices, nesting and durations
       exchange.py perfetto FOREIGN.pftrace IMPORTED.csv   counts of a trace imported
       exchange.py chrome FOREIGN.json IMPORTED.csv        likewise
       exchange.py hdr EXPORT.hlog REPORT.json        counts of the histograms
       exchange.py viztracer OUT.json                 makes a trace with VizTracer
"""

import collections
import csv
import json
import sys


def packets(path):
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    return trace.packet


def rows(path):
    with open(path, newline="") as file:
        yield from csv.DictReader(file)


def slices(export, table):
    """(thread, name, start, duration, depth), by Perfetto's definitions and from the CSV."""
    names, threads, open_slices, found = {}, {}, collections.defaultdict(list), []
    for packet in packets(export):
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        descriptor = packet.track_descriptor
        if descriptor.HasField("thread"):
            threads[descriptor.uuid] = descriptor.thread.tid
        event = packet.track_event
        if not packet.HasField("track_event") or event.track_uuid not in threads:
            continue
        stack = open_slices[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append((names[event.name_iid], packet.timestamp))
        elif event.type == event.TYPE_SLICE_END:
            name, start = stack.pop()
            tid = threads[event.track_uuid]
            found.append((tid, name, start, packet.timestamp - start, len(stack)))
    expected, stacks = [], collections.defaultdict(list)
    for row in rows(table):
        stack, now = stacks[row["ring"]], int(row["unix_ns"])
        if row["kind"] in ("end", "end_ordered"):
            name, start = stack.pop()
            assert name == row["name"], row
            expected.append((int(row["tid"]), name, start, now - start, len(stack)))
        elif row["kind"] in ("begin", "begin_ordered"):
            stack.append((row["name"], now))
    assert expected and found == expected, (len(found), len(expected))
    arrows = of_arrows(export, table)
    values = of_counters(export, table)
    print(f"{len(found)} slices, {arrows} arrows and {values} values, the same to the nanosecond")


def of_arrows(export, table):
    """Arrows go from event 4 to event 5 with the same payload: their times."""
    ends = collections.defaultdict(list)
    for packet in packets(export):
        for arrow in packet.track_event.flow_ids:
            ends[arrow].append(packet.timestamp)
    # Rows of the kernel have numbers of their own, such as that of a soft interrupt.
    points = [row for row in rows(table) if row["kind"] == "instant"]
    sent = {row["payload"]: int(row["unix_ns"]) for row in points if row["event"] == "4"}
    got = {row["payload"]: int(row["unix_ns"]) for row in points if row["event"] == "5"}
    expected = sorted([sent[key], got[key]] for key in sent)
    assert expected and sorted(ends.values()) == expected, (len(ends), len(expected))
    return len(expected)


def of_counters(export, table):
    """Payloads of points as values, from the first on that is not 0; keys of arrows are none."""
    tracks, found = {}, collections.defaultdict(list)
    for packet in packets(export):
        descriptor, event = packet.track_descriptor, packet.track_event
        if descriptor.HasField("counter"):
            tracks[descriptor.uuid] = descriptor.name
        if event.type == event.TYPE_COUNTER:
            found[tracks[event.track_uuid]].append((packet.timestamp, event.counter_value))
    expected = collections.defaultdict(list)
    for row in rows(table):
        value = int(row["payload"])
        name = row["name"]
        if row["kind"] == "instant" and row["event"] not in ("4", "5") and (value or expected[name]):
            expected[name].append((int(row["unix_ns"]), value))
    assert len(expected) == 2 and found == expected, (found.keys(), expected.keys())
    return sum(len(values) for values in expected.values())


def kinds(table):
    """Rows by kind, without the arrows that the import made of flows."""
    of_flows = {"flow start", "flow step", "flow end"}
    found = (row["kind"] for row in rows(table) if row["name"] not in of_flows)
    return collections.Counter(found)


def perfetto(foreign, table):
    events = [p.track_event for p in packets(foreign) if p.HasField("track_event")]
    types = collections.Counter(event.type for event in events)
    marks = sum(event.type == 0 and event.legacy_event.phase == ord("R") for event in events)
    found = kinds(table)
    assert found["begin"] == types[1] > 0, (found, types)
    # Ends of what began before the recording did have no begin.
    assert types[2] - found["end"] in range(0, 1 + types[2] // 100), (found, types)
    assert found["instant"] == types[3] + types[4] + marks, (found, types, marks)
    print(f"{sum(types.values())} track events: {dict(found)}, as Perfetto's own count")


def chrome(foreign, table):
    with open(foreign) as file:
        events = json.load(file)["traceEvents"]
    counters = sum(len(e["args"]) for e in events if e["ph"] == "C")
    phases = collections.Counter(event["ph"] for event in events)
    found = kinds(table)
    assert found["begin"] == found["end"] == phases["X"] > 0, (found, phases)
    assert found["instant"] == phases["i"] + counters, (found, phases)
    print(f"{len(events)} objects: {dict(found)}, as Python's json counts them")


def hdr(log, report):
    from hdrh.histogram import HdrHistogram
    from hdrh.log import HistogramLogReader

    with open(report) as file:
        intervals = json.load(file)["intervals"]
    expected = {i["name"].replace(" ", "_"): i for i in intervals if i["count"]}
    reader = HistogramLogReader(log, HdrHistogram(1, 3600 * 10**9, 3))
    found = {}
    while histogram := reader.get_next_interval_histogram():
        found[histogram.get_tag()] = histogram
    assert found.keys() == expected.keys(), (found.keys(), expected.keys())
    for name, histogram in found.items():
        kept = expected[name]["count"] - expected[name]["culled"]["count"]
        assert histogram.get_total_count() in (expected[name]["count"], kept), name
    print(f"{len(found)} histograms, as many values as the report counts")


def leaf(number):
    return number + 1


def branch(number):
    for _ in range(number):
        leaf(number)


def viztracer(out):
    from viztracer import VizTracer

    with VizTracer(output_file=out, verbose=0) as tracer:
        for number in range(200):
            branch(10)
            tracer.add_instant("point", {"number": number})
            tracer.add_counter("level", {"one": number, "two": 2 * number})


if __name__ == "__main__":
    commands = [slices, perfetto, chrome, hdr, viztracer]
    {command.__name__: command for command in commands}[sys.argv[1]](*sys.argv[2:])
