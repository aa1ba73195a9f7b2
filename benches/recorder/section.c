/* A span of dependent steps, each a multiplication and a load from a small table, repeated. Its
 * time is proportional to the steps, so 2 % more steps are a slow-down of 2 % on any machine.
 *
 *     section STEPS SECTIONS
 *
 * Run by `cargo xtask bench compare`. */
#include "undertick.h"
#include <stdlib.h>

enum { SECTION = 1, WORDS = 1024 };

static uint64_t table[WORDS];

static __attribute__((noinline)) uint64_t work(uint64_t x, uint32_t steps) {
    uint32_t i;
    for (i = 0; i < steps; i++) {
        x = (x ^ table[x % WORDS]) * 6364136223846793005ull + 1442695040888963407ull;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

int main(int argc, char **argv) {
    uint32_t steps = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    uint32_t sections = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000;
    uint64_t x = 88172645463325252ull;
    uint32_t i;
    for (i = 0; i < WORDS; i++) table[i] = x = x * 2862933555777941757ull + 3037000493ull;
    ut_name(SECTION, "section");
    for (i = 0; i < sections; i++) {
        ut_begin(SECTION);
        x = work(x, steps);
        ut_end(SECTION);
    }
    return x == 1;
}
