//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// maxRings is the number of Ps that can have a ring. Events on others are lost and counted.
const maxRings = 4096

// active is the session in which the program was started; nil: there is none. It is set before any
// other package's code runs.
var active *session

var notJoined error

// session is the recording that this process belongs to.
type session struct {
	dir       string
	control   unsafe.Pointer
	isCounter bool // the session's clock is the CPU's counter
	clock     uint32
	overflow  uint32
	pid       int
	namespace uint32 // inode of the pid namespace, low half; 0: not known
	names     *nameTable
	others    uint32 // numbers of spans for whose names there are none: see EventName.span
	tasks     atomic.Uint64
	mapping   sync.Mutex // held to map the pool
	pool      atomic.Pointer[pool]
	rings     [maxRings]atomic.Pointer[writer]
	overlaps  atomic.Uint32 // of two goroutines in one ring; counted for the race detector's tests
}

func init() {
	dir, isSet := os.LookupEnv("UNDERTICK_SESSION")
	if !isSet {
		return
	}
	if isSecure() {
		notJoined = errors.New("the program changes its rights when it is started, so UNDERTICK_SESSION is ignored")
	} else {
		active, notJoined = join(dir)
	}
	if notJoined != nil && os.Getenv("UNDERTICK_DEBUG") == "1" {
		fmt.Fprintf(os.Stderr, "undertick: nothing is recorded: %v\n", notJoined)
	}
}

func reasonNotJoined() error { return notJoined }

// isSecure reports whether the program has other rights than the user who started it.
func isSecure() bool {
	if syscall.Getuid() != syscall.Geteuid() || syscall.Getgid() != syscall.Getegid() {
		return true
	}
	const secure = 23 // AT_SECURE, which also covers capabilities of the file
	auxiliary, _ := os.ReadFile("/proc/self/auxv")
	for ; len(auxiliary) >= 16; auxiliary = auxiliary[16:] {
		pair := (*[2]uint64)(unsafe.Pointer(&auxiliary[0]))
		if pair[0] == secure {
			return pair[1] != 0
		}
	}
	return false
}

// join maps the control page of the session in `dir`. The error says what does not fit.
func join(dir string) (*session, error) {
	if len(dir) == 0 || dir[0] != '/' {
		return nil, fmt.Errorf("UNDERTICK_SESSION is %q, not an absolute path", dir)
	}
	if len(dir) > maxPath {
		return nil, fmt.Errorf("UNDERTICK_SESSION has %d bytes, at most %d are possible", len(dir), maxPath)
	}
	path := dir + "/control"
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened: %w (has the recording ended?)", path, err)
	}
	defer syscall.Close(fd)
	var status syscall.Stat_t
	if err := syscall.Fstat(fd, &status); err != nil || status.Size < controlBytes {
		return nil, fmt.Errorf("%s is no control page: it has %d bytes, not %d", path, status.Size, controlBytes)
	}
	page, err := mapFile(fd, controlBytes)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be mapped: %w", path, err)
	}
	s := &session{dir: dir, control: page, pid: syscall.Getpid()}
	if err := s.check(path); err != nil {
		unmap(page, controlBytes)
		return nil, err
	}
	s.overflow = load32(page, controlOverflow)
	s.namespace = pidNamespace()
	s.tasks.Store(rand.Uint64() & tasksMask)
	s.names = mapNames()
	s.others = uint32(s.names.reserve("(other names) task new"))<<16 | uint32(s.names.reserve("(other names) task done"))
	return s, nil
}

// check holds the control page to what this package can write for.
func (s *session) check(path string) error {
	if magic := load64(s.control, 0); magic != controlMagic {
		return fmt.Errorf("%s is no control page: it begins with %#x, not UTCTRL01", path, magic)
	}
	if version := load32(s.control, controlVersion); version != formatVersion {
		return fmt.Errorf("the recorder writes version %d of the format, this package version %d: "+
			"use versions of both that belong together", version, formatVersion)
	}
	if bytes := load32(s.control, controlSegmentBytes); bytes != segmentBytes {
		return fmt.Errorf("the recorder has segments of %d bytes, this package of %d", bytes, segmentBytes)
	}
	s.clock = load32(s.control, controlClock)
	s.isCounter = s.clock == clockCounter
	switch {
	case s.isCounter && !hasCounter:
		return errors.New("the session's clock is the CPU's counter, which this package reads on amd64 " +
			"and arm64 only: record with UNDERTICK_CLOCK=monotonic")
	case s.clock < clockCounter || s.clock > clockMonotonic:
		return fmt.Errorf("the session has clock %d, which this package does not know", s.clock)
	}
	return nil
}

// isOn reports whether the event is to be recorded now.
func (s *session) isOn(event uint32) bool {
	on := load32(s.control, controlOn) & onModes
	return on == onAll || on != onNone && s.isSwitchedOn(event)
}

func (s *session) isSwitchedOn(event uint32) bool {
	bits := load32(s.control, controlSwitched+uintptr(event/32)*4)
	return bits>>(event%32)&1 == 0
}

// loseEvent counts an event that found no ring.
func (s *session) loseEvent() {
	atomic.AddUint64((*uint64)(unsafe.Add(s.control, controlLost)), 1)
}

// now reads the clock of the session, in its ticks, and returns the last 16 bits of a record.
func (s *session) now() (ticks uint64, tail uint64) {
	if s.isCounter {
		return counterAfter()
	}
	return s.nanoseconds(), tailInstant
}

func (s *session) nanoseconds() uint64 {
	if s.clock == clockMonotonic {
		return uint64(nanotime())
	}
	const raw = 4 // CLOCK_MONOTONIC_RAW
	var t [2]int64
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, raw, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t[0])*1e9 + uint64(t[1])
}

// pidNamespace returns the low half of the inode number of this process's pid namespace; 0: not known.
func pidNamespace() uint32 {
	var status syscall.Stat_t
	if syscall.Stat("/proc/self/ns/pid", &status) != nil {
		return 0
	}
	return uint32(status.Ino)
}

// lookForCollector notes in the control page if no collector drains the rings. A recorder holds a
// lock, which the kernel releases when the recorder is killed.
func (s *session) lookForCollector() {
	fd, err := syscall.Open(s.dir+"/control", syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	if syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		atomic.StoreUint32((*uint32)(unsafe.Add(s.control, controlAlive)), 0)
	}
}
