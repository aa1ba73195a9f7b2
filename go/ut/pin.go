//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import _ "unsafe" // for go:linkname

// procPin keeps the goroutine on its thread and its P, and returns the number of the P. Until
// procUnpin nothing preempts it, so it alone uses what belongs to the P. Go keeps both functions for
// packages that link to them (go.dev/issue/67401).
//
//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// nanotime returns CLOCK_MONOTONIC in nanoseconds. Go keeps it for packages that link to it.
//
//go:linkname nanotime runtime.nanotime
func nanotime() int64
