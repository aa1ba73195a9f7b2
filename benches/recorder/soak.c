/* THREADS EVENTS SECONDS: EVENTS events a second, all threads together, for SECONDS; prints the
 * number written. Each millisecond a thread writes its share. */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned long each_ms, milliseconds;

static void *run(void *count) {
    struct timespec next;
    unsigned long ms, n = 0, i;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (ms = 0; ms < milliseconds; ms++) {
        for (i = 0; i < each_ms; i += 2, n += 2) {
            ut_begin(1);
            ut_end(1);
        }
        next.tv_nsec += 1000000;
        if (next.tv_nsec >= 1000000000) next.tv_nsec -= 1000000000, next.tv_sec++;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    *(unsigned long *)count = n;
    return NULL;
}

int main(int argc, char **argv) {
    unsigned long threads, counts[64] = {0}, all = 0, i;
    pthread_t ids[64];
    if (argc != 4 || (threads = strtoul(argv[1], NULL, 10)) == 0 || threads > 64) return 2;
    each_ms = strtoul(argv[2], NULL, 10) / threads / 1000;
    milliseconds = 1000 * strtoul(argv[3], NULL, 10);
    ut_name(1, "section");
    for (i = 0; i < threads; i++) pthread_create(&ids[i], NULL, run, &counts[i]);
    for (i = 0; i < threads; i++) pthread_join(ids[i], NULL), all += counts[i];
    printf("%lu\n", all);
    return 0;
}
