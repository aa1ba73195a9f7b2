/* BLOCKS EVENTS WORK [full]: blocks of EVENTS events with WORK steps of work before each; prints
 * the nanoseconds of each block, per event. With `full` the recorder, the parent of this
 * process, is stopped, so that the ring is full from its second segment on. */
#define _GNU_SOURCE
#include "undertick.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
    unsigned long blocks, events, steps, b, i, s;
    uint64_t x = 1;
    if (argc < 4) return 2;
    blocks = strtoul(argv[1], NULL, 10);
    events = strtoul(argv[2], NULL, 10);
    steps = strtoul(argv[3], NULL, 10);
    if (argc > 4) kill(getppid(), SIGSTOP);
    for (b = 0; b < blocks; b++) {
        double before = now_ns();
        for (i = 0; i < events; i++) {
            /* Each step waits for the one before, so the latency is proportional to the steps. */
            for (s = 0; s < steps; s++) x = x * 6364136223846793005u + 1;
            __asm__ volatile("" : "+r"(x));
            ut_event(1, (uint32_t)i);
        }
        printf("%.4f\n", (now_ns() - before) / (double)events);
    }
    if (argc > 4) kill(getppid(), SIGCONT);
    return 0;
}
