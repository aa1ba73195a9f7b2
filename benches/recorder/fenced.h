/* Fenced readings, and common code of the benchmarks that are compared with them. */
#include "undertick.h"
#include <stdlib.h>

#define BESIDE __attribute__((no_instrument_function)) /* none of what is measured by functions */

static BESIDE uint64_t draw(uint64_t *state) {
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return *state >> 33;
}

/* Fenced on both sides: it excludes work outside, and includes no other work. */
static inline __attribute__((always_inline)) BESIDE uint64_t fenced(void) {
    uint64_t at;
    uint32_t cpu;
    ut_fence_();
    at = ut_counter_after_(&cpu);
    ut_fence_();
    return at;
}

static BESIDE int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the mean of the ticks up to ten times the median, without interrupts. */
static inline BESIDE double mean(uint64_t *ticks, uint32_t n) {
    double sum = 0;
    uint32_t i;
    qsort(ticks, n, sizeof *ticks, compare);
    for (i = 0; i < n && ticks[i] <= 10 * ticks[n / 2]; i++) sum += (double)ticks[i];
    return i > 0 ? sum / i : 0;
}
