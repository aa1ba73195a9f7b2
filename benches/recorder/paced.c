/* paced SECONDS EVENTS_PER_S_OR_0 THREADS: spans with two stages, at that many events per second
 * on each thread, or as fast as possible. Prints the number of events. */
#include "undertick.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REQUEST = 1, PARSE = 2, STORE = 3, PASSES = 200, EVENTS_OF_PASS = 5 };
static double seconds, wanted;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *count) {
    double begun = now(), until = begun + seconds;
    for (long done = 0;; done += PASSES) {
        double at = now();
        if (at >= until) break;
        double ahead = wanted > 0 ? begun + (double)(done * EVENTS_OF_PASS) / wanted - at : 0;
        if (ahead > 0) {
            struct timespec pause = {(time_t)ahead, (long)((ahead - (double)(time_t)ahead) * 1e9)};
            nanosleep(&pause, NULL);
        }
        for (int i = 0; i < PASSES; i++) {
            ut_begin(REQUEST);
            ut_begin(PARSE);
            for (volatile int k = 0; k < 20; k++) { }
            ut_next(PARSE, STORE);
            ut_end(STORE);
            ut_end(REQUEST);
        }
        *(long *)count += PASSES;
    }
    return NULL;
}

int main(int arguments, char **values) {
    if (arguments < 4) return 2;
    seconds = atof(values[1]);
    wanted = atof(values[2]);
    int threads = atoi(values[3]);
    ut_name(REQUEST, "request");
    ut_name(PARSE, "parse");
    ut_name(STORE, "store");
    pthread_t running[64];
    static long counts[64][16]; /* a cache line each */
    for (int i = 0; i < threads; i++) pthread_create(&running[i], NULL, work, counts[i]);
    long sum = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(running[i], NULL);
        sum += counts[i][0];
    }
    printf("%ld\n", sum * EVENTS_OF_PASS);
    return 0;
}
