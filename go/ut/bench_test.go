//go:build linux && (amd64 || arm64)

package ut

import (
	"slices"
	"testing"
)

// BenchmarkFloor is what a span can cost at least: two waiting readings of the counter and two stores
// of 16 bytes. `go test -bench .` prints it beside the others.
func BenchmarkFloor(b *testing.B) {
	var ring [1024][2]uint64
	i := 0
	for b.Loop() {
		ticks, tail := counterAfter()
		ring[i&1023] = [2]uint64{ticks, tail}
		ticks, tail = counterAfter()
		ring[(i+1)&1023] = [2]uint64{ticks, tail}
		i += 2
	}
}

// BenchmarkSpanInFloors reports the cost of a span as a multiple of the floor: the median over pairs of
// blocks that take turns, so that what else the machine does concerns both.
func BenchmarkSpanInFloors(b *testing.B) {
	simulate(b, settings{overflow: 2, ringSegments: 4, isWritten: true}).join()
	const block = 200
	name := Name("span")
	var ring [block][4]uint64
	var ratios []float64
	for b.Loop() {
		start, _ := counterAfter()
		for i := range ring {
			ring[i][0], ring[i][1] = counterAfter()
			ring[i][2], ring[i][3] = counterAfter()
		}
		middle, _ := counterAfter()
		for range block {
			name.Begin().End()
		}
		end, _ := counterAfter()
		ratios = append(ratios, float64(end-middle)/float64(middle-start))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "floors/span")
}

func BenchmarkSpan(b *testing.B) {
	simulate(b, settings{overflow: 2, ringSegments: 4, isWritten: true}).join()
	name := Name("span")
	for b.Loop() {
		name.Begin().End()
	}
}

func BenchmarkSpanDeferred(b *testing.B) {
	simulate(b, settings{overflow: 2, ringSegments: 4, isWritten: true}).join()
	name := Name("span")
	for b.Loop() {
		func() {
			defer name.Begin().End()
		}()
	}
}

func BenchmarkSpanByText(b *testing.B) {
	simulate(b, settings{overflow: 2, ringSegments: 4, isWritten: true}).join()
	for b.Loop() {
		Begin("span").End()
	}
}

func BenchmarkSpanParallel(b *testing.B) {
	simulate(b, settings{overflow: 2, ringSegments: 4, isWritten: true}).join()
	name := Name("span")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			name.Begin().End()
		}
	})
}

func BenchmarkEvent(b *testing.B) {
	simulate(b, settings{overflow: 2, ringSegments: 4, isWritten: true}).join()
	name := Name("event")
	for b.Loop() {
		name.Event(7)
	}
}

func BenchmarkSpanWithoutRecorder(b *testing.B) {
	name := Name("span")
	for b.Loop() {
		name.Begin().End()
	}
}
