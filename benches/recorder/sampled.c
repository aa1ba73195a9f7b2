/* The price of a sampled span compared with a full one, block by block in one run. Prints one
 * line per block:  what  thread  ns_per_span  spans
 * Run by `cargo xtask bench sampled`, with and without a session. */
#define _GNU_SOURCE
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Not inlined into each other, so that no block profits from its neighbour. */
#define BLOCK(name, statement)                                \
    static __attribute__((noinline)) void name(uint32_t n) { \
        uint32_t i;                                           \
        for (i = 0; i < n; i++) { statement; }                \
    }

BLOCK(full, ut_begin(8); ut_end(8))
BLOCK(sampled, ut_begin_sampled(9); ut_end_sampled(9))
BLOCK(skipped, ut_begin_sampled(10); ut_end_sampled(10))
BLOCK(every, ut_begin_sampled(11); ut_end_sampled(11))
BLOCK(empty, __asm__ volatile("" ::"r"(i)))

static void timed(const char *what, void (*block)(uint32_t), uint32_t n) {
    uint64_t t0 = now_ns(), t1;
    block(n);
    t1 = now_ns();
    printf("%s 0 %.4f %u\n", what, (double)(t1 - t0) / n, n);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 40, r;
    uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : 50000;
    ut_sample_rate(10, 65535);
    ut_sample_rate(11, 1);
    full(n);
    for (r = 0; r < rounds; r++) {
        timed("full", full, n);
        timed("sampled", sampled, n);
        timed("skipped", skipped, n);
        timed("every", every, n);
        timed("empty", empty, n);
    }
    return 0;
}
