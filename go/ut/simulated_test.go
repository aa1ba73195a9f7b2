//go:build linux && (amd64 || arm64)

package ut

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// A session made by the test, with a collector that is a function of it. Offsets and sizes are
// written again from docs/format.md, so that a wrong constant of the package shows.

type simulated struct {
	t        testing.TB
	dir      string
	control  []byte
	pool     []byte
	heads    int
	segments int
	taken    map[int]int // bytes drained, by head
	joined   *session
}

// settings of a simulated session; zeros: growing, 8 heads, 64 segments, segments without pages.
type settings struct {
	overflow, ringSegments, segments uint32
	heads                            int // -1: none
	clock                            uint32
	isWritten                        bool // the collector has written the pages of heads and segments
	parent                           string
}

func le32(b []byte, at int) uint32        { return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[at]))) }
func le64(b []byte, at int) uint64        { return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[at]))) }
func set32(b []byte, at int, v uint32)    { atomic.StoreUint32((*uint32)(unsafe.Pointer(&b[at])), v) }
func set64(b []byte, at int, v uint64)    { atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[at])), v) }
func up(n int) int                        { return (n + 131071) / 131072 * 131072 }
func (s *simulated) headAt(i int) int     { return s.headsAt() + i*77824 }
func (s *simulated) headsAt() int         { return up(4096 + 8*(s.heads+s.segments) + s.segments) }
func (s *simulated) segmentsAt() int      { return up(s.headsAt() + s.heads*77824) }
func (s *simulated) file(n string) string { return filepath.Join(s.dir, n) }

func mapped(t testing.TB, path string, bytes int) []byte {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(int64(bytes)); err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(memory) })
	return memory
}

// simulate makes a session directory, not joined yet.
func simulate(t testing.TB, with settings) *simulated {
	t.Helper()
	parent := with.parent
	if parent == "" {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, "undertick-go-test-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &simulated{t: t, dir: dir, heads: 8, segments: 64, taken: map[int]int{}}
	if with.heads != 0 {
		s.heads = max(with.heads, 1)
	}
	if with.segments != 0 {
		s.segments = int(with.segments)
	}
	s.control = mapped(t, s.file("control"), 12288)
	clock := with.clock
	if clock == 0 {
		clock = 1
	}
	for at, value := range map[int]uint32{
		8: 2, 12: 131072, 16: clock, 20: with.overflow, 24: max(with.ringSegments, 1),
		28: uint32(s.segments), 32: 1, 36: 1, 44: uint32(s.heads),
	} {
		set32(s.control, at, value)
	}
	copy(s.control, "UTCTRL01")
	s.pool = mapped(t, s.file("pool"), s.segmentsAt()+s.segments*131072)
	set32(s.pool, 8, 2)
	set32(s.pool, 16, uint32(s.heads))
	set32(s.pool, 20, uint32(s.segments))
	written := 0
	if !with.isWritten {
		written = 1
	}
	// Queues 0 and 2 hold what has written pages, 1 and 3 what has none.
	for i := range s.heads {
		set32(s.pool, 4096+4*(s.heads*written+i), uint32(i))
	}
	for i := range s.segments {
		set32(s.pool, 4096+8*s.heads+4*(s.segments*written+i), uint32(i))
		if with.isWritten {
			s.pool[4096+8*(s.heads+s.segments)+i] = 1
		}
	}
	if with.heads >= 0 {
		set64(s.pool, 128+128*written+64, uint64(s.heads))
	}
	set64(s.pool, 128+128*(2+written)+64, uint64(s.segments))
	copy(s.pool, "UTPOOL01")
	if err := os.WriteFile(s.file("names"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// join lets the package join, for as long as the test runs.
func (s *simulated) join() *session {
	s.t.Helper()
	joined, err := join(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	active, known = joined, names{}
	s.joined = joined
	s.t.Cleanup(func() {
		active, known = nil, names{}
		if overlaps := joined.overlaps.Load(); overlaps != 0 {
			s.t.Errorf("two goroutines were in one ring %d times", overlaps)
		}
	})
	return joined
}

type record struct {
	ring    int
	ticks   uint64
	payload uint64 // wide ones are joined
	event   int
	cpu     int
	kind    int
	flag    int
	lost    uint64 // events lost before it
}

// rings returns the heads that are in use. They are taken in their order; others may have no pages.
func (s *simulated) rings() (heads []int) {
	taken := int(le64(s.pool, 128) + le64(s.pool, 128+128))
	for i := range min(taken, s.heads) {
		if string(s.pool[s.headAt(i):][:8]) == "UTRING01" {
			heads = append(heads, i)
		}
	}
	return heads
}

// raw returns the bytes of a ring from the last drained position to its head, and how many uses are
// behind it.
func (s *simulated) raw(head int) []byte {
	s.t.Helper()
	at := s.headAt(head)
	most := int(le32(s.pool, at+20))
	from, to := s.taken[head], int(le64(s.pool, at+64))
	if to < from || to%16 != 0 {
		s.t.Fatalf("head goes from %d to %d", from, to)
	}
	var bytes []byte
	for p := from; p < to; {
		use := p / 131072
		segment := int(uint32(le64(s.pool, at+4096+8*(use%most)))) - 1
		if segment < 0 || segment >= s.segments {
			s.t.Fatalf("use %d of ring %d has segment %d", use, head, segment)
		}
		n := min(131072-p%131072, to-p)
		begin := s.segmentsAt() + segment*131072 + p%131072
		bytes = append(bytes, s.pool[begin:begin+n]...)
		p += n
	}
	return bytes
}

// drain reads what is new in all rings and publishes the tails.
func (s *simulated) drain() (all []record) {
	s.t.Helper()
	for _, head := range s.rings() {
		bytes := s.raw(head)
		all = append(all, s.parse(head, bytes)...)
		s.taken[head] += len(bytes)
		set64(s.pool, s.headAt(head)+128, uint64(s.taken[head]))
	}
	return all
}

// parse returns the events of records, and fails at what cannot be.
func (s *simulated) parse(ring int, bytes []byte) (all []record) {
	s.t.Helper()
	var lost uint64
	var last uint64
	for i := 0; i < len(bytes); i += 16 {
		first, second := binary.LittleEndian.Uint64(bytes[i:]), binary.LittleEndian.Uint64(bytes[i+8:])
		r := record{
			ring: ring, ticks: first, payload: second & 0xffffffff, event: int(second >> 32 & 0xffff),
			cpu: int(second >> 48 & 0x7ff), kind: int(second >> 59 & 7), flag: int(second >> 62),
		}
		switch {
		case r.kind != 7:
			if r.ticks < last {
				s.t.Fatalf("ring %d goes back in time at byte %d", ring, i)
			}
			last = r.ticks
			r.lost, lost = lost, 0
			all = append(all, r)
		case r.payload == 1: // wide
			if len(all) == 0 || i%131072 == 0 || all[len(all)-1].event != r.event {
				s.t.Fatalf("ring %d: a second half without a first one at byte %d", ring, i)
			}
			if uint32(all[len(all)-1].payload) != uint32(r.ticks) {
				s.t.Fatalf("ring %d: torn at byte %d", ring, i)
			}
			all[len(all)-1].payload = r.ticks
		case r.payload == 3:
			lost += r.ticks
		case r.payload != 2 || r.ticks != 0:
			s.t.Fatalf("ring %d: continuation %d at byte %d", ring, r.payload, i)
		}
	}
	return all
}

// name is one entry of the log of names.
type name struct {
	event, pid int
	text       string
}

func (s *simulated) names() (all []name) {
	s.t.Helper()
	log, err := os.ReadFile(s.file("names"))
	if err != nil {
		s.t.Fatal(err)
	}
	for len(log) > 0 {
		if len(log) < 16 || log[0] != 'U' || log[1] != 'N' || log[2] != 1 || log[3] != 0 {
			s.t.Fatalf("the log of names has %q", log)
		}
		n := int(binary.LittleEndian.Uint16(log[6:]))
		all = append(all, name{
			event: int(binary.LittleEndian.Uint16(log[4:])), pid: int(binary.LittleEndian.Uint32(log[8:])),
			text: string(log[16 : 16+n]),
		})
		log = log[16+n:]
	}
	return all
}
