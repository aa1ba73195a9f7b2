//go:build linux && (amd64 || arm64)

package ut

import (
	"math"
	"slices"
	"testing"
	"time"
)

var sink float64

// Each span of a chain of square roots contains them: one takes at least 9 cycles on any CPU, of at
// most 6.5 GHz, and a busy machine makes it longer. A reading that waits for nothing passes only few
// instructions.
func TestSpansHoldWorkThatTakesLong(t *testing.T) {
	const chain, spans = 30, 2000
	s := simulate(t, settings{})
	s.join()
	name := Name("roots")
	roots := func(x float64) {
		for range chain {
			x = math.Sqrt(x)
		}
		sink += x
	}
	ticks, from := counter(), time.Now()
	for n := range spans {
		x := float64(n) + 1.3
		span := name.Begin()
		roots(x)
		span.End()
	}
	time.Sleep(20 * time.Millisecond)
	nsPerTick := float64(time.Since(from).Nanoseconds()) / float64(counter()-ticks)
	var durations []uint64
	begun := map[uint64]uint64{}
	for _, r := range s.drain() {
		if from, hasBegun := begun[r.payload]; hasBegun {
			durations = append(durations, r.ticks-from)
		}
		begun[r.payload] = r.ticks
	}
	if len(durations) != spans {
		t.Fatalf("%d spans", len(durations))
	}
	slices.Sort(durations)
	typical := float64(durations[spans/2]) * nsPerTick
	if typical == 0 { // the clock of an emulator has steps that are longer than the spans
		var sum uint64
		for _, duration := range durations {
			sum += duration
		}
		typical = float64(sum) / spans * nsPerTick
	}
	if least := chain * 9 / 6.5; typical < least {
		t.Errorf("spans of %v ns, not of %v", typical, least)
	}
}
