# Each processor has memory of its own from 0 on: code, then data; the stack is at its end.
    .section .text.start
    .globl _start
_start:
    li sp, 0x10000
    j begin
