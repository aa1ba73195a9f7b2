/* Sections of 20 us of counted work on CPU 0, with or without a hog pinned to
 * the same CPU. Run by `cargo xtask bench hog`. */
#define _GNU_SOURCE
#include "../../crates/lab/src/dose.h"
#include "undertick.h"
#include <sched.h>
#include <signal.h>
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
    uint64_t x = 1;
    DOSE_READY(odd);
    pid_t child = 0;
    pin(0);
    if (hog && (child = fork()) == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) DOSE(x, odd, 200);
    }
    for (i = 0; i < n; i++) {
        ut_begin(1);
        for (link = 0; link < 70; link++) DOSE(x, odd, 200);
        ut_end(1);
    }
    if (child) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return x == 0;
}
