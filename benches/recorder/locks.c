/* What an uncontended lock and unlock takes in place, compared with long loops, which the
 * program times by the clock around them.
 *
 *     locks SECONDS
 *
 * While recorded, blocks of spans around a pair (event 1) and of spans around nothing (event 2)
 * follow each other in random order. The truth of a pair in place is what it adds to its loop,
 * which has the same points in both: the clock is read once in thousands of pairs, and
 * neighbouring blocks share the core's speed. Also measured is a pair in a tight loop, between
 * fences, and beside 64 multiplications each of which needs the one before. Prints, ns:
 *     in_place tight fenced hidden
 * (medians of differences between neighbouring blocks). */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAIR = 1, NOTHING = 2, LOOPS = 500, MOST = 200000 };

static pthread_mutex_t mutex;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static inline __attribute__((always_inline)) void fence(void) {
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* 64 multiplications, each of which needs the one before. */
static inline __attribute__((always_inline)) uint64_t chain(uint64_t x) {
    int i;
#pragma GCC unroll 64
    for (i = 0; i < 64; i++) {
        x *= 6364136223846793005u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

#define LOOP(name, body)                             \
    static double name(void) {                       \
        const double from = now_ns();                \
        uint64_t x = 3;                              \
        int i;                                       \
        for (i = 0; i < LOOPS; i++) {                \
            body                                     \
        }                                            \
        __asm__ volatile("" ::"r"(x));               \
        return (now_ns() - from) / LOOPS;            \
    }

#define BOTH pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex);

LOOP(section_pair, ut_begin_ordered(PAIR); BOTH ut_end_ordered(PAIR);)
LOOP(section_nothing, ut_begin_ordered(NOTHING); ut_end_ordered(NOTHING);)
LOOP(tight_pair, BOTH)
LOOP(tight_nothing, __asm__ volatile("" ::: "memory");)
LOOP(fenced_pair, fence(); BOTH fence();)
LOOP(fenced_nothing, fence(); fence();)
LOOP(hidden_pair, x = chain(x); BOTH)
LOOP(hidden_nothing, x = chain(x);)

static double (*const with[4])(void) = {section_pair, tight_pair, fenced_pair, hidden_pair};
static double (*const without[4])(void) = {section_nothing, tight_nothing, fenced_nothing, hidden_nothing};
static double differences[4][MOST];

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **words) {
    const double seconds = count > 1 ? atof(words[1]) : 1;
    const double end = now_ns() + 1e9 * seconds;
    uint64_t random = 1;
    int n = 0, kind;
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex, &shared);
    while (n < MOST && now_ns() < end) {
        for (kind = 0; kind < 4; kind++) {
            double a, b;
            random = random * 6364136223846793005u + 1442695040888963407u;
            if (random >> 63) {
                a = with[kind]();
                b = without[kind]();
            } else {
                b = without[kind]();
                a = with[kind]();
            }
            differences[kind][n] = a - b;
        }
        n++;
    }
    for (kind = 0; kind < 4; kind++) {
        qsort(differences[kind], (size_t)n, sizeof(double), ascending);
        printf("%.3f ", n ? differences[kind][n / 2] : 0);
    }
    printf("\n");
    return 0;
}
