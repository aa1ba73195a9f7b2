/* Fills segment after segment, slowly enough for the collector to prepare the next one's pages.
 * Ends with the fewest page faults that a segment took, or 77 if the kernel cannot be asked for
 * pages. -DAS_LIBRARY builds it for a program that records by another recorder. */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

enum { SEGMENTS = 24, EVENTS = 8192, POPULATE_WRITE = 23 };

static long faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : 0;
}

int fewest_faults(void (*by)(uint16_t, uint32_t)) {
    const struct timespec pause = {0, 20000000};
    long fewest = 76;
    int segment, i;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, 4096, POPULATE_WRITE) != 0) return 77;
    for (segment = 0; segment < SEGMENTS; segment++) {
        const long before = faults();
        long taken;
        for (i = 0; i < EVENTS; i++) by(1, (uint32_t)i);
        taken = faults() - before;
        if (segment > 1 && taken < fewest) fewest = taken;
        nanosleep(&pause, NULL);
    }
    return (int)fewest;
}

#ifndef AS_LIBRARY
#include "undertick.h"

static void in_c(uint16_t event, uint32_t payload) { ut_event(event, payload); }

int main(void) { return fewest_faults(in_c); }
#endif
