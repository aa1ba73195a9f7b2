/* What an uncontended lock and unlock takes, by the clock around a long loop: in a
 * tight loop, where the instructions of one pair overlap with those of the next, and
 * in one with fences around each pair, less the same loop with the fences alone.
 * Prints  tight_ns  fenced_ns */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PAIRS = 200000, BLOCKS = 21 };

static pthread_mutex_t mutex;

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void fence(void) {
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static double tight(void) {
    const double from = now_ns();
    int i;
    for (i = 0; i < PAIRS; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return (now_ns() - from) / PAIRS;
}

static double fenced(void) {
    const double from = now_ns();
    int i;
    for (i = 0; i < PAIRS; i++) {
        fence();
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        fence();
    }
    return (now_ns() - from) / PAIRS;
}

static double nothing(void) {
    const double from = now_ns();
    int i;
    for (i = 0; i < PAIRS; i++) {
        fence();
        fence();
    }
    return (now_ns() - from) / PAIRS;
}

/* The least disturbed block. */
static double least(double (*block)(void)) {
    double found = 1e9;
    int i;
    for (i = 0; i < BLOCKS; i++) {
        const double ns = block();
        if (ns < found) found = ns;
    }
    return found;
}

int main(void) {
    pthread_mutexattr_t shared;
    pthread_mutexattr_init(&shared);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex, &shared);
    printf("%.3f %.3f\n", least(tight), least(fenced) - least(nothing));
    return 0;
}
