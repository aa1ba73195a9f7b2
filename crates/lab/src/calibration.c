/* What recording costs, in the two kinds of loop that programs have: the same
 * sections in the same order every time, as where small times matter, and cases
 * in random order, whose code the core meets cold. Other work lies around each
 * section. Sections hold known doses of work; what a section shows beyond its
 * dose is what recording adds. A long chain of the same instructions, in
 * between, says what a dose takes, because the speed of a core drifts against
 * the counter. */
#include "dose.h"
#include "undertick.h"

/* Event numbers; crates/lab/src/calibration.rs has the same. */
enum {
    CHAIN = 1,
    /* In random order; after each, 3, 20, 50, 200 pairs of work. */
    PLAIN_0 = 10, ORDERED_0 = 20, PAIRED_0 = 50,
    /* In the same order every time. */
    REGULAR_PLAIN_0 = 60, REGULAR_ORDERED_0 = 70, REGULAR_PAIRED_0 = 80,
    PLAIN_INNER = 30, ORDERED_INNER = 31,
    INNER_PLAIN = 40, INNER_ORDERED = 41
};
#define CHAIN_LINKS 100 /* of 200 pairs */

static uint64_t table[4096]; /* 32 KiB: about the first-level cache */

static uint64_t other_work(uint64_t x) {
    int i;
    for (i = 0; i < 160; i++) {
        uint64_t *cell = &table[(x >> 20) & 4095];
        x = x * 6364136223846793005ull + *cell + 1442695040888963407ull;
        *cell ^= x;
    }
    return x;
}

/* Each case is a function of its own: in one function the compiler may take
 * common parts of the cases out of them, across a clock reading's neighbours. */
#define CASE(name, before, work, after) \
    static __attribute__((noinline)) uint64_t name(uint64_t x, uint32_t i) { DOSE_READY(odd); (void)i; (void)odd; before; work; after; return x; }
#define PLAIN(name, event, work) CASE(name, ut_begin(event), work, ut_end(event))
#define ORDERED(name, event, work) CASE(name, ut_begin_ordered(event), work, ut_end_ordered(event))
#define PAIRED(name, event, work) CASE(name, ut_begin_paired(event), work, ut_end_paired(event))

PLAIN(plain_0, PLAIN_0, (void)0)
PLAIN(plain_3, PLAIN_0 + 1, DOSE(x, odd, 3))
PLAIN(plain_20, PLAIN_0 + 2, DOSE(x, odd, 20))
PLAIN(plain_50, PLAIN_0 + 3, DOSE(x, odd, 50))
PLAIN(plain_200, PLAIN_0 + 4, DOSE(x, odd, 200))
ORDERED(ordered_0, ORDERED_0, (void)0)
ORDERED(ordered_3, ORDERED_0 + 1, DOSE(x, odd, 3))
ORDERED(ordered_20, ORDERED_0 + 2, DOSE(x, odd, 20))
ORDERED(ordered_50, ORDERED_0 + 3, DOSE(x, odd, 50))
ORDERED(ordered_200, ORDERED_0 + 4, DOSE(x, odd, 200))
PAIRED(paired_0, PAIRED_0, (void)0)
PAIRED(paired_3, PAIRED_0 + 1, DOSE(x, odd, 3))
PAIRED(paired_20, PAIRED_0 + 2, DOSE(x, odd, 20))
PAIRED(paired_50, PAIRED_0 + 3, DOSE(x, odd, 50))
PAIRED(paired_200, PAIRED_0 + 4, DOSE(x, odd, 200))
PLAIN(plain_inner, PLAIN_INNER, DOSE(x, odd, 50); ut_event(INNER_PLAIN, i); DOSE(x, odd, 50))
ORDERED(ordered_inner, ORDERED_INNER,
        DOSE(x, odd, 50); ut_begin_ordered(INNER_ORDERED); DOSE(x, odd, 50); ut_end_ordered(INNER_ORDERED))

/* The same sections one after the other in one function. */
#define REGULAR(k, work) \
    do { \
        x = other_work(x); \
        ut_begin(REGULAR_PLAIN_0 + (k)); work; ut_end(REGULAR_PLAIN_0 + (k)); \
        x = other_work(x); \
        ut_begin_ordered(REGULAR_ORDERED_0 + (k)); work; ut_end_ordered(REGULAR_ORDERED_0 + (k)); \
        x = other_work(x); \
        ut_begin_paired(REGULAR_PAIRED_0 + (k)); work; ut_end_paired(REGULAR_PAIRED_0 + (k)); \
    } while (0)
static __attribute__((noinline)) uint64_t regular(uint64_t x) {
    DOSE_READY(odd);
    REGULAR(0, (void)0);
    REGULAR(1, DOSE(x, odd, 3));
    REGULAR(2, DOSE(x, odd, 20));
    REGULAR(3, DOSE(x, odd, 50));
    REGULAR(4, DOSE(x, odd, 200));
    return x;
}

typedef uint64_t (*measured_case)(uint64_t, uint32_t);
static const measured_case cases[] = {
    plain_0, plain_3, plain_20, plain_50, plain_200,
    ordered_0, ordered_3, ordered_20, ordered_50, ordered_200,
    paired_0, paired_3, paired_20, paired_50, paired_200,
    plain_inner, ordered_inner,
};
#define CASES (sizeof cases / sizeof cases[0])

/* `passes` through the regular sections, and four cases in random order for
 * each, in turns of 64 and 256, so that both kinds see the same times. */
uint64_t undertick_calibration_workload(uint32_t passes) {
    uint64_t x = 88172645463325252ull, choice = 1;
    DOSE_READY(odd);
    uint32_t i, j;
    for (i = 0; i < passes; i++) {
        x = regular(x);
        if (i % 16 == 0) {
            int link;
            ut_begin_ordered(CHAIN);
            for (link = 0; link < CHAIN_LINKS; link++) DOSE(x, odd, 200);
            ut_end_ordered(CHAIN);
        }
        if (i % 64 != 63) continue;
        for (j = 0; j < 256; j++) {
            x = other_work(x);
            choice = choice * 6364136223846793005ull + 1442695040888963407ull;
            x = cases[(choice >> 33) % CASES](x, j);
        }
    }
    return x;
}
