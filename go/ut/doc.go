// Package ut records what a Go program does, for Undertick: spans and events at about the price of
// reading the clock. It is pure Go with a few lines of assembly, needs no cgo, and has no
// dependencies.
//
//	var parse = ut.Name("parse")
//
//	func handle(text string) {
//		defer parse.Begin().End()
//		...
//	}
//
// Build the program as usual and start it under the recorder:
//
//	$ undertick record -o my.ut -- ./program
//
// Without a recorder a span costs one load and a branch. The package then writes nothing, anywhere.
//
// # Spans and goroutines
//
// A goroutine may begin a span on one thread and end it on another. So a span is recorded as a task
// with a number: the instant "NAME task new" at its begin and "NAME task done" at its end, both with
// the number as payload (docs/format.md, section 14). Readings at both ends wait until all earlier
// instructions have been executed. Any goroutine may end a span.
//
// # Where records go
//
// Each P of the Go scheduler (there are GOMAXPROCS of them) has its own ring in the session's shared
// memory. While a record is written, the goroutine is pinned to its P, as sync.Pool does it. So
// nothing is locked and nothing allocated, and records that were published survive a kill.
//
// # Limits
//
// A program is recorded when it was started by "undertick record". Attaching to a running program is
// not supported. Linux on 64-bit little-endian processors only; elsewhere the calls do nothing. The
// counter of the CPU is read on amd64 and arm64. Other processors record if the session's clock is
// a monotonic one.
package ut
