//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package ut

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Memory that is shared with other processes is read and written word by word, and never trusted.
// System calls are raw ones: the others may give the P away, and a pinned goroutine must keep it.

const (
	adviceDontFork      = 10
	advicePopulateWrite = 23
	adviceNone          = 0x7ead // one that no kernel knows
	mapFixedNoReplace   = 0x100000
)

func load32(base unsafe.Pointer, offset uintptr) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Add(base, offset)))
}

func load64(base unsafe.Pointer, offset uintptr) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Add(base, offset)))
}

func store32(base unsafe.Pointer, offset uintptr, value uint32) {
	atomic.StoreUint32((*uint32)(unsafe.Add(base, offset)), value)
}

func store64(base unsafe.Pointer, offset uintptr, value uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Add(base, offset)), value)
}

// pointer returns the address that a system call returned.
func pointer(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// mmap returns a new mapping, or the error of the kernel.
func mmap(address, bytes, protection, flags uintptr, fd int) (unsafe.Pointer, error) {
	at, _, errno := syscall.RawSyscall6(syscall.SYS_MMAP, address, bytes, protection, flags, uintptr(fd), 0)
	if errno != 0 {
		return nil, errno
	}
	return pointer(at), nil
}

// mapFile maps the first bytes of a file, to read and to write, shared.
func mapFile(fd int, bytes uintptr) (unsafe.Pointer, error) {
	return mmap(0, bytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED, fd)
}

func unmap(at unsafe.Pointer, bytes uintptr) {
	syscall.RawSyscall(syscall.SYS_MUNMAP, uintptr(at), bytes, 0)
}

func advise(at unsafe.Pointer, bytes uintptr, advice uintptr) syscall.Errno {
	_, _, errno := syscall.RawSyscall(syscall.SYS_MADVISE, uintptr(at), bytes, advice)
	return errno
}

// mapShared maps a file that may be large, at a multiple of the segment size, as the kernel then maps
// whole groups of pages at one load. A program that has locked its future memory (mlockall) must not
// lock all of it, so the mapping becomes accessible after it is unlocked.
func mapShared(fd int, bytes uintptr) (unsafe.Pointer, error) {
	const nothing = syscall.PROT_NONE
	reserved, err := mmap(0, bytes+segmentBytes, nothing, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE, -1)
	if err != nil {
		return nil, err
	}
	start := unsafe.Add(reserved, -uintptr(reserved)&(segmentBytes-1))
	_, err = mmap(uintptr(start), bytes, nothing, syscall.MAP_SHARED|syscall.MAP_FIXED|syscall.MAP_NORESERVE, fd)
	if err == nil {
		syscall.RawSyscall(syscall.SYS_MUNLOCK, uintptr(reserved), bytes+segmentBytes, 0)
		_, _, errno := syscall.RawSyscall(syscall.SYS_MPROTECT, uintptr(start), bytes, syscall.PROT_READ|syscall.PROT_WRITE)
		if errno != 0 {
			err = errno
		}
	}
	if err != nil {
		unmap(reserved, bytes+segmentBytes)
		return nil, err
	}
	advise(start, bytes, adviceDontFork)
	return start, nil
}
