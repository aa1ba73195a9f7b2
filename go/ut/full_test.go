//go:build linux && (amd64 || arm64)

package ut

import (
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// What happens when there is no room: waiting for the collector, and memory that cannot be had.

// recorderLock takes the lock that a recorder holds for which writers wait.
func recorderLock(t *testing.T, s *simulated) {
	t.Helper()
	control, err := os.Open(s.file("control"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { control.Close() })
	if err := syscall.Flock(int(control.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
}

// drainedWhile returns all events that are recorded while `work` runs.
func (s *simulated) drainedWhile(work func()) (all []record) {
	done := make(chan struct{})
	go func() {
		work()
		close(done)
	}()
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		default:
			runtime.Gosched()
		}
		all = append(all, s.drain()...)
	}
	return all
}

func TestBlockingWaitsForTheCollector(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{overflow: 3, ringSegments: 2})
	s.join()
	recorderLock(t, s)
	event := Name("event")
	const n = 9*recordsOfASegment + 3
	all := s.drainedWhile(func() {
		for i := range uint64(n) {
			event.Event(i)
		}
	})
	inOrder(t, all, 0, n)
	if dropped := le64(s.pool, s.headAt(s.rings()[0])+72); dropped != 0 {
		t.Errorf("%d dropped", dropped)
	}
}

// An end that waits reads the clock again: other goroutines may have recorded in the meantime, and a
// ring does not go back in time.
func TestSpansThatWaitForTheCollector(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{overflow: 3, ringSegments: 1})
	s.join()
	recorderLock(t, s)
	name := Name("span")
	const goroutines, each = 8, 20_000
	all := s.drainedWhile(func() {
		var wait sync.WaitGroup
		for range goroutines {
			wait.Go(func() {
				for range each {
					span := name.Begin()
					runtime.Gosched()
					span.End()
				}
			})
		}
		wait.Wait()
	})
	count := map[uint64]int{}
	for _, r := range all {
		count[r.payload]++
	}
	for task, n := range count {
		if n != 2 {
			t.Fatalf("task %#x has %d ends", task, n)
		}
	}
	if len(count) != goroutines*each {
		t.Errorf("%d spans", len(count))
	}
}

// Nobody holds a lock on the control page, so the recorder was killed: the program must go on.
func TestBlockingEndsWhenTheRecorderIsGone(t *testing.T) {
	pinned(t)
	s := simulate(t, settings{overflow: 3, ringSegments: 1})
	s.join()
	event := Name("event")
	for i := range uint64(recordsOfASegment + 10) {
		event.Event(i)
	}
	if alive := le32(s.control, 36); alive != 0 {
		t.Error("the collector still counts as alive")
	}
	if dropped := le64(s.pool, s.headAt(s.rings()[0])+72); dropped != 10 {
		t.Errorf("%d dropped, not 10", dropped)
	}
	inOrder(t, s.drain(), 0, recordsOfASegment)
}

// Where the file system has no pages, events are dropped and counted, and the program is not killed by
// SIGBUS. When there is room again, it goes on in the segment that it had taken.
func TestAFullFileSystem(t *testing.T) {
	pinned(t)
	parent := t.TempDir()
	if err := syscall.Mount("tmpfs", parent, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("skipped: a small file system cannot be mounted (not root?): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(parent, syscall.MNT_DETACH) })
	s := simulate(t, settings{parent: parent})
	s.join()
	event := Name("event")
	record := func(n uint64) []record {
		for i := range n {
			event.Event(i)
		}
		// The tail stays, so that the ring does not use drained segments again.
		head := s.rings()[0]
		bytes := s.raw(head)
		s.taken[head] += len(bytes)
		return s.parse(head, bytes)
	}
	fill := func() (unfill func()) {
		filler, err := os.Create(filepath.Join(parent, "filler"))
		for err == nil {
			_, err = filler.Write(make([]byte, 4096))
		}
		filler.Close()
		return func() { os.Remove(filler.Name()) }
	}
	dropped := func() uint64 { return le64(s.pool, s.headAt(s.rings()[0])+72) }
	taken := func() uint64 { return le64(s.pool, 128+3*128) }

	// A ring's first segment gets all of its pages at once.
	inOrder(t, record(1), 0, 1)
	unfill := fill()
	inOrder(t, record(recordsOfASegment-1), 0, recordsOfASegment-1)
	if n := len(record(100)); n != 0 || dropped() != 100 || taken() != 2 {
		t.Fatalf("%d events, %d dropped, %d segments taken", n, dropped(), taken())
	}
	unfill()
	events := record(1)
	if len(events) != 1 || events[0].lost != 100 || taken() != 2 {
		t.Fatalf("after the gap: %+v, %d segments taken", events, taken())
	}
	// The gap and the event are in a piece of 1024 records; the next piece cannot be had.
	unfill = fill()
	inOrder(t, record(2000), 0, 1022)
	unfill()
	events = record(1)
	if len(events) != 1 || events[0].lost != 2000-1022 {
		t.Fatalf("after the second gap: %+v", events)
	}
}

// Kernels before 5.14 have no advice to populate pages.
func TestPagesOfOlderKernels(t *testing.T) {
	s := simulate(t, settings{})
	joined := s.join()
	if err := joined.mapPool(); err != nil {
		t.Fatal(err)
	}
	p := joined.pool.Load()
	allocated := func() int64 {
		var status syscall.Stat_t
		if err := syscall.Stat(s.file("pool"), &status); err != nil {
			t.Fatal(err)
		}
		return status.Blocks * 512
	}
	before := allocated()
	if !p.allocate(p.segment(3), pieceBytes) {
		t.Fatal("no pages")
	}
	if more := allocated() - before; more < pieceBytes {
		t.Errorf("%d bytes are allocated, not %d", more, pieceBytes)
	}
	if p.allocate(p.segment(3), 1<<60) {
		t.Error("more than there can be is allocated")
	}
	p.rawPath, _ = syscall.BytePtrFromString(s.file("none"))
	if p.allocate(p.segment(4), pieceBytes) {
		t.Error("pages of a file that is not there")
	}
}
