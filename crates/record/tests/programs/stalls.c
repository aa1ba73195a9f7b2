/* Requests, most of them quick, some held up for a known time. Each has its number as an event
 * inside. Standard output: "stall NUMBER" for each that was held up.
 *
 *   stalls STALLS PAUSE_MS spin|sleep|lock   in the main thread, with quick requests in between
 *   threads STALLS                           each in a thread that ends right after it
 *   open MS                                  one, which sleeps for that long
 *   events N                                 one event "error", N times quick requests before it */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUEST = 11, NUMBER = 12, ERROR = 13, STALL_MS = 8, QUICK = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static atomic_int has_begun;
static uint32_t number;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void spin(double ms) {
    double until = now_ms() + ms;
    while (now_ms() < until) {}
}

static void nap(double ms) {
    struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    while (nanosleep(&t, &t) != 0) {}
}

/* Holds the lock until the request has waited for it, however late that begins. */
static void *hold(void *nothing) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    while (!atomic_load(&has_begun)) nap(0.05);
    nap(STALL_MS);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void stall(const char *kind, double ms) {
    pthread_t other;
    int by_lock = strcmp(kind, "lock") == 0;
    atomic_store(&has_begun, 0);
    if (by_lock) {
        if (pthread_create(&other, NULL, hold, NULL) != 0) abort();
        pthread_barrier_wait(&held);
    }
    ut_begin(REQUEST);
    ut_event(NUMBER, number);
    atomic_store(&has_begun, 1);
    if (by_lock) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    } else if (strcmp(kind, "sleep") == 0) {
        nap(ms);
    } else {
        spin(ms);
    }
    ut_end(REQUEST);
    printf("stall %u\n", number++);
    if (by_lock) pthread_join(other, NULL);
}

static void quick(void) {
    ut_begin(REQUEST);
    ut_event(NUMBER, number++);
    spin(0.01);
    ut_end(REQUEST);
}

static void *short_life(void *nothing) {
    for (int i = 0; i < QUICK; i++) quick();
    stall("spin", STALL_MS);
    return nothing;
}

int main(int arguments, char **words) {
    if (arguments < 3) return 2;
    const char *what = words[1];
    long n = atol(words[2]);
    ut_name(REQUEST, "request");
    ut_name(NUMBER, "number");
    ut_name(ERROR, "error");
    pthread_barrier_init(&held, NULL, 2);
    if (strcmp(what, "stalls") == 0 && arguments == 5) {
        for (long i = 0; i < n; i++) {
            double until = now_ms() + atof(words[3]);
            while (now_ms() < until) quick();
            stall(words[4], STALL_MS);
        }
    } else if (strcmp(what, "threads") == 0) {
        for (long i = 0; i < n; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, short_life, NULL) != 0) return 1;
            pthread_join(thread, NULL);
        }
    } else if (strcmp(what, "open") == 0) {
        for (int i = 0; i < QUICK; i++) quick();
        stall("sleep", (double)n);
    } else if (strcmp(what, "events") == 0) {
        for (long i = 0; i < n; i++) quick();
        ut_event(ERROR, 1);
        for (long i = 0; i < n; i++) quick();
    } else {
        return 2;
    }
    return 0;
}
