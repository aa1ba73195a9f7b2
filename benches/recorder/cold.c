/* What a point costs where code and data are cold, because other work between points touches KIB
 * of memory. Built with -DWHAT=0 for nothing, 1 for the floor (one clock reading and one 16-byte
 * store), 2 for ut_event, 3 for a begin, 4 for the floor of that (a reading that waits).
 *
 *     cold KIB POINTS
 *
 * Prints the mean ticks of one call by fenced readings; ticks over ten times the median, such as
 * interrupts, are dropped. Run by `cargo xtask bench cold`. */
#include "fenced.h"
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>

#define SLOTS 65536u
static uint64_t slots[2 * SLOTS];
static size_t next_slot;

static __attribute__((noinline, aligned(64))) void point(uint32_t i) {
#if WHAT == 1 || WHAT == 4
    uint32_t cpu;
    volatile uint64_t *slot = slots + 2 * (next_slot++ % SLOTS);
    slot[0] = WHAT == 1 ? ut_counter_() : ut_counter_after_(&cpu);
    slot[1] = i;
#elif WHAT == 2
    ut_event(1, i);
#elif WHAT == 3
    (void)i;
    ut_begin(1);
#else
    (void)next_slot;
    __asm__ volatile("" ::"r"(i));
#endif
}

static __attribute__((noinline)) uint64_t other_work(const volatile unsigned char *memory, size_t bytes) {
    uint64_t sum = 0;
    size_t i;
    for (i = 0; i < bytes; i += 64) sum += memory[i];
    return sum;
}

int main(int argc, char **argv) {
    const size_t bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) * 1024;
    const uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 5000;
    unsigned char *memory = calloc(1, bytes + 1);
    uint64_t *ticks = malloc(sizeof *ticks * n), x = 0;
    uint32_t i;
    if (memory == NULL || ticks == NULL || n == 0) return 1;
    for (i = 0; i <= bytes; i += 4096) memory[i] = 1;
    for (i = 0; i < n; i++) {
        uint64_t from;
        x += other_work(memory, bytes);
        from = fenced();
        point(i);
        ticks[i] = fenced() - from;
    }
    printf("%.3f\n", mean(ticks, n));
    free(memory);
    free(ticks);
    return x == 1;
}
