"""Parses a Perfetto export with Perfetto's own message definitions.

Usage: perfetto_schema.py FILE SLICES INSTANTS. Fails if a field is unknown to
the schema, a slice is not closed, or the counts differ.
"""

import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def main(path, slices, instants):
    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    names, depth, seen = {}, {}, {"begin": 0, "end": 0, "instant": 0}
    for packet in trace.packet:
        assert not len(UnknownFieldSet(packet)), packet
        for entry in packet.interned_data.event_names:
            names[entry.iid] = entry.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert not len(UnknownFieldSet(event)), event
        track = event.track_uuid
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
    expected = {"begin": slices, "end": slices, "instant": instants}
    assert seen == expected, (seen, expected)
    print(f"{len(trace.packet)} packets, {seen}, {len(names)} names: as the schema says")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
