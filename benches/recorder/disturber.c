/* Disturbs for a share of the time, on and off at random, and prints when.
 *
 *     disturber memory|cpu CPU SHARE SECONDS SEED [ON_SECONDS]
 *
 * `memory` writes through 256 MiB, `cpu` spins. On-phases last 100 to 500 ms, or ON_SECONDS
 * each, with equal phases between them. Prints each phase: begin and end, ns since 1970, and for
 * `memory` the time lost to the hypervisor, ns: blocks that take over a millisecond instead of
 * some tens of microseconds. A share of 1 is always on. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { REGION = 256 << 20, BLOCK = 64 << 10 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static double uniform(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

int main(int count, char **words) {
    const int memory = count > 1 && !strcmp(words[1], "memory");
    const int cpu = count > 2 ? atoi(words[2]) : 0;
    const double share = count > 3 ? atof(words[3]) : 0.5;
    const double seconds = count > 4 ? atof(words[4]) : 10;
    uint64_t state = count > 5 ? strtoull(words[5], NULL, 10) * 7919 + 1 : 1;
    const double alike = count > 6 ? 1e9 * atof(words[6]) : 0;
    char *region = memory ? aligned_alloc(2 << 20, REGION) : NULL;
    volatile unsigned long turns = 0;
    size_t at = 0;
    double end, from, to, last, lost;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        return 1;
    }
    if (region) {
        madvise(region, REGION, MADV_HUGEPAGE); /* more of its time is traffic */
        memset(region, 1, REGION);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready\n");
    end = now_ns() + 1e9 * seconds;
    uniform(&state);
    while (now_ns() < end) {
        const double on = alike > 0 ? alike : 1e8 + 4e8 * uniform(&state);
        const double off = (alike > 0 ? alike : 1e8 + 4e8 * uniform(&state)) * (1 - share) / share;
        from = now_ns();
        to = share >= 1 ? end : from + on;
        last = from;
        lost = 0;
        while (now_ns() < to) {
            const double now = now_ns();
            if (region && now - last > 1e6) lost += now - last;
            last = now;
            if (region) {
                memset(region + at, (int)turns, BLOCK);
                at = (at + BLOCK) % REGION;
            }
            turns++;
        }
        printf("%.0f %.0f %.0f\n", from, now_ns(), lost);
        if (share < 1) {
            struct timespec pause = {(time_t)(off / 1e9), (long)off % 1000000000};
            nanosleep(&pause, NULL);
        }
    }
    return 0;
}
