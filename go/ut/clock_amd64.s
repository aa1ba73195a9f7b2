//go:build linux

#include "textflag.h"

// Linux keeps the number of the CPU in the low 12 bits of what RDTSCP leaves in CX; numbers above
// 0x7ff are unknown in a record. 0x8000 is the flag of all records. Stores of this processor become
// visible in their order, so a plain store publishes.
#define TAIL \
	ANDL	$0xfff, CX \
	MOVL	$0x7ff, BX \
	CMPL	CX, BX \
	CMOVLHI	BX, CX \
	ORL	$0x8000, CX

// func counter() uint64
TEXT ·counter(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ret+0(FP)
	RET

// func counterAfter() (ticks uint64, tail uint64)
TEXT ·counterAfter(SB), NOSPLIT, $0-16
	RDTSCP
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, ticks+0(FP)
	TAIL
	MOVQ	CX, tail+8(FP)
	RET

// func stampAndPublish(record, head unsafe.Pointer, position uint64)
TEXT ·stampAndPublish(SB), NOSPLIT, $0-24
	MOVQ	record+0(FP), R8
	MOVQ	head+8(FP), R9
	MOVQ	position+16(FP), R10
	RDTSCP
	SHLQ	$32, DX
	ORQ	DX, AX
	MOVQ	AX, (R8)
	TAIL
	MOVW	CX, 14(R8)
	MOVQ	R10, (R9)
	RET

// func publish(head unsafe.Pointer, position uint64)
TEXT ·publish(SB), NOSPLIT, $0-16
	MOVQ	head+0(FP), R9
	MOVQ	position+8(FP), R10
	MOVQ	R10, (R9)
	RET

// func storeBefore(at unsafe.Pointer, value uint64)
TEXT ·storeBefore(SB), NOSPLIT, $0-16
	MOVQ	at+0(FP), R9
	MOVQ	value+8(FP), R10
	MOVQ	R10, (R9)
	RET
