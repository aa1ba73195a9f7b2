/* What recording costs, in a loop of the kind that programs have: about 2 us
 * of other work around each section, the cases in random order, so that no
 * case profits from its neighbour. Sections hold known doses of work; what a
 * section shows beyond its dose is what recording adds. A long chain of the
 * same instructions, in between, says what a dose takes, because the speed of
 * a core drifts against the counter. */
#include "dose.h"
#include "undertick.h"

/* Event numbers; crates/lab/src/calibration.rs has the same. */
enum {
    CHAIN = 1,
    PLAIN_0 = 10, PLAIN_20 = 11, PLAIN_50 = 12, PLAIN_200 = 13,
    ORDERED_0 = 20, ORDERED_20 = 21, ORDERED_50 = 22, ORDERED_200 = 23,
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

#define PLAIN(event, work) do { ut_begin(event); work; ut_end(event); } while (0)
#define ORDERED(event, work) do { ut_begin_ordered(event); work; ut_end_ordered(event); } while (0)

uint64_t undertick_calibration_workload(uint32_t iterations) {
    uint64_t x = 88172645463325252ull, choice = 1;
    uint32_t i;
    for (i = 0; i < iterations; i++) {
        x = other_work(x);
        choice = choice * 6364136223846793005ull + 1442695040888963407ull;
        switch ((choice >> 33) % 10) {
        case 0: PLAIN(PLAIN_0, (void)0); break;
        case 1: PLAIN(PLAIN_20, DOSE(x, 20)); break;
        case 2: PLAIN(PLAIN_50, DOSE(x, 50)); break;
        case 3: PLAIN(PLAIN_200, DOSE(x, 200)); break;
        case 4: ORDERED(ORDERED_0, (void)0); break;
        case 5: ORDERED(ORDERED_20, DOSE(x, 20)); break;
        case 6: ORDERED(ORDERED_50, DOSE(x, 50)); break;
        case 7: ORDERED(ORDERED_200, DOSE(x, 200)); break;
        case 8: PLAIN(PLAIN_INNER, DOSE(x, 50); ut_event(INNER_PLAIN, i); DOSE(x, 50)); break;
        default:
            ORDERED(ORDERED_INNER, DOSE(x, 50); ut_begin_ordered(INNER_ORDERED); DOSE(x, 50));
            ut_end_ordered(INNER_ORDERED);
            break;
        }
        if (i % 128 == 0) {
            int link;
            ut_begin_ordered(CHAIN);
            for (link = 0; link < CHAIN_LINKS; link++) DOSE(x, 200);
            ut_end_ordered(CHAIN);
        }
    }
    return x;
}
