/* Known work in known functions: two spans that use a CPU for known times, and one that waits.
   Usage: stacks ROUNDS. Writes the CPU time that each function measured itself, ns. */
#include "undertick.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORK = 1, INNER = 2, WAIT = 3, STUCK = 4 };

static double spent[3];

static double cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static volatile unsigned sink;

/* Uses the CPU for that long, in code of the caller. */
#define USE(NS, PLACE)                                                \
    do {                                                              \
        double from = cpu_ns(), now;                                  \
        do {                                                          \
            for (unsigned i = 0; i < 20000; i++) sink += i * sink;    \
            now = cpu_ns();                                           \
        } while (now - from < (NS));                                  \
        spent[PLACE] += now - from;                                   \
    } while (0)

__attribute__((noinline)) static void hot(void) { USE(6e6, 0); }

__attribute__((noinline)) static void cold(void) { USE(2e6, 1); }

__attribute__((noinline)) static void in_inner(void) { USE(4e6, 2); }

/* A deep way to a leaf, without frame pointers where the compiler leaves them out. */
__attribute__((noinline)) static void deep(int levels) {
    if (levels > 0)
        deep(levels - 1);
    else
        in_inner();
    sink++;
}

__attribute__((noinline)) static void stall(void) {
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    sink++;
}

static void *thread(void *argument) {
    int rounds = *(int *)argument;
    ut_name(WORK, "work");
    ut_name(INNER, "inner");
    ut_name(WAIT, "wait");
    while (rounds-- > 0) {
        ut_begin(WORK);
        hot();
        ut_begin(INNER);
        deep(20);
        ut_end(INNER);
        cold();
        ut_end(WORK);
        ut_begin(WAIT);
        stall();
        ut_end(WAIT);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 100;
    pthread_t other;
    if (pthread_create(&other, NULL, thread, &rounds) != 0) return 1;
    pthread_join(other, NULL);
    ut_name(STUCK, "stuck");
    if (argc > 1 && argv[1][0] == '0') { /* never ends this span */
        ut_begin(STUCK);
        for (int i = 0; i < 20; i++) hot();
        stall();
        return 0;
    }
    printf("%.0f %.0f %.0f\n", spent[0], spent[1], spent[2]);
    return 0;
}
