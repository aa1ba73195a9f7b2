/* A neighbour: `memory` walks 64 MiB on the given CPU, any other word only spins there. Runs
 * until killed. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    size_t bytes = (size_t)64 << 20, i = 0;
    volatile uint64_t *cells = malloc(bytes);
    uint64_t x = 1;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(argc > 2 ? atoi(argv[2]) : 0, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    if (!cells) return 1;
    for (;;) {
        if (argc > 1 && !strcmp(argv[1], "memory")) {
            cells[i] += x;
            i = (i + 8 * 17) % (bytes / 8);
        }
        x = x * 6364136223846793005ull + 1;
        __asm__ volatile("" : "+r"(x));
    }
}
