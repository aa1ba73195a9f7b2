/* A span around many points, against the same program without them: what `report` takes off
 * for what lies inside. Built once for each way of pointing (-DWAY=n) and once without points
 * (-DWAY=0), run by `cargo xtask bench nested`, in turn.
 *
 *     nested KIND POINTS SPANS SEED
 *
 * Prints the mean ticks of the outer span by fenced readings, and those around nothing; what is
 * over ten times the median, such as interrupts, is left out. */
#include "../../crates/lab/src/dose.h"
#include "fenced.h"
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>

enum { OUTER = 1, INNER = 2 };
#if WAY == 1
#define BEGIN ut_event(INNER, 7)
#define END (void)0
#elif WAY == 2
#define BEGIN ut_begin(INNER)
#define END ut_end(INNER)
#elif WAY == 3
#define BEGIN ut_begin_ordered(INNER)
#define END ut_end_ordered(INNER)
#elif WAY == 4
#define BEGIN ut_begin_sampled(INNER)
#define END ut_end_sampled(INNER)
#else
#define BEGIN (void)0
#define END (void)0
#endif

#define NODES (1u << 18) /* 16 MiB */
static struct { uint32_t next, unused[15]; } nodes[NODES];
#define SLOTS (1u << 16)
static uint64_t slots[SLOTS];
static uint64_t cells[64];

static inline __attribute__((always_inline)) uint64_t step(int kind, uint64_t x, uint64_t odd) {
    uint64_t a, b, c, d, slot;
    int i;
    switch (kind) {
    case 0: DOSE(x, odd, 40); break; /* latency */
    case 1: /* throughput */
        a = b = c = d = x;
        for (i = 0; i < 40; i++) __asm__ volatile("add %4, %0\n\tadd %4, %1\n\tadd %4, %2\n\tadd %4, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(odd) : "cc");
        x = a ^ b ^ c ^ d;
        break;
    case 2: x = nodes[nodes[x % NODES].next].next; break; /* memory */
    case 3: /* branches */
        for (i = 0; i < 4; i++) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            if (x >> 63) DOSE(x, odd, 4);
            else cells[x & 63] ^= x;
        }
        break;
    default: /* hash map, half full */
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        slot = x >> 48;
        while (slots[slot] != 0 && slots[slot] != x) slot = (slot + 1) % SLOTS;
        x ^= slot;
    }
    return x;
}

#define LOOP(kind) \
    static __attribute__((noinline)) uint64_t loop_##kind(uint64_t x, uint32_t points) { \
        uint32_t i; \
        DOSE_READY(odd); \
        for (i = 0; i < points; i++) { \
            BEGIN; \
            x = step(kind, x, odd); \
            END; \
        } \
        return x; \
    }
LOOP(0) LOOP(1) LOOP(2) LOOP(3) LOOP(4)
static uint64_t (*const loops[])(uint64_t, uint32_t) = {loop_0, loop_1, loop_2, loop_3, loop_4};

int main(int argc, char **argv) {
    const int kind = argc > 1 ? atoi(argv[1]) % 5 : 0;
    const uint32_t points = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10;
    const uint32_t spans = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1000;
    uint64_t state = argc > 4 ? strtoull(argv[4], NULL, 10) : 1, x = 88172645463325252ull;
    uint64_t *ticks = malloc(sizeof *ticks * spans), *nothing = malloc(sizeof *nothing * spans);
    uint32_t i, r;
    if (ticks == NULL || nothing == NULL || spans == 0) return 1;
    for (i = 0; i < NODES; i++) nodes[i].next = i;
    for (i = NODES - 1; i > 0; i--) { /* Sattolo: one cycle */
        const uint32_t j = (uint32_t)(draw(&state) % i), next = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = next;
    }
    for (i = 0; i < SLOTS / 2; i++) slots[(draw(&state) * 0x9e3779b9u) % SLOTS] = draw(&state) | 1;
    ut_name(OUTER, "outer");
    ut_name(INNER, "inner");
    for (r = 0; r < spans; r++) {
        uint64_t from;
        for (i = 0; i < 150; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
        from = fenced();
#if WAY > 0
        ut_begin_ordered(OUTER);
#endif
        x = loops[kind](x, points);
#if WAY > 0
        ut_end_ordered(OUTER);
#endif
        ticks[r] = fenced() - from;
        from = fenced();
        nothing[r] = fenced() - from;
    }
    printf("%.3f %.3f\n", mean(ticks, spans), mean(nothing, spans));
    free(ticks);
    free(nothing);
    return x == 1;
}
