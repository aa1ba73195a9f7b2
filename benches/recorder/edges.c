/* What spans show of work that is still under way where they end, and of work that was where
 * they begin. The same work runs between plain, fast and ordered points and between fenced
 * readings, in random order. Run by `cargo xtask bench edges`, which compares `report` with the
 * fenced readings that are printed here. */
#include "../../crates/calibrate/src/dose.h"
#include "fenced.h"
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKS = 8, PLACES = 4, WAYS = 5, RATIO = 30 };
/* Works: see work_inline(). Places: bit 0, behind four misses outside the span; bit 1, after a walk
 * through a mebibyte of other memory. */
/* Fenced readings come twice, each in separate code: the difference between the two sets is the
 * effect of chance and of the place of code. */
enum { PLAIN, FAST, ORDERED, FENCED, AGAIN };
#define EVENT(way, work, place) ((uint16_t)(100 * (way) + 10 * (place) + (work) + 1))

#define NODES (1u << 19) /* 32 MiB */
static struct { uint32_t next, unused[15]; } nodes[NODES];
#define SORTED (1u << 20)
static uint64_t sorted[SORTED];
#define SLOTS (1u << 21)
static uint64_t slots[SLOTS];
#define OTHERS (1u << 17)
static uint64_t others[OTHERS];

static inline __attribute__((always_inline)) uint64_t work_inline(int kind, uint64_t x) {
    uint32_t i, at;
    uint64_t slot;
    DOSE_READY(odd);
    switch (kind) {
    case 0: DOSE(x, odd, 50); break;
    case 1: DOSE(x, odd, 200); break;
    case 2: /* sixteen misses */
    case 3: /* sixty-four */
        at = (uint32_t)(x % NODES);
        for (i = 0; i < (kind == 2 ? 16u : 64u); i++) at = nodes[at].next;
        x ^= at;
        break;
    case 4: /* hash look-up, half full, linear probing */
        slot = x * 0x9e3779b97f4a7c15ull >> 43;
        while (slots[slot] != 0 && slots[slot] != x) slot = (slot + 1) % SLOTS;
        x ^= slot;
        break;
    case 5: /* binary search */
        for (at = 0, i = SORTED / 2; i > 0; i /= 2)
            if (sorted[at + i] <= x) at += i;
        x ^= at;
        break;
    case 6: { /* four independent misses */
        uint64_t sum = 0;
        for (i = 0; i < 4; i++) sum += nodes[(x >> (i * 11)) % NODES].next;
        x ^= sum;
        break;
    }
    default: break; /* nothing: what readings cost all along */
    }
    return x;
}

/* One copy of each work's code, called from all ways: with a copy in each way, two sets of the same
 * fenced readings differed by 8 % in 200 pairs, for the place of 1400 bytes of code alone. The call
 * belongs to the section. */
#define WORK(w) static __attribute__((noinline)) uint64_t work_##w(uint64_t x) { return work_inline(w, x); }
WORK(0) WORK(1) WORK(2) WORK(3) WORK(4) WORK(5) WORK(6)
#define work_7(x) (x) /* nothing: no call either */

static uint64_t fenced_ticks;
#define CASE(w, p) \
    static __attribute__((noinline)) uint64_t work_##w##_##p(int way, uint64_t x) { \
        uint64_t from; \
        switch (way) { \
        case PLAIN: ut_begin(EVENT(PLAIN, w, p)); x = work_##w(x); ut_end(EVENT(PLAIN, w, p)); break; \
        case FAST: ut_begin_fast(EVENT(FAST, w, p)); x = work_##w(x); ut_end_fast(EVENT(FAST, w, p)); break; \
        case ORDERED: ut_begin_ordered(EVENT(ORDERED, w, p)); x = work_##w(x); ut_end_ordered(EVENT(ORDERED, w, p)); break; \
        case FENCED: from = fenced(); x = work_##w(x); fenced_ticks = fenced() - from; break; \
        default: from = fenced(); x = work_##w(x); __asm__ volatile(""); fenced_ticks = fenced() - from; \
        } \
        return x; \
    }
#define CASES(w) CASE(w, 0) CASE(w, 1) CASE(w, 2) CASE(w, 3)
CASES(0) CASES(1) CASES(2) CASES(3) CASES(4) CASES(5) CASES(6) CASES(7)
#define FOUR(w) {work_##w##_0, work_##w##_1, work_##w##_2, work_##w##_3}
static uint64_t (*const cases[WORKS][PLACES])(int, uint64_t) = {FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)};

/* Returns the mean of the ticks up to RATIO times the smallest; `report --cull ratio:RATIO` does
 * the same. A hypervisor that takes 100 us from its guest leaves no evidence, and a few of these
 * would hide the readings' error in either mean. */
static double mean_below(uint64_t *ticks, uint32_t n) {
    double sum = 0;
    uint32_t i;
    qsort(ticks, n, sizeof *ticks, compare);
    for (i = 0; i < n && ticks[i] <= RATIO * ticks[0]; i++) sum += (double)ticks[i];
    return i > 0 ? sum / i : 0;
}

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* A loop of independent misses, with points of a kind around each: returns ns per miss. */
static double independent(int way, uint32_t n, uint64_t *state) {
    const double start = now_ns();
    volatile uint64_t kept;
    uint64_t sum = 0;
    uint32_t i;
    for (i = 0; i < n; i++) {
        const uint64_t at = draw(state) % NODES;
        if (way == PLAIN) ut_begin(900);
        if (way == FAST) ut_begin_fast(901);
        sum += nodes[at].next;
        if (way == PLAIN) ut_end(900);
        if (way == FAST) ut_end_fast(901);
    }
    kept = sum;
    (void)kept;
    return (now_ns() - start) / n;
}

int main(int argc, char **argv) {
    const uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, x = 88172645463325252ull, sink = 0;
    static uint32_t counts[WORKS][PLACES][WAYS];
    uint64_t *ticks = malloc(sizeof *ticks * 2 * WORKS * PLACES * n);
    uint32_t i, r;
    int w, p;
    if (ticks == NULL) return 1;
    for (i = 0; i < NODES; i++) nodes[i].next = i;
    for (i = NODES - 1; i > 0; i--) { /* Sattolo: one cycle */
        const uint32_t j = (uint32_t)(draw(&state) % i), next = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = next;
    }
    for (i = 0; i < SORTED; i++) sorted[i] = (uint64_t)i << 44;
    for (i = 0; i < SLOTS / 2; i++) {
        const uint64_t key = draw(&state) << 31 | draw(&state) | 1;
        uint64_t slot = key * 0x9e3779b97f4a7c15ull >> 43;
        while (slots[slot] != 0) slot = (slot + 1) % SLOTS;
        slots[slot] = key;
    }
#define SET(way, w, p) (ticks + (((uint32_t)((way) - FENCED) * WORKS + (uint32_t)(w)) * PLACES + (uint32_t)(p)) * n)
    for (r = 0; r < n * WORKS * PLACES * WAYS; r++) {
        const uint64_t lot = draw(&state);
        const int way = (int)(lot % WAYS);
        w = (int)(lot / WAYS % WORKS);
        p = (int)(lot / WAYS / WORKS % PLACES);
        if (counts[w][p][way] >= n) continue;
        for (i = 0; i < 150; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
        if (p & 2)
            for (i = 0; i < OTHERS; i += 8) sink += others[i]++;
        if (p & 1) {
            uint32_t at = (uint32_t)(x >> 45);
            for (i = 0; i < 4; i++) at = nodes[at].next;
            sink += at; /* nobody waits for it */
        }
        x ^= cases[w][p](way, x) * 0x9e3779b97f4a7c15ull;
        if (way >= FENCED) SET(way, w, p)[counts[w][p][way]] = fenced_ticks;
        counts[w][p][way]++;
    }
    for (w = 0; w < WORKS; w++)
        for (p = 0; p < PLACES; p++) {
            const double one = mean_below(SET(FENCED, w, p), counts[w][p][FENCED]);
            printf("work %d %d %.3f %.3f\n", w, p, one, mean_below(SET(AGAIN, w, p), counts[w][p][AGAIN]));
        }
    for (i = 0; i < 5; i++) {
        const double none = independent(FENCED, 20000, &state), fast = independent(FAST, 20000, &state);
        printf("independent %.2f %.2f %.2f\n", none, fast, independent(PLAIN, 20000, &state));
    }
    free(ticks);
    return x == sink;
}
