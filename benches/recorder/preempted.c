/* Spans of 20 us of counted work on CPU 0, with or without a hog pinned to the same CPU. A
 * number in a thousand, at random, really take eight times as long; their count is written to a
 * file. Run by `cargo xtask bench hog` and `bench evidence`. */
#define _GNU_SOURCE
#include "../../crates/calibrate/src/dose.h"
#include "undertick.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) exit(3);
}

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 50000, i, link;
    int hog = argc > 2 && atoi(argv[2]);
    uint32_t slow_per_mille = argc > 3 ? (uint32_t)atoi(argv[3]) : 0, slow = 0;
    uint64_t x = 1, choice = 1;
    DOSE_READY(odd);
    pid_t child = 0;
    pin(0);
    if (hog && (child = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) DOSE(x, odd, 200);
    }
    for (i = 0; i < n; i++) {
        uint32_t links = 70;
        choice = choice * 6364136223846793005ull + 1442695040888963407ull;
        if ((choice >> 33) % 1000 < slow_per_mille) {
            links *= 8;
            slow++;
        }
        ut_begin(1);
        for (link = 0; link < links; link++) DOSE(x, odd, 200);
        ut_end(1);
    }
    if (argc > 4) {
        FILE *count = fopen(argv[4], "w");
        if (!count || fprintf(count, "%u", slow) < 0 || fclose(count)) return 4;
    }
    if (child) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return x == 0;
}
