//go:build linux && (amd64 || arm64)

package ut

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

const recordsOfASegment = 131072 / 16

// pinned keeps a test on one P, so that it has one ring.
func pinned(t *testing.T) {
	t.Helper()
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// inOrder fails unless the events have the payloads from, from+1, ...
func inOrder(t *testing.T, events []record, from, n uint64) {
	t.Helper()
	if uint64(len(events)) != n {
		t.Fatalf("%d events, not %d", len(events), n)
	}
	for i, r := range events {
		if r.payload != from+uint64(i) {
			t.Fatalf("event %d has payload %d, not %d", i, r.payload, from+uint64(i))
		}
	}
}

func TestARingGrowsOverManySegments(t *testing.T) {
	for _, isWritten := range []bool{false, true} {
		pinned(t)
		s := simulate(t, settings{isWritten: isWritten})
		s.join()
		event := Name("event")
		const n = 40*recordsOfASegment + 123
		for i := range uint64(n) {
			event.Event(i)
		}
		at := s.headAt(s.rings()[0])
		seen := map[uint32]bool{}
		for use := range 41 {
			entry := le64(s.pool, at+4096+8*use)
			if seen[uint32(entry)] || uint32(entry) == 0 || entry>>32 != 0 {
				t.Errorf("use %d is %#x", use, entry)
			}
			seen[uint32(entry)] = true
		}
		inOrder(t, s.drain(), 0, n)
		// One sample each of 40 more segments, one for each of 8 pieces of the first one; those that
		// something interrupted do not count.
		if samples := le32(s.pool, at+96); samples < 10 || samples > 48 {
			t.Errorf("%d samples of the read cost", samples)
		}
	}
}

func TestAWideEventLiesInOnePiece(t *testing.T) {
	for _, before := range []int{1022, 1023, 1024, 8190, 8191, 8192} {
		pinned(t)
		s := simulate(t, settings{})
		s.join()
		event, wide := Name("event"), Name("wide")
		for range before {
			event.Event(5)
		}
		wide.Event(1<<63 | 9)
		span := wide.Begin()
		span.End()
		event.Event(6)
		bytes := s.raw(s.rings()[0])
		for i := 0; i < len(bytes); i += 16 {
			second := binary.LittleEndian.Uint64(bytes[i+8:])
			if second>>59&7 == 7 && uint32(second) == 1 && i%16384 == 0 {
				t.Errorf("after %d records a wide event is divided at byte %d", before, i)
			}
		}
		pads := len(bytes)/16 - before - 7
		if want := map[bool]int{true: 1, false: 0}[before == 1023 || before == 8191]; pads != want {
			t.Errorf("after %d records there are %d pads, not %d", before, pads, want)
		}
		events := s.drain()
		if n := len(events); n != before+4 || events[before].payload != 1<<63|9 {
			t.Fatalf("%d events after %d", n, before)
		}
		if events[before+1].payload != events[before+2].payload || events[before+1].payload != span.number {
			t.Errorf("the ends of the span are of tasks %#x and %#x", events[before+1].payload, events[before+2].payload)
		}
		// The second segment's entry tells how many of the records before it are no events.
		second := le64(s.pool, s.headAt(s.rings()[0])+4096+8)
		var continuations uint64
		for i := 0; i < min(len(bytes), 131072); i += 16 {
			if binary.LittleEndian.Uint64(bytes[i+8:])>>59&7 == 7 {
				continuations++
			}
		}
		if len(bytes) > 131072 && second>>32 != continuations {
			t.Errorf("after %d records the entry counts %d continuations, not %d", before, second>>32, continuations)
		}
	}
}

func TestDroppedEventsAreCounted(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{overflow: 1, ringSegments: 2})
	s.join()
	event := Name("event")
	const room, lost = 2 * recordsOfASegment, 1000
	for i := range uint64(room + lost) {
		event.Event(i)
	}
	span := Begin("span")
	span.End()
	if span != (Span{}) {
		t.Error("a span has begun whose begin was dropped")
	}
	at := s.headAt(s.rings()[0])
	if dropped := le64(s.pool, at+72); dropped != lost+1 {
		t.Errorf("%d are counted as dropped, not %d", dropped, lost+1)
	}
	inOrder(t, s.drain(), 0, room)
	event.Event(7)
	after := s.drain()
	if len(after) != 1 || after[0].payload != 7 || after[0].lost != lost+1 {
		t.Errorf("after the gap: %+v", after)
	}
}

func TestAGrowingRingDropsAtTheBudget(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{segments: 3})
	s.join()
	event := Name("event")
	for i := range uint64(3*recordsOfASegment + 5) {
		event.Event(i)
	}
	if dropped := le64(s.pool, s.headAt(s.rings()[0])+72); dropped != 5 {
		t.Errorf("%d dropped, not 5", dropped)
	}
	inOrder(t, s.drain(), 0, 3*recordsOfASegment)
	// Drained segments are used again.
	for i := range uint64(2 * recordsOfASegment) {
		event.Event(i)
	}
	if n := len(s.drain()); n != 2*recordsOfASegment-1 && n != 2*recordsOfASegment {
		t.Errorf("%d events in drained segments", n)
	}
}

func TestOverwritingKeepsTheNewest(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{overflow: 2, ringSegments: 3})
	s.join()
	event := Name("event")
	const n = 10*recordsOfASegment + 77
	for i := range uint64(n) {
		event.Event(i)
	}
	at := s.headAt(s.rings()[0])
	oldest := le64(s.pool, at+80)
	if oldest != 8 {
		t.Errorf("the oldest whole use is %d, not 8: uses 8, 9 and 10 are there", oldest)
	}
	if dropped := le64(s.pool, at+72); dropped != 0 {
		t.Errorf("%d dropped", dropped)
	}
	s.taken[s.rings()[0]] = int(oldest) * 131072
	inOrder(t, s.drain(), oldest*recordsOfASegment, n-oldest*recordsOfASegment)
}

func TestWithoutAHeadEventsAreLostAndCounted(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{heads: -1})
	s.join()
	event := Name("event")
	for i := range uint64(100) {
		event.Event(i)
	}
	if lost := le64(s.control, 72); lost != 100 {
		t.Errorf("%d lost, not 100", lost)
	}
	// A head becomes free.
	set64(s.pool, 128+128+64, 1)
	for i := range uint64(5000) {
		event.Event(i)
	}
	lost := le64(s.control, 72)
	events := s.drain()
	if uint64(len(events))+lost != 5100 || len(events) == 0 {
		t.Errorf("%d events and %d lost, of 5100", len(events), lost)
	}
}

// Whatever other processes write into the shared memory, the program goes on.
func TestForeignValuesInThePool(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{segments: 4})
	set32(s.pool, 4096+8*s.heads+4*s.segments, 4) // the first segment is none
	s.join()
	event := Name("event")
	for i := range uint64(recordsOfASegment) {
		event.Event(i)
	}
	head := s.rings()[0]
	set64(s.pool, s.headAt(head)+4096, 0xffffffffffffffff)
	set64(s.pool, s.headAt(head)+128, 1<<60) // drained far beyond
	for i := range uint64(20 * recordsOfASegment) {
		event.Event(i)
	}
	if head := le64(s.pool, s.headAt(head)+64); head%16 != 0 || head == 0 {
		t.Errorf("a head of %d", head)
	}
}

// A number of a head that is none, from another process: nothing is written there.
func TestAForeignNumberOfAHead(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{isWritten: true})
	set32(s.pool, 4096, uint32(s.heads))
	set64(s.pool, 128+64, 1)
	s.join()
	Name("event").Event(1)
	beyond := s.pool[s.headAt(s.heads):][:77824]
	if lost := le64(s.control, 72); lost != 1 || !bytes.Equal(beyond, make([]byte, len(beyond))) {
		t.Errorf("%d lost, and %q after the heads", lost, beyond[:8])
	}
}

func TestOneRingForEachP(t *testing.T) {
	before := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	s := simulate(t, settings{segments: 512})
	s.join()
	event := Name("event")
	const goroutines, each = 64, 2000
	var wait sync.WaitGroup
	for g := range uint64(goroutines) {
		wait.Go(func() {
			for i := range uint64(each) {
				event.Event(g<<32 | i)
				if i%97 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wait.Wait()
	if rings := len(s.rings()); rings > 4 {
		t.Errorf("%d rings for 4 Ps", rings)
	}
	seen := map[uint64]bool{}
	for _, r := range s.drain() {
		if seen[r.payload] || r.payload>>32 >= goroutines || r.payload&0xffffffff >= each {
			t.Fatalf("payload %#x is there twice, or never was", r.payload)
		}
		seen[r.payload] = true
	}
	if len(seen) != goroutines*each {
		t.Errorf("%d events, not %d", len(seen), goroutines*each)
	}
}

// Goroutines are preempted at any instruction, move between threads and Ps, the stacks are moved and
// the number of Ps changes: each span is there once and whole.
func TestSpansUnderPreemption(t *testing.T) {
	before := runtime.GOMAXPROCS(4)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	s := simulate(t, settings{segments: 2048, heads: 64})
	s.join()
	stop := make(chan struct{})
	var disturbers sync.WaitGroup
	disturbers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				runtime.GOMAXPROCS(2 + i%5)
			}
		}
	})
	const goroutines, each = 32, 1500
	deadline := time.Now().Add(10 * time.Second)
	var wait sync.WaitGroup
	done := make([]int, goroutines)
	for g := range goroutines {
		wait.Go(func() {
			if g%8 == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			name := Name(fmt.Sprint("span ", g%4))
			for i := 0; i < each && time.Now().Before(deadline); i++ {
				span := name.Begin()
				if i%3 == 0 {
					runtime.Gosched()
				}
				ended := make(chan struct{})
				if i%50 == 0 { // another goroutine ends it
					go func() { span.End(); close(ended) }()
					<-ended
				} else {
					span.End()
				}
				done[g]++
			}
		})
	}
	wait.Wait()
	close(stop)
	disturbers.Wait()
	total := 0
	for _, n := range done {
		total += n
	}
	text := map[int]string{}
	for _, name := range s.names() {
		text[name.event] = name.text
	}
	begun, ended := map[uint64]record{}, map[uint64]bool{}
	var ends []record
	for _, r := range s.drain() {
		switch text[r.event][len("span 0"):] {
		case " task new":
			if _, isTwice := begun[r.payload]; isTwice {
				t.Fatalf("task %#x began twice", r.payload)
			}
			begun[r.payload] = r
		case " task done":
			ends = append(ends, r)
		}
	}
	for _, r := range ends {
		begin, hasBegun := begun[r.payload]
		if !hasBegun || ended[r.payload] || text[begin.event][:6] != text[r.event][:6] || begin.ticks > r.ticks {
			t.Fatalf("the end %+v does not fit the begin %+v", r, begin)
		}
		ended[r.payload] = true
	}
	if len(begun) != total || len(ended) != total {
		t.Errorf("%d begins and %d ends of %d spans", len(begun), len(ended), total)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	s := simulate(t, settings{overflow: 2, ringSegments: 2})
	s.join()
	name := Name("span")
	for what, call := range map[string]func(){
		"a span":               func() { name.Begin().End() },
		"a deferred span":      func() { defer name.Begin().End() },
		"an event":             func() { name.Event(1 << 40) },
		"a span by its text":   func() { Begin("span").End() },
		"an event by its text": func() { Event("span", 3) },
	} {
		if n := testing.AllocsPerRun(20_000, call); n != 0 {
			t.Errorf("%s allocates %v times", what, n)
		}
	}
}

func TestNumbersOfTasks(t *testing.T) {
	s := simulate(t, settings{segments: 512})
	joined := s.join()
	joined.tasks.Store(1<<tasksBits - 1500) // they wrap soon
	name := Name("span")
	for range 5000 {
		name.Begin().End()
	}
	count := map[uint64]int{}
	for _, r := range s.drain() {
		count[r.payload]++
		if r.payload == 0 || r.payload>>53 != 0 {
			t.Fatalf("task %#x", r.payload)
		}
	}
	for task, n := range count {
		if n != 2 {
			t.Fatalf("task %#x has %d ends", task, n)
		}
	}
	if len(count) != 5000 {
		t.Errorf("%d tasks, not 5000", len(count))
	}
}
