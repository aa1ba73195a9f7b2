// A span "work" whose duration has one known cause: for `cargo xtask bench states`.
//
//   causes CAUSE SEED
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { WORK = 1, FLUSH = 2, SIZE = 3, READ = 4, WRITE = 5, TURNS = 120000 };

static uint64_t chance;

static uint64_t uniform(uint64_t below) {
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (chance >> 33) % below;
}

// Work of about n times 10 ns: each step waits for the one before.
static uint64_t spend(uint64_t n) {
    uint64_t x = n | 1;
    for (uint64_t i = 0; i < n * 8; i++) x = x * 2862933555777941757u + 3037000493u;
    __asm__ volatile("" : "+r"(x));
    return x;
}

static atomic_int neighbour_runs = 1, neighbour_is_on;

// Runs and sleeps in turn.
static void *neighbour(void *unused) {
    ut_thread_name("neighbour");
    uint64_t x = 1;
    for (unsigned turn = 0; atomic_load(&neighbour_runs); turn++) {
        struct timespec now, end, pause = {0, (20 + 13 * (turn % 3)) * 1000000};
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_nsec += (25 + 11 * (turn % 4)) * 1000000;
        atomic_store(&neighbour_is_on, 1);
        do {
            x += spend(100);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 0);
        atomic_store(&neighbour_is_on, 0);
        nanosleep(&pause, 0);
    }
    __asm__ volatile("" : "+r"(x));
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *cause = argv[1];
    chance = strtoull(argv[2], 0, 10);
    for (int i = 0; i < 10; i++) uniform(2);
    int is_neighbour = !strcmp(cause, "neighbour"), is_size = !strcmp(cause, "size"), is_after = !strcmp(cause, "after");
    int is_fault = !strcmp(cause, "fault"), is_phase = !strcmp(cause, "phase"), is_flush = !strcmp(cause, "flush");
    ut_name(WORK, "work");
    ut_name(FLUSH, "flush");
    ut_name(SIZE, "size");
    ut_name(READ, "read");
    ut_name(WRITE, "write");
    ut_thread_name("main");
    char *pages = mmap(0, TURNS * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED || madvise(pages, TURNS * 4096L, MADV_NOHUGEPAGE)) return 3;
    pthread_t thread;
    if (is_neighbour && pthread_create(&thread, 0, neighbour, 0)) return 3;
    long fresh = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        int before = uniform(10) < 4 ? WRITE : READ;
        ut_begin(before);
        spend(20);
        ut_end(before);
        uint32_t size = (uint32_t)uniform(1000);
        uint64_t n = 150 + uniform(30);
        // How much a neighbour slows depends on what its CPU shares with this one: here the work itself is
        // more while it runs, so that the cause is there on every machine.
        if (is_neighbour && atomic_load(&neighbour_is_on)) n += 120;
        if (is_size && size >= 600) n += 120;
        if (is_after && before == WRITE) n += 120;
        if (is_phase && turn > TURNS / 2) n += 120;
        ut_begin(WORK);
        ut_event(SIZE, size);
        spend(n);
        if (is_fault && uniform(10) < 1) pages[4096L * fresh++] = 1;
        if (is_flush && turn % 64 == 63) {
            ut_begin(FLUSH);
            spend(400);
            ut_end(FLUSH);
        }
        ut_end(WORK);
        spend(uniform(60));
    }
    atomic_store(&neighbour_runs, 0);
    if (is_neighbour) pthread_join(thread, 0);
    return 0;
}
