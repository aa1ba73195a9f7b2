/* Spans of counted dependent instructions, of about 5, 20, 50 and 200 ns, inside a loop of about
 * 2 us, interleaved with a long chain of the same instructions. `A`, `B`, `C` and `D` are the
 * pairs of instructions in each, set by the compiler's options, because the core's speed
 * determines the time of a pair. Run by `cargo xtask bench in_place`. */
#define _GNU_SOURCE
#include "../../crates/calibrate/src/dose.h"
#include "undertick.h"
#include <sched.h>
#include <stdlib.h>

enum { CHAIN = 1, SMALL = 10, MIDDLE = 11, LARGE = 12, LONG = 13 };

static uint64_t other_work(uint64_t x, int turns) {
    static uint64_t cells[512];
    int i;
    for (i = 0; i < turns; i++) {
        uint64_t *cell = &cells[(x >> 33) & 511];
        x = (x ^ *cell) * 2862933555777941757ull + 3037000493ull;
        *cell += x >> 7;
    }
    return x;
}

/* Expands the amount before it becomes text. */
#define DOSE_OF(x, pairs) DOSE(x, odd, pairs)
#define SECTION(event, work)    \
    do {                        \
        ut_begin_paired(event); \
        work;                   \
        ut_end_paired(event);   \
    } while (0)

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20000, i;
    DOSE_READY(odd);
    uint64_t x = 88172645463325252ull;
    cpu_set_t cpu;
    CPU_ZERO(&cpu);
    CPU_SET(0, &cpu);
    sched_setaffinity(0, sizeof cpu, &cpu);
    for (i = 0; i < n; i++) {
        x = other_work(x, 90);
        SECTION(SMALL, DOSE_OF(x, A));
        x = other_work(x, 80);
        SECTION(MIDDLE, DOSE_OF(x, B));
        x = other_work(x, 70);
        SECTION(LARGE, DOSE_OF(x, C));
        x = other_work(x, 60);
        SECTION(LONG, DOSE_OF(x, D));
        if (i % 64 == 0) {
            int link;
            ut_begin_ordered(CHAIN);
            for (link = 0; link < 50; link++) DOSE(x, odd, 200);
            ut_end_ordered(CHAIN);
        }
    }
    return x == 0;
}
