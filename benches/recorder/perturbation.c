/* Loops of about 5 us with points inside, beside the same loops without any, in blocks of the
 * order with, without, without, with. The program's clock shows what the points cost, whatever
 * the recorder switches.
 *
 *     perturbation latency|throughput|memory POINTS SECONDS
 *
 * Prints, for each four blocks, what was switched (1 all on, 2 some off, 0 changed during the
 * blocks) and the nanoseconds of a loop with points and without. */
#define _GNU_SOURCE
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WITH = 1, POINT = 2, WITHOUT = 3, LOOPS = 10, WORDS = 1 << 20 };

static unsigned long chain[WORDS];

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Each step waits for the one before. */
static __attribute__((noinline)) unsigned long latency(unsigned long x, int steps) {
    int i;
    for (i = 0; i < steps; i++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* Four parallel chains: as many instructions as the core can take. */
static __attribute__((noinline)) unsigned long throughput(unsigned long x, int steps) {
    unsigned long a = x, b = x + 1, c = x + 2, d = x + 3;
    int i;
    for (i = 0; i < steps; i++) {
        a = (a ^ 0x9e37) + (a >> 3);
        b = (b ^ 0x79b9) + (b >> 5);
        c = (c ^ 0x7f4a) + (c >> 7);
        d = (d ^ 0x7c15) + (d >> 9);
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    return a + b + c + d;
}

/* One cycle through 8 MiB: each load waits for the one before, and misses. */
static __attribute__((noinline)) unsigned long memory(unsigned long x, int steps) {
    int i;
    for (i = 0; i < steps; i++) x = chain[x % WORDS];
    return x;
}

typedef unsigned long (*work_of)(unsigned long, int);

static __attribute__((noinline)) unsigned long with_points(work_of work, unsigned long x, int parts, int steps) {
    int i;
    ut_begin_ordered(WITH);
    for (i = 0; i < parts; i++) {
        x = work(x, steps);
        ut_event(POINT, (uint32_t)i);
    }
    ut_end_ordered(WITH);
    return x;
}

static __attribute__((noinline)) unsigned long without_points(work_of work, unsigned long x, int parts, int steps) {
    int i;
    ut_begin_ordered(WITHOUT);
    for (i = 0; i < parts; i++) {
        x = work(x, steps);
        __asm__ volatile("" : "+r"(x));
    }
    ut_end_ordered(WITHOUT);
    return x;
}

int main(int count, char **words) {
    const char *kind = count > 1 ? words[1] : "latency";
    const int parts = count > 2 ? atoi(words[2]) : 4;
    const double seconds = count > 3 ? atof(words[3]) : 1;
    work_of work = !strcmp(kind, "memory") ? memory : !strcmp(kind, "throughput") ? throughput : latency;
    unsigned long x = 1, i, last = 0;
    int steps = 64, calls;
    double start, took;
    for (i = 0; i < WORDS; i++) chain[i] = i;
    for (i = WORDS - 1; i > 0; i--) { /* Sattolo: one cycle */
        unsigned long j, other = chain[i];
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        j = (x >> 33) % i;
        chain[i] = chain[j];
        chain[j] = other;
    }
    /* 5 us of work, on any machine. */
    for (calls = 0; calls < 40; calls++) {
        start = now_ns();
        for (i = 0; i < 100; i++) x = work(x, steps);
        took = (now_ns() - start) / 100;
        if (took > 4000 && took < 6000) break;
        steps = (int)(steps * (took < 100 ? 10 : 5000 / took)) + 1;
    }
    steps = steps / parts;
    start = now_ns();
    while (now_ns() - start < 1e9 * seconds) {
        double blocks[4];
        uint32_t on = *ut_process.on;
        int block, same = 1;
        for (block = 0; block < 4; block++) {
            const int with = block == 0 || block == 3;
            const double from = now_ns();
            for (i = 0; i < LOOPS; i++)
                x = with ? with_points(work, x, parts, steps) : without_points(work, x, parts, steps);
            blocks[block] = (now_ns() - from) / LOOPS;
            same &= *ut_process.on == on;
        }
        printf("%u %.3f %.3f\n", same ? on : 0, (blocks[0] + blocks[3]) / 2, (blocks[1] + blocks[2]) / 2);
        last = x;
    }
    fprintf(stderr, "%lu\n", last);
    return 0;
}
