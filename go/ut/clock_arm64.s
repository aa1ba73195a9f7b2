//go:build linux

#include "textflag.h"

// ISB lets the reading wait for all earlier instructions; STLR publishes after all earlier stores.

// func counter() uint64
TEXT ·counter(SB), NOSPLIT, $0-8
	MRS	CNTVCT_EL0, R0
	MOVD	R0, ret+0(FP)
	RET

// func counterAfter() (ticks uint64, tail uint64)
TEXT ·counterAfter(SB), NOSPLIT, $0-16
	ISB	$15
	MRS	CNTVCT_EL0, R0
	MOVD	R0, ticks+0(FP)
	MOVD	$0x87ff, R1
	MOVD	R1, tail+8(FP)
	RET

// func stampAndPublish(record, head unsafe.Pointer, position uint64)
TEXT ·stampAndPublish(SB), NOSPLIT, $0-24
	MOVD	record+0(FP), R1
	MOVD	head+8(FP), R2
	MOVD	position+16(FP), R3
	MOVD	$0x87ff, R4
	MOVH	R4, 14(R1)
	ISB	$15
	MRS	CNTVCT_EL0, R0
	MOVD	R0, (R1)
	STLR	R3, (R2)
	RET

// func publish(head unsafe.Pointer, position uint64)
TEXT ·publish(SB), NOSPLIT, $0-16
	MOVD	head+0(FP), R2
	MOVD	position+8(FP), R3
	STLR	R3, (R2)
	RET

// func storeBefore(at unsafe.Pointer, value uint64)
TEXT ·storeBefore(SB), NOSPLIT, $0-16
	MOVD	at+0(FP), R2
	MOVD	value+8(FP), R3
	MOVD	R3, (R2)
	DMB	$0xb
	RET
