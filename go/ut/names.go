//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import (
	"encoding/binary"
	"hash/fnv"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// The table of the numbers of names lies at an address that nothing else takes, so that all
// recorders of a process share it, those in C libraries included.
const (
	namesAt    = 0x200055550000
	namesMagic = 0x3130454d414e5455 // "UTNAME01", after the last entry
)

// nameTable has the hash of each name at the place of its number, the first free one from where the
// hash points.
type nameTable struct {
	hashes *[numbers + 1]uint64
	// Whether the name of otherNames, or those of the spans without numbers, are in the log.
	othersAreTold, spansAreTold atomic.Bool
}

// mapNames returns the table of this process. Where the address is not to be had, it is a table of
// this package alone.
func mapNames() *nameTable {
	const bytes = (numbers + 1) * 8
	own := &nameTable{hashes: new([numbers + 1]uint64)}
	if isRace {
		return own // the address lies in the detector's own memory
	}
	at, err := mmap(namesAt, bytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|mapFixedNoReplace, -1)
	if err == nil && uintptr(at) != namesAt {
		unmap(at, bytes) // kernels before 4.17: somewhere else
		return own
	}
	if err != nil && (err != syscall.EEXIST || !isReadable(namesAt)) {
		return own
	}
	shared := &nameTable{hashes: (*[numbers + 1]uint64)(pointer(namesAt))}
	magic := &shared.hashes[numbers]
	if !atomic.CompareAndSwapUint64(magic, 0, namesMagic) && atomic.LoadUint64(magic) != namesMagic {
		return own
	}
	return shared
}

// isReadable asks the kernel whether a mapping can be read: a FUTEX_WAIT there that ends at once.
func isReadable(address uintptr) bool {
	const waitPrivate = 128
	var atOnce [2]int64
	_, _, errno := syscall.RawSyscall6(syscall.SYS_FUTEX, address, waitPrivate, 0, uintptr(unsafe.Pointer(&atOnce)), 0, 0)
	return errno == syscall.EAGAIN || errno == syscall.ETIMEDOUT
}

// reserve returns the number of a name, or otherNames if there is none left.
func (t *nameTable) reserve(name string) uint16 {
	hasher := fnv.New64a()
	hasher.Write([]byte(name))
	hash := max(hasher.Sum64(), 1)
	for i := uint64(0); i < numbers; i++ {
		place := (hash + i) % numbers
		entry := &t.hashes[place]
		if atomic.CompareAndSwapUint64(entry, 0, hash) || atomic.LoadUint64(entry) == hash {
			return uint16(firstNumber + place)
		}
	}
	return otherNames
}

// number returns the number of a name, and writes the name to the session's log.
func (s *session) number(name string) uint16 {
	given := s.names.reserve(name)
	switch {
	case given != otherNames:
		s.appendName(given, name)
	case !s.names.othersAreTold.Swap(true):
		s.appendName(otherNames, "(other names)")
	}
	return given
}

// spanNumbers returns the numbers of `NAME task new` (high half) and `NAME task done`. If there are
// none left, the span is recorded under "(other names)".
func (s *session) spanNumbers(name string) uint32 {
	begin, end := s.number(name+taskNew), s.number(name+taskDone)
	if begin != otherNames && end != otherNames {
		return uint32(begin)<<16 | uint32(end)
	}
	if !s.names.spansAreTold.Swap(true) {
		s.appendName(uint16(s.others>>16), "(other names)"+taskNew)
		s.appendName(uint16(s.others), "(other names)"+taskDone)
	}
	return s.others
}

// appendName writes the name of an event to the log by one write, or counts it as lost.
func (s *session) appendName(event uint16, name string) {
	name = cut(name, nameBytes)
	entry := make([]byte, 0, 16+nameBytes)
	for _, half := range [...]uint16{nameMagic, nameEvent, event, uint16(len(name))} {
		entry = binary.LittleEndian.AppendUint16(entry, half)
	}
	entry = binary.LittleEndian.AppendUint32(entry, uint32(s.pid))
	entry = binary.LittleEndian.AppendUint32(entry, uint32(syscall.Gettid()))
	entry = append(entry, name...)
	written := 0
	fd, err := syscall.Open(s.dir+"/names", syscall.O_WRONLY|syscall.O_APPEND|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
	if err == nil {
		for err = syscall.EINTR; err == syscall.EINTR; {
			written, err = syscall.Write(fd, entry)
		}
		syscall.Close(fd)
	}
	if written != len(entry) {
		atomic.AddUint32((*uint32)(unsafe.Add(s.control, controlNamesLost)), 1)
	}
}
