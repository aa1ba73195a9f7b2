//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// pool is the file of all rings of the session, mapped: docs/format.md, section 3.
type pool struct {
	file         unsafe.Pointer
	path         string
	rawPath      *byte // the same for system calls
	isIgnored    bool  // advice has no effect, as under emulators that accept all of it (qemu-user)
	pageSize     uintptr
	headCount    uint32
	segmentCount uint32
	writtenAt    uintptr // offset of the bytes that say which segments have written pages
	headsAt      uintptr
	segmentsAt   uintptr
	spareHead    atomic.Uint32 // a head that got no pages, plus 1; 0: none
}

func roundUp(bytes uintptr) uintptr { return (bytes + segmentBytes - 1) &^ (segmentBytes - 1) }

// mapPool maps the pool of the session, unless it has been done.
func (s *session) mapPool() error {
	s.mapping.Lock()
	defer s.mapping.Unlock()
	if s.pool.Load() != nil {
		return nil
	}
	p := &pool{
		path:         s.dir + "/pool",
		pageSize:     uintptr(os.Getpagesize()),
		headCount:    load32(s.control, controlHeads),
		segmentCount: load32(s.control, controlSegments),
	}
	if p.headCount == 0 || p.headCount > mostHeads || p.segmentCount == 0 || p.segmentCount > mostSegments {
		return fmt.Errorf("%s: a pool of %d heads and %d segments is not possible", p.path, p.headCount, p.segmentCount)
	}
	p.writtenAt = poolNumbers + 8*(uintptr(p.headCount)+uintptr(p.segmentCount))
	p.headsAt = roundUp(p.writtenAt + uintptr(p.segmentCount))
	p.segmentsAt = roundUp(p.headsAt + uintptr(p.headCount)*headBytes)
	bytes := p.segmentsAt + uintptr(p.segmentCount)*segmentBytes
	var err error
	if p.rawPath, err = syscall.BytePtrFromString(p.path); err != nil {
		return err
	}
	fd, err := syscall.Open(p.path, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var status syscall.Stat_t
	if err := syscall.Fstat(fd, &status); err != nil || uint64(status.Size) < uint64(bytes) {
		return fmt.Errorf("%s is shorter than its %d bytes", p.path, bytes)
	}
	if p.file, err = mapShared(fd, bytes); err != nil {
		return err
	}
	if load64(p.file, 0) != poolMagic || load32(p.file, poolVersion) != formatVersion ||
		load32(p.file, poolHeads) != p.headCount || load32(p.file, poolSegments) != p.segmentCount {
		unmap(p.file, bytes)
		return fmt.Errorf("%s is no pool of this session", p.path)
	}
	p.isIgnored = advise(p.file, p.pageSize, adviceNone) == 0
	s.pool.Store(p)
	return nil
}

// populate allocates the pages of these bytes; where there are none it fails, instead of a SIGBUS.
func (p *pool) populate(at unsafe.Pointer, bytes uintptr) bool {
	past := uintptr(at) & (p.pageSize - 1)
	from := unsafe.Add(at, -int(past))
	if !p.isIgnored {
		if errno := advise(from, bytes+past, advicePopulateWrite); errno != syscall.EINVAL {
			return errno == 0
		}
	}
	return p.allocate(from, bytes+past)
}

// allocate does the same for kernels before 5.14, and where advice is ignored.
func (p *pool) allocate(at unsafe.Pointer, bytes uintptr) bool {
	const here = -100 // AT_FDCWD
	directory := here
	fd, _, errno := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(directory), uintptr(unsafe.Pointer(p.rawPath)),
		syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0, 0, 0)
	if errno != 0 {
		return false
	}
	offset := uintptr(at) - uintptr(p.file)
	// A signal that waits, such as those of Go's scheduler, interrupts it.
	for attempt := 0; attempt < 100; attempt++ {
		_, _, errno = syscall.RawSyscall6(syscall.SYS_FALLOCATE, fd, 0, offset, bytes, 0, 0)
		if errno != syscall.EINTR {
			break
		}
	}
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	return errno == 0
}

// take takes the first number out of a queue without waiting; false: the queue has none.
func (p *pool) take(queue int) (uint32, bool) {
	heads, segments := uintptr(p.headCount), uintptr(p.segmentCount)
	first := [...]uintptr{0, heads, 2 * heads, 2*heads + segments}[queue]
	room := p.headCount
	if queue >= queueSegmentsReady {
		room = p.segmentCount
	}
	taken := (*uint64)(unsafe.Add(p.file, poolQueues+queue*queueBytes))
	put := unsafe.Pointer(unsafe.Add(unsafe.Pointer(taken), queuePut))
	for {
		next := atomic.LoadUint64(taken)
		if next >= load64(put, 0) {
			return 0, false
		}
		number := load32(p.file, poolNumbers+4*(first+uintptr(next%uint64(room))))
		if atomic.CompareAndSwapUint64(taken, next, next+1) {
			return number, number < room // other processes write there, too
		}
	}
}

func (p *pool) head(number uint32) unsafe.Pointer {
	return unsafe.Add(p.file, p.headsAt+uintptr(number)*headBytes)
}

func (p *pool) segment(number uint32) unsafe.Pointer {
	return unsafe.Add(p.file, p.segmentsAt+uintptr(number)*segmentBytes)
}

// takeHead takes a head for a ring; nil: there is none.
func (p *pool) takeHead() unsafe.Pointer {
	number := p.spareHead.Swap(0) - 1
	if number == ^uint32(0) {
		var isThere bool
		if number, isThere = p.take(queueHeadsReady); isThere {
			return p.head(number)
		}
		if number, isThere = p.take(queueHeads); !isThere {
			return nil
		}
	}
	head := p.head(number)
	if p.populate(head, headReadyBytes) {
		return head
	}
	p.spareHead.Store(number + 1)
	return nil
}

// isWritten reports whether the collector has written all pages of a segment.
func (p *pool) isWritten(segment uint32) bool {
	at := p.writtenAt + uintptr(segment)
	return load32(p.file, at&^3)>>(8*(at&3))&0xff != 0
}
