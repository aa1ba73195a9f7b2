/* THREADS threads write N events each, as fast as they can. Prints "ns_per_event" per thread.
 * Run by `cargo xtask bench loss`. */
#define _GNU_SOURCE
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *run(void *argument) {
    uint32_t n = *(uint32_t *)argument, i;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (i = 0; i < n; i++) ut_event(3, i);
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.3f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / n);
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1, i;
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000000;
    pthread_t id[16];
    if (threads < 1 || threads > 16) return 2;
    for (i = 0; i < threads; i++) pthread_create(&id[i], NULL, run, &n);
    for (i = 0; i < threads; i++) pthread_join(id[i], NULL);
    return 0;
}
