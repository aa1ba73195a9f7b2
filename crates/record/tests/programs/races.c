/* Threads that set names of threads, events and rates at the same time, and record. */
#include "undertick.h"
#include <pthread.h>
#include <stdio.h>

static void *work(void *number) {
    const uint16_t me = (uint16_t)(uintptr_t)number;
    char name[16];
    uint16_t i;
    for (i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%d %d", me, i % 20);
        ut_thread_name(name);
        ut_name(i % 8, name);
        ut_sample_rate(i % 16, 1 + i % 3);
        ut_event(i, me);
        ut_begin_sampled(i % 16);
        ut_end_sampled(i % 16);
        ut_begin_paired(300);
        ut_end_paired(300);
        ut_event64(301, i);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[4];
    uintptr_t i;
    for (i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return 0;
}
