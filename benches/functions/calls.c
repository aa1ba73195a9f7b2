/* Blocks of calls of a small function. Compiled with -finstrument-functions and run with and
 * without a recorder of the calls; `bench functions` compares. Prints one line per block: what,
 * thread 0, nanoseconds per call, calls. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BARE __attribute__((no_instrument_function, noinline))

__attribute__((noinline)) uint32_t leaf(uint32_t x);
__attribute__((noinline)) uint32_t outer(uint32_t x);
__attribute__((noinline)) uint32_t skipped(uint32_t x);

uint32_t leaf(uint32_t x) { return x * 2654435761u + 1; }
uint32_t outer(uint32_t x) { return leaf(x) ^ leaf(x + 1); }
uint32_t skipped(uint32_t x) { return x * 2654435761u + 1; }
BARE static uint32_t bare(uint32_t x) { return x * 2654435761u + 1; }

BARE static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#define BLOCK(what, calls_each, call)                                              \
    do {                                                                           \
        const double start = now();                                                \
        for (uint32_t i = 0; i < n; i++) sum += call(i ^ sum);                     \
        printf("%s 0 %.4f %u\n", what, (now() - start) / n / calls_each, n);       \
    } while (0)

BARE int main(int count, char **arguments) {
    const uint32_t rounds = count > 1 ? (uint32_t)atoi(arguments[1]) : 20;
    const uint32_t n = count > 2 ? (uint32_t)atoi(arguments[2]) : 50000;
    uint32_t sum = leaf(1) + outer(2) + skipped(3);
    for (uint32_t round = 0; round < rounds; round++) {
        BLOCK("leaf", 1, leaf);
        BLOCK("nested", 3, outer);
        BLOCK("skipped", 1, skipped);
        BLOCK("bare", 1, bare);
    }
    return sum == 42;
}
