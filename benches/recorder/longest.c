/* How long the longest events take, at a given rate. Built with -DWHAT=1 for the floor (one clock
 * reading and one 16-byte store into memory that is there), 2 for ut_event.
 *
 *     longest EVENTS EVENTS_PER_S TICKS_PER_S
 *
 * Prints the ticks of the longest event and of the tenth longest. Run by `cargo xtask bench longest`. */
#include "fenced.h"
#include <stdio.h>

#define SLOTS 65536u
static uint64_t slots[2 * SLOTS];

int main(int argc, char **argv) {
    const size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    const double apart = argc > 3 ? strtod(argv[3], NULL) / strtod(argv[2], NULL) : 0;
    uint64_t *ticks = malloc(sizeof *ticks * n), begun, from;
    size_t i;
    if (ticks == NULL || n < 10 || apart <= 0) return 1;
    for (i = 0; i < n; i++) ticks[i] = 0; /* its pages are there */
    for (i = 0; i < 2 * SLOTS; i++) slots[i] = i;
    ut_event(1, 0); /* the thread has its ring */
    begun = fenced();
    for (i = 0; i < n; i++) {
        while ((from = fenced()) < begun + (uint64_t)((double)i * apart)) {
        }
#if WHAT == 1
        ((volatile uint64_t *)slots)[2 * (i % SLOTS)] = ut_counter_();
        ((volatile uint64_t *)slots)[2 * (i % SLOTS) + 1] = i;
#else
        ut_event(1, (uint32_t)i);
#endif
        ticks[i] = fenced() - from;
    }
    qsort(ticks, n, sizeof *ticks, compare);
    printf("%llu %llu\n", (unsigned long long)ticks[n - 1], (unsigned long long)ticks[n - 10]);
    free(ticks);
    return 0;
}
