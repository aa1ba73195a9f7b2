/* A library that records: `work` passes a number of points, in this thread and in a new one. */
#include "undertick.h"

static void *points(void *n) {
    uint32_t i;
    for (i = 0; i < (uint32_t)(uintptr_t)n; i++) {
        ut_event(1, i);
        ut_begin_sampled(2);
        ut_end_sampled(2);
    }
    return NULL;
}

void work(unsigned n);
void work(unsigned n) {
    pthread_t other;
    points((void *)(uintptr_t)n);
    if (n > 0 && pthread_create(&other, NULL, points, (void *)(uintptr_t)n) == 0) pthread_join(other, NULL);
}
