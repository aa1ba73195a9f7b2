//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// writer is the writing side of a ring. It belongs to a P: only a goroutine that is pinned to that P
// uses it.
type writer struct {
	cursor        uint32         // byte of the segment for the next record; 0 or segmentBytes: there is no room
	continuations uint32         // records that are no events
	segment       unsafe.Pointer // the segment that is being filled
	head          unsafe.Pointer // the ring's head; nil: there is no ring
	base          uint64         // position in the stream of the segment's first byte
	task, tasks   uint64         // number of the next task, and of the first that is not ours

	pool      *pool
	number    uint32 // of the segment
	there     uint32 // bytes of the segment whose pages are present
	most      uint32 // segments that the ring may have
	allocated uint32
	spare     uint32 // a segment that got no pages, plus 1; 0: none
	retryIn   uint32 // events until a ring that could not be made is tried again
	nextUse   uint64
	oldest    uint64 // the first use that was not taken back
	gap       uint64 // events dropped since the last gap record
	dropped   uint64
	inUse     atomic.Uint32 // for the race detector: see isRace
	_         [64]byte      // the next writer has its own cache lines
}

// result says what became of a search for room.
type result int

const (
	hasRoom result = iota
	isDropped
	mustWait // the policy is to wait for the collector
)

// enter marks the writer as used, for the race detector; false: another goroutine uses it.
func (s *session) enter(w *writer) bool {
	if isRace && !w.inUse.CompareAndSwap(0, 1) {
		s.overlaps.Add(1)
		return false
	}
	return true
}

func (w *writer) exit() {
	if isRace {
		w.inUse.Store(0)
	}
}

// leave ends the use of a writer and unpins the goroutine.
func (w *writer) leave() {
	w.exit()
	procUnpin()
}

// ready returns the writer of the P, if the next `bytes` have room in the current piece of its
// segment. It is of no use after procUnpin.
func (s *session) ready(p int, bytes uint32) *writer {
	if uint(p) >= maxRings {
		return nil
	}
	w := s.rings[p].Load()
	if w == nil || !s.enter(w) {
		return nil
	}
	// A cursor at the begin of a piece needs a look at the pages.
	if w.cursor&pieceMask-1 >= pieceBytes-bytes {
		w.exit()
		return nil
	}
	return w
}

// acquire returns the writer of a P with room for an event of one or two records, and the goroutine
// pinned to it; nil: the event was dropped and counted, and nothing is pinned. The caller has pinned
// the goroutine to P `p`. If it was unpinned in between, a reading of the clock that the caller took
// before may be older than the last record.
func (s *session) acquire(p int, event, bytes uint32) (w *writer, wasUnpinned bool) {
	for waits := 1; ; waits++ {
		var wasMoved bool
		w, wasMoved = s.own(p)
		wasUnpinned = wasUnpinned || wasMoved
		if w == nil {
			return nil, wasUnpinned
		}
		switch w.findRoomFor(s, event, bytes) {
		case hasRoom:
			return w, wasUnpinned
		case isDropped:
			w.leave()
			return nil, wasUnpinned
		}
		w.leave()
		s.waitForCollector(waits)
		p = procPin()
		wasUnpinned = true
	}
}

func (s *session) waitForCollector(waits int) {
	pause := syscall.Timespec{Nsec: 50_000}
	_ = syscall.Nanosleep(&pause, nil)
	if waits%200 == 0 {
		s.lookForCollector()
	}
}

// own returns the writer of P `p`, to which the goroutine is pinned, or, if it had to unpin it, that of
// another P. The writer has a ring; nil: there can be none, the event was counted, and nothing is
// pinned.
func (s *session) own(p int) (w *writer, wasUnpinned bool) {
	var fresh *writer
	for {
		if uint(p) >= maxRings {
			break
		}
		w = s.rings[p].Load()
		if w == nil && fresh == nil {
			procUnpin() // pinned goroutines do not allocate
			fresh, wasUnpinned = new(writer), true
			p = procPin()
			continue
		}
		if w == nil {
			w, fresh = fresh, nil
			s.rings[p].Store(w)
		}
		if !s.enter(w) {
			break
		}
		if w.head != nil {
			return w, wasUnpinned
		}
		if s.pool.Load() == nil {
			w.leave()
			if s.mapPool() != nil {
				s.loseEvent()
				return nil, true
			}
			p, wasUnpinned = procPin(), true
			continue
		}
		if w.retryIn == 0 && w.makeRing(s) {
			return w, wasUnpinned
		}
		if w.retryIn == 0 {
			w.retryIn = 4096
		}
		w.retryIn--
		w.exit()
		break
	}
	procUnpin()
	s.loseEvent()
	return nil, wasUnpinned
}

// makeRing makes a ring of a free head; false: there is none. The ring belongs to the main thread,
// because that one ends with the process, and goroutines have no thread.
func (w *writer) makeRing(s *session) bool {
	p := s.pool.Load()
	head := p.takeHead()
	if head == nil {
		return false
	}
	most := load32(s.control, controlRingSegments)
	if s.overflow == overflowGrow {
		most = p.segmentCount
	}
	w.pool, w.most = p, min(max(most, 1), maxSegments)
	store32(head, headVersion, formatVersion)
	store32(head, headSegmentBytes, segmentBytes)
	store32(head, headRing, atomic.AddUint32((*uint32)(unsafe.Add(p.file, poolNextRing)), 1)-1)
	store32(head, headMaxSegments, w.most)
	store32(head, headPid, uint32(s.pid))
	store32(head, headTid, uint32(s.pid))
	store32(head, headNamespace, s.namespace)
	store32(head, headLanguage, languageGo)
	store32(head, headSpanReadings, spansWait)
	store32(head, headState, stateOpen)
	store64(head, 0, ringMagic)
	w.head = head
	return true
}

// put stores a record and moves the cursor; publish makes it visible.
func (w *writer) put(ticks, payload uint64, event uint32, tail uint64) {
	*(*[2]uint64)(unsafe.Add(w.segment, w.cursor)) = [2]uint64{ticks, payload&0xffffffff | uint64(event)<<32 | tail<<48}
	w.cursor += recordBytes
}

// putContinuation stores a record that is no event.
func (w *writer) putContinuation(value, what uint64, event uint32) {
	w.put(value, what, event, tailContinue)
	w.continuations++
}

func (w *writer) publish() {
	publish(unsafe.Add(w.head, headPublished), w.base+uint64(w.cursor))
}

// findRoomFor finds room for an event. The two records of a wide one lie in the same piece.
func (w *writer) findRoomFor(s *session, event, bytes uint32) result {
	for {
		switch {
		case w.cursor&pieceMask == 0:
			if found := w.findRoom(s); found != hasRoom {
				return found
			}
			if w.cursor&pieceMask == 0 {
				return hasRoom // at the begin of a piece
			}
		case (w.cursor+bytes-1)&^pieceMask != w.cursor&^pieceMask:
			w.putContinuation(0, continuesAsPad, event)
			w.publish()
		default:
			return hasRoom
		}
	}
}

// findRoom finds room for the next piece, or counts an event as dropped.
func (w *writer) findRoom(s *session) result {
	place := w.cursor % segmentBytes
	found := hasRoom
	if place == 0 {
		found = w.nextSegment(s)
	} else {
		if place >= w.there {
			w.there = w.getPages(place)
		}
		if place >= w.there {
			found = isDropped
		}
	}
	if found != hasRoom {
		if found == isDropped {
			w.gap++
			w.dropped++
			store64(w.head, headDropped, w.dropped)
		}
		return found
	}
	if w.gap > 0 {
		w.putContinuation(w.gap, continuesAsGap, 0)
		w.gap = 0
		w.publish()
	}
	// A sample at each segment, and in a ring's first segment at each piece.
	if place == 0 || w.nextUse <= 1 {
		s.sampleReadCost(w.head)
	}
	return hasRoom
}

// entry returns the offset in the head of the table's entry for a use.
func (w *writer) entry(use uint64) uintptr {
	return headUses + 8*uintptr(use%uint64(w.most))
}

// nextSegment begins the next use, if there is a segment for it.
func (w *writer) nextSegment(s *session) result {
	index := w.nextUse % uint64(w.most)
	if index%512 == 0 && index != 0 && load32(w.head, headHasTable) == 0 &&
		!w.pool.populate(unsafe.Add(w.head, w.entry(w.nextUse)), 8) {
		return isDropped
	}
	if found := w.findSegment(s); found != hasRoom {
		return found
	}
	// The table is shared: whatever is there, records stay in the mapping.
	w.number = min(w.number, w.pool.segmentCount-1)
	store64(w.head, w.entry(w.nextUse), uint64(w.number)+1|uint64(w.continuations)<<32)
	w.segment = w.pool.segment(w.number)
	w.base = w.nextUse * segmentBytes
	w.nextUse++
	w.cursor = 0
	return hasRoom
}

func (w *writer) findSegment(s *session) result {
	tail := load64(w.head, headTail)
	isDrained := w.oldest < w.nextUse && tail >= (w.oldest+1)*segmentBytes
	switch {
	// A segment that was drained just now is still in the collector's cache, so those are used
	// again only when the ring has its first size.
	case isDrained && w.allocated >= load32(s.control, controlRingSegments):
		w.takeBack()
	case w.allocated < w.most && w.takeSegment():
	case isDrained:
		w.takeBack()
	case s.overflow == overflowOverwrite && w.oldest < w.nextUse:
		w.takeBack()
		storeBefore(unsafe.Add(w.head, headOldest), w.oldest)
	case s.overflow == overflowBlock && w.allocated > 0 && load32(s.control, controlAlive) != 0:
		return mustWait
	default:
		return isDropped
	}
	return hasRoom
}

// takeBack uses the oldest segment of the ring again.
func (w *writer) takeBack() {
	w.number = uint32(load64(w.head, w.entry(w.oldest))) - 1
	w.there = segmentBytes
	w.oldest++
}

// takeSegment takes a segment of the pool and gets its first pages; false: there is none. It is noted
// at once as that of the next use, so that its owner is known.
func (w *writer) takeSegment() bool {
	number, isThere := w.spare-1, w.spare != 0
	if !isThere {
		number, isThere = w.pool.take(queueSegmentsReady)
	}
	if !isThere {
		number, isThere = w.pool.take(queueSegments)
	}
	if !isThere {
		return false
	}
	store64(w.head, w.entry(w.nextUse), uint64(number)+1)
	w.number = number
	if w.there = w.getPages(0); w.there == 0 {
		w.spare = number + 1
		return false
	}
	w.spare = 0
	w.allocated++
	return true
}

// getPages gets more pages of the segment before the first store to them. `from` bytes are present;
// it returns how many are then. Where the collector has written the pages, a load maps a group of
// them. All pages of a ring's first segment are got at once.
func (w *writer) getPages(from uint32) uint32 {
	at := unsafe.Add(w.pool.segment(w.number), from)
	if w.pool.isWritten(w.number) {
		load64(at, 0)
		return (from | (segmentBytes/2 - 1)) + 1
	}
	bytes := uint32(pieceBytes)
	if w.allocated == 0 {
		bytes = segmentBytes
	}
	if w.pool.populate(at, uintptr(bytes)) {
		return from + bytes
	}
	return from
}

// sampleReadCost takes a sample of what reading the clock costs here and now: docs/format.md,
// section 3.
func (s *session) sampleReadCost(head unsafe.Pointer) {
	samples, least := load32(head, headSamples), load32(head, headLeast)
	sum, squares := load64(head, headTicks), load64(head, headSquares)
	ticks := s.timeReads()
	if samples == 0 {
		ticks = min(ticks, s.timeReads())
		least = ticks
	}
	if ticks < least/3 { // all earlier samples were interrupted
		samples, sum, squares = 0, 0, 0
	}
	least = min(least, ticks)
	store32(head, headLeast, least)
	if ticks/3 <= least {
		samples, sum, squares = samples+1, sum+uint64(ticks), squares+uint64(ticks)*uint64(ticks)
	}
	store64(head, headTicks, sum)
	store64(head, headSquares, squares)
	store32(head, headSamples, samples)
}

// timeReads returns the ticks from one reading of the clock to the eighth after it. The second round
// counts, when the code is not cold.
func (s *session) timeReads() uint32 {
	var from, to uint64
	for range 2 {
		from, _ = s.now()
		for range readsOfACost {
			to, _ = s.now()
		}
	}
	return uint32(min(to-from, 1<<32-1))
}
