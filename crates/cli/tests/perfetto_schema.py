"""Parses a Perfetto export with Perfetto's own message definitions.

Usage: perfetto_schema.py FILE SLICES INSTANTS VALUES. Fails if a field is unknown to
the schema, a slice of a thread is not closed, or the counts of threads' slices and
instants and of the values that they carry differ. Tracks of the kernel may begin or end
in the middle of a slice.
"""

import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def main(path, slices, instants, values):
    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    names, depth, threads, of_kernel = {}, {}, set(), 0
    seen = {"begin": 0, "end": 0, "instant": 0, "value": 0}
    for packet in trace.packet:
        assert not len(UnknownFieldSet(packet)), packet
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        if packet.track_descriptor.HasField("thread"):
            threads.add(packet.track_descriptor.uuid)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert not len(UnknownFieldSet(event)), event
        track = event.track_uuid
        if event.type == TrackEvent.TYPE_COUNTER:
            seen["value"] += 1
            continue
        if track not in threads:
            of_kernel += 1
            continue
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.name_iid in names, event
            depth[track] = depth.get(track, 0) + 1
            seen["begin"] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            depth[track] -= 1
            assert depth[track] >= 0, packet
            seen["end"] += 1
        else:
            assert event.type == TrackEvent.TYPE_INSTANT, event
            seen["instant"] += 1
    assert not any(depth.values()), depth
    expected = {"begin": slices, "end": slices, "instant": instants, "value": values}
    assert seen == expected, (seen, expected)
    print(f"{len(trace.packet)} packets, {seen}, {of_kernel} of the kernel, {len(names)} names: as the schema says")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
