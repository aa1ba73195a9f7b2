//go:build linux && (loong64 || mips64le || ppc64le || riscv64)

package ut

import (
	"sync/atomic"
	"unsafe"
)

// hasCounter says whether this package can read the CPU's own counter. Where it cannot, a session
// with that clock is not joined, and the functions below are never called for it.
const hasCounter = false

func counter() uint64 { return 0 }

func counterAfter() (ticks uint64, tail uint64) { return 0, tailInstant }

func stampAndPublish(_, head unsafe.Pointer, position uint64) { publish(head, position) }

// publish stores the position at `head` after all earlier stores.
func publish(head unsafe.Pointer, position uint64) {
	atomic.StoreUint64((*uint64)(head), position)
}

// storeBefore stores a value before all later stores.
func storeBefore(at unsafe.Pointer, value uint64) {
	atomic.SwapUint64((*uint64)(at), value)
}
