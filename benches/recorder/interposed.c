/* Price of malloc and free, and of a mutex that is free, in spans around 1, 10 or 1000 of them; prints ns of each
 * operation: the shortest of many rounds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "undertick.h"

enum { SPAN = 1, ROUNDS = 200, OPERATIONS = 20000 };

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double least(double (*round)(int), int inside) {
    double shortest = 1e18;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        const double took = round(inside);
        if (took < shortest) shortest = took;
    }
    return shortest / OPERATIONS;
}

static double allocate(int inside) {
    const double begun = now_ns();
    int i, j;
    for (i = 0; i < OPERATIONS; i += inside) {
        ut_begin(SPAN);
        for (j = 0; j < inside; j++) {
            void *volatile some = malloc((size_t)(16 + 8 * (j % 30)));
            free(some);
        }
        ut_end(SPAN);
    }
    return now_ns() - begun;
}

static double lock(int inside) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const double begun = now_ns();
    int i, j;
    for (i = 0; i < OPERATIONS; i += inside) {
        ut_begin(SPAN);
        for (j = 0; j < inside; j++) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
        ut_end(SPAN);
    }
    return now_ns() - begun;
}

int main(void) {
    static const int inside[] = {1, 10, 1000};
    unsigned i;
    for (i = 0; i < 3; i++) printf("%.3f ", least(allocate, inside[i]));
    printf("%.3f\n", least(lock, 1000));
    return 0;
}
