/* The price of an event and of a span, interleaved with their floors. A floor is one clock
 * reading, for a span one that waits for earlier instructions, and one 16-byte store into a
 * mapped ring. Prints one line per block:
 *   what  thread  ns_per_unit  events
 * Run by `cargo xtask bench recorder`, with and without a session. */
#define _GNU_SOURCE
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define FLOOR_SLOTS 65536u /* 1 MiB, wraps */

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t *make_floor_ring(void) {
    return (uint64_t *)mmap(NULL, FLOOR_SLOTS * 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

/* Not inlined into each other, so that no block profits from its neighbour. */
#define BLOCK(name, statement)                                              \
    static __attribute__((noinline)) void name(uint64_t *ring, uint32_t n) { \
        uint32_t i;                                                          \
        (void)ring;                                                          \
        for (i = 0; i < n; i++) { statement; }                               \
    }

#define FLOOR_STORE(i, reading)                                     \
    do {                                                            \
        volatile uint64_t *slot = ring + 2 * ((i) & (FLOOR_SLOTS - 1)); \
        uint32_t cpu = 0;                                           \
        const uint64_t ts = reading;                                \
        slot[0] = ts;                                               \
        slot[1] = (uint64_t)(i) | (uint64_t)7 << 32 | (uint64_t)cpu << 48; \
    } while (0)
#define WAITING ut_counter_after_(&cpu)

BLOCK(floor_1, FLOOR_STORE(i, ut_counter_()))
BLOCK(floor_waiting, FLOOR_STORE(i, WAITING))
BLOCK(floor_2, FLOOR_STORE(2 * i, WAITING); FLOOR_STORE(2 * i + 1, WAITING))
BLOCK(event, ut_event(7, i))
BLOCK(begin_end, ut_begin(8); ut_end(8))
BLOCK(next_stage, ut_next(9, 10))
BLOCK(empty, __asm__ volatile("" ::"r"(i)))

struct job { pthread_barrier_t *barrier; int thread; int rounds; uint32_t n; };

static void timed(const char *what, void (*block)(uint64_t *, uint32_t), uint64_t *ring, const struct job *job) {
    uint64_t t0 = now_ns(), t1;
    block(ring, job->n);
    t1 = now_ns();
    printf("%s %d %.4f %u\n", what, job->thread, (double)(t1 - t0) / job->n, job->n);
}

static void *run(void *argument) {
    const struct job *job = (const struct job *)argument;
    uint64_t *ring = make_floor_ring();
    int r;
    event(ring, job->n);
    for (r = 0; r < job->rounds; r++) {
        pthread_barrier_wait(job->barrier);
        timed("floor", floor_1, ring, job);
        timed("event", event, ring, job);
        timed("waiting", floor_waiting, ring, job);
        timed("floor2", floor_2, ring, job);
        timed("begin_end", begin_end, ring, job);
        timed("next", next_stage, ring, job);
        timed("empty", empty, ring, job);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1, rounds = argc > 2 ? atoi(argv[2]) : 40, i;
    uint32_t n = argc > 3 ? (uint32_t)atoi(argv[3]) : 200000;
    pthread_t id[16];
    struct job job[16];
    pthread_barrier_t barrier;
    static char buffer[1 << 22];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    if (threads < 1 || threads > 16) return 2;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (i = 0; i < threads; i++) {
        job[i] = (struct job){&barrier, i, rounds, n};
        pthread_create(&id[i], NULL, run, &job[i]);
    }
    for (i = 0; i < threads; i++) pthread_join(id[i], NULL);
    return 0;
}
