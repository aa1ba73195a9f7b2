/* The floor of all recorders: one clock reading and one 16-byte store into a mapped ring; and
 * the timing of other blocks beside it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#define FLOOR_SLOTS 65536u /* 1 MiB, wraps */

static volatile uint64_t *floor_ring;

static void make_floor_ring(void) {
    void *at = mmap(NULL, FLOOR_SLOTS * 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) exit(1);
    floor_ring = (volatile uint64_t *)at;
}

#define FLOOR(i)                                                            \
    do {                                                                    \
        volatile uint64_t *slot = floor_ring + 2 * ((i) & (FLOOR_SLOTS - 1)); \
        slot[0] = __rdtsc();                                                \
        slot[1] = (uint64_t)(i) | (uint64_t)7 << 32;                        \
    } while (0)

#define BLOCK(name, statement) \
    static __attribute__((noinline)) void name(uint32_t n) { for (uint32_t i = 0; i < n; i++) { statement; } }

BLOCK(floor_1, FLOOR(i))

/* Prints one line: what, thread, ns a unit, units. */
static void timed(const char *what, void (*block)(uint32_t), uint32_t n) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    block(n);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%s 0 %.4f %u\n", what, ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n, n);
}

/* Runs blocks of both in turn with the floor's. Arguments: blocks, points in each. */
static int beside_floor(int argc, char **argv, void (*event)(uint32_t), void (*section)(uint32_t)) {
    int blocks = argc > 1 ? atoi(argv[1]) : 10;
    uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : 20000;
    make_floor_ring();
    event(n);
    for (int i = 0; i < blocks; i++) {
        timed("floor", floor_1, n);
        timed("event", event, n);
        timed("section", section, n);
    }
    return 0;
}
