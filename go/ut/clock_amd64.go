//go:build linux

package ut

import "unsafe"

// hasCounter says whether this package can read the CPU's own counter.
const hasCounter = true

// counter reads the time-stamp counter without waiting for earlier instructions, in ticks.
//
//go:noescape
func counter() uint64

// counterAfter reads the counter when all earlier instructions have been executed, and returns the
// last 16 bits of the record: the CPU of the reading with the flag of all records.
//
//go:noescape
func counterAfter() (ticks uint64, tail uint64)

// stampAndPublish reads the counter when all earlier instructions have been executed, completes the
// record at `record` with reading and CPU, and then publishes the ring up to `position` at `head`.
//
//go:noescape
func stampAndPublish(record, head unsafe.Pointer, position uint64)

// publish stores the position at `head` after all earlier stores.
//
//go:noescape
func publish(head unsafe.Pointer, position uint64)

// storeBefore stores a value before all later stores.
//
//go:noescape
func storeBefore(at unsafe.Pointer, value uint64)
