//go:build linux && (amd64 || arm64)

package ut

import (
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
)

// The instants of the vectors to which the recorders for C and Rust are held, too
// (crates/record/tests/recording/main.rs), byte by byte after docs/format.md, section 4.
func TestTheSharedVectors(t *testing.T) {
	s := simulate(t, settings{clock: 3})
	joined := s.join()
	from := uint64(nanotime())
	joined.instant(0xb1b2, 0xa1a2a3a4)
	joined.instant(0xffff, 0x0102030405060708)
	joined.instant(0, 0xffffffff)
	to := uint64(nanotime())
	heads := s.rings()
	if len(heads) != 1 {
		t.Fatalf("%d rings", len(heads))
	}
	bytes := s.raw(heads[0])
	// CPU unknown, kind 0, flag 2: 0x7ff | 2 << 14 = 0x87ff; of a continuation 0x7ff | 7 << 11.
	want := []string{
		"a4a3a2a1b2b1ff87",
		"08070605ffffff87",
		"01000000ffffff3f",
		"ffffffff0000ff87",
	}
	if len(bytes) != 16*len(want) {
		t.Fatalf("%d bytes", len(bytes))
	}
	for i, want := range want {
		if got := hex.EncodeToString(bytes[16*i+8 : 16*i+16]); got != want {
			t.Errorf("record %d is %s, not %s", i, got, want)
		}
	}
	if wide := hex.EncodeToString(bytes[32:40]); wide != "0807060504030201" {
		t.Errorf("the wide payload is %s", wide)
	}
	for _, r := range s.parse(0, bytes) {
		if r.ticks < from || r.ticks > to {
			t.Errorf("a reading of %d, not in %d to %d", r.ticks, from, to)
		}
	}
}

func TestASpanIsATaskWithoutPolls(t *testing.T) {
	for clock := uint32(1); clock <= 3; clock++ {
		s := simulate(t, settings{clock: clock})
		s.join()
		outer := Begin("outer")
		inner := Begin("inner")
		outer.End()
		inner.End()
		Begin("inner").End()
		names := map[int]string{}
		for _, name := range s.names() {
			if name.pid != os.Getpid() {
				t.Errorf("a name of process %d", name.pid)
			}
			names[name.event] = name.text
		}
		var said []string
		tasks := map[uint64]int{}
		for _, r := range s.drain() {
			if r.kind != 0 || r.flag != 2 || r.payload == 0 {
				t.Errorf("clock %d: not an instant with a task and an unknown flag: %+v", clock, r)
			}
			if clock != 1 && r.cpu != 0x7ff {
				t.Errorf("clock %d: CPU %d of a clock that does not tell it", clock, r.cpu)
			}
			if tasks[r.payload] == 0 {
				tasks[r.payload] = len(tasks) + 1
			}
			said = append(said, fmt.Sprint(names[r.event], tasks[r.payload]))
		}
		want := "outer task new1 inner task new2 outer task done1 inner task done2 inner task new3 inner task done3"
		if got := strings.Join(said, " "); got != want {
			t.Errorf("clock %d: %s", clock, got)
		}
	}
}

func TestReadings(t *testing.T) {
	s := simulate(t, settings{})
	s.join()
	before, _ := counterAfter()
	Name("event").Event(0)
	Begin("span").End()
	after, _ := counterAfter()
	events := s.drain()
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	for _, r := range events {
		if r.ticks < before || r.ticks > after {
			t.Errorf("a reading of %d, not in %d to %d", r.ticks, before, after)
		}
	}
	cpus := cpusOfThisMachine(t)
	for _, r := range events[1:] {
		if hasCPU && r.cpu >= cpus && r.cpu != 0x7ff {
			t.Errorf("CPU %d of %d", r.cpu, cpus)
		}
	}
}

// hasCPU says whether a waiting reading tells the CPU.
var hasCPU = func() bool { _, tail := counterAfter(); return tail&0x7ff != 0x7ff }()

func cpusOfThisMachine(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/sys/devices/system/cpu/possible")
	if err != nil {
		return 2047
	}
	parts := strings.FieldsFunc(strings.TrimSpace(string(text)), func(r rune) bool { return r == '-' || r == ',' })
	var last int
	fmt.Sscan(parts[len(parts)-1], &last)
	return last + 1
}

func TestTheHeadOfARing(t *testing.T) {
	for _, isWritten := range []bool{false, true} {
		s := simulate(t, settings{overflow: 1, ringSegments: 3, isWritten: isWritten})
		set32(s.pool, 12, 17)
		s.join()
		Event("event", 1)
		at := s.headAt(s.rings()[0])
		var status syscall.Stat_t
		if err := syscall.Stat("/proc/self/ns/pid", &status); err != nil {
			t.Fatal(err)
		}
		pid := uint32(os.Getpid())
		for offset, want := range map[int]uint32{
			8: 2, 12: 131072, 16: 17, 20: 3, 24: pid, 28: pid, 32: 3, 36: 0, 40: 1,
			44: uint32(status.Ino), 48: 1, 64: 16, 68: 0, 72: 0, 92: 0, 96: 1,
		} {
			if got := le32(s.pool, at+offset); got != want {
				t.Errorf("at %d is %d, not %d", offset, got, want)
			}
		}
		if next := le32(s.pool, 12); next != 18 {
			t.Errorf("the next ring is %d", next)
		}
		least, sum := le32(s.pool, at+100), le64(s.pool, at+104)
		isCoarse := runtime.GOARCH == "arm64" // a tick may be longer than eight readings
		if least == 0 && !isCoarse || uint64(least) != sum || le64(s.pool, at+112) != sum*sum {
			t.Errorf("a read cost of %d, sum %d", least, sum)
		}
	}
}

func TestNames(t *testing.T) {
	s := simulate(t, settings{})
	s.join()
	Event("event", 1)
	Event("event", 2)
	Name("event").Event(3)
	hasher := fnv.New64a()
	hasher.Write([]byte("event"))
	want := int(16384 + hasher.Sum64()%16383)
	for _, name := range s.names() {
		if name.text != "event" || name.pid != os.Getpid() {
			t.Errorf("a name %+v", name)
		}
		// Another name of this process may have the place.
		if name.event < want || name.event > want+8 {
			t.Errorf("event %d, not %d", name.event, want)
		}
	}
	if log := s.names(); len(log) != 2 || log[0].event != log[1].event {
		t.Errorf("names %v: one for the text and one for the variable, with one number", log)
	}
	for _, r := range s.drain() {
		if r.event != s.names()[0].event {
			t.Errorf("event %d", r.event)
		}
	}
}

func TestLongNamesAreCut(t *testing.T) {
	s := simulate(t, settings{})
	s.join()
	long := strings.Repeat("ö", 300)
	Event(long, 1)
	Begin(long).End()
	log := s.names()
	if len(log) != 3 {
		t.Fatalf("%d names", len(log))
	}
	for _, name := range log {
		if len(name.text) > 255 || !utf8.ValidString(name.text) {
			t.Errorf("a name of %d bytes: %q", len(name.text), name.text)
		}
	}
	text := strings.TrimSuffix(log[1].text, " task new")
	if log[2].text != text+" task done" || !strings.HasPrefix(long, text) || len(text)+len(" task cancelled") > 255 {
		t.Errorf("the span's names are %q and %q", log[1].text, log[2].text)
	}
}

func TestMoreNamesThanNumbers(t *testing.T) {
	s := simulate(t, settings{segments: 512})
	joined := s.join()
	joined.names = &nameTable{hashes: new([numbers + 1]uint64)} // other tests keep their numbers
	joined.others = uint32(joined.names.reserve("(other names) task new"))<<16 |
		uint32(joined.names.reserve("(other names) task done"))
	const many = 8300 // two numbers each
	for i := range many {
		Begin(fmt.Sprint("span ", i)).End()
	}
	text := map[int]string{}
	for _, name := range s.names() {
		text[name.event] = name.text
	}
	begins, ends, others := map[string]int{}, map[string]int{}, 0
	for _, r := range s.drain() {
		name := text[r.event]
		if begin, isBegin := strings.CutSuffix(name, " task new"); isBegin {
			begins[begin]++
		}
		if end, isEnd := strings.CutSuffix(name, " task done"); isEnd {
			ends[end]++
		}
	}
	for name, n := range begins {
		if ends[name] != n {
			t.Errorf("%s: %d begins, %d ends", name, n, ends[name])
		}
		if name == "(other names)" {
			others = n
		} else if n != 1 {
			t.Errorf("%s has %d begins", name, n)
		}
	}
	// 16383 numbers, two of them for spans without, two for each span.
	if want := many - 16381/2; others != want {
		t.Errorf("%d spans under \"(other names)\", not %d", others, want)
	}
}

func TestNamesThatCannotBeWrittenAreCounted(t *testing.T) {
	s := simulate(t, settings{})
	if err := os.Remove(s.file("names")); err != nil {
		t.Fatal(err)
	}
	s.join()
	Begin("span").End()
	if lost := le32(s.control, 80); lost != 2 {
		t.Errorf("%d names are counted as lost, not 2", lost)
	}
	if n := len(s.drain()); n != 2 {
		t.Errorf("%d events", n)
	}
}

func TestNamesAreFoundWithoutALock(t *testing.T) {
	s := simulate(t, settings{})
	s.join()
	for range 3 {
		Event("event", 1)
	}
	known.lock.Lock()
	defer known.lock.Unlock()
	done := make(chan struct{})
	go func() {
		Event("event", 2)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("a name that is known waits for the lock")
	}
}
