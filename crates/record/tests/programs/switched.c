/* Runs frames with every kind of point inside, for the milliseconds of the command line; prints
 * the number of frames. */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static unsigned long frames(double ms, int ordered) {
    unsigned long n = 0, i;
    double end = now_ms() + ms;
    while (now_ms() < end) {
        if (ordered) ut_begin_ordered(1);
        else ut_begin(1);
        ut_event(2, (uint32_t)n);
        ut_begin(3);
        ut_end(3);
        ut_begin_ordered(4);
        ut_end_ordered(4);
        ut_begin_paired(5);
        ut_end_paired(5);
        ut_begin(6);
        ut_next(6, 7);
        ut_end(7);
        ut_pair(8);
        ut_event64(9, n);
        ut_begin_sampled(10);
        ut_end_sampled(10);
        for (i = 0; i < 10000; i++) __asm__ volatile("" : "+r"(i));
        if (ordered) ut_end_ordered(1);
        else ut_end(1);
        n++;
    }
    return n;
}

static void *other(void *ms) {
    static unsigned long n;
    n = frames(*(double *)ms, 0);
    return &n;
}

int main(int count, char **words) {
    double ms = count > 1 ? atof(words[1]) : 500;
    unsigned long n;
    void *m = NULL;
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, &ms)) return 1;
    n = frames(ms, 1);
    pthread_join(thread, &m);
    printf("%lu\n", n + (m ? *(unsigned long *)m : 0));
    return 0;
}
