/* Programs that report exactly what they published, for counts.rs.
 *
 * kills CHILDREN SEED CELLS: children of eight threads each, one after the other, each killed at
 * a random moment. Thread T of child C counts in CELLS, 16 bytes from 16 * (8 * C + T) on, after
 * each event: the count, and the thread's id.
 *
 * saturate THREADS MILLISECONDS: writes as fast as possible; lines "tid COUNT". */
#define _GNU_SOURCE
#include "undertick.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *count(void *at) {
    volatile uint64_t *cell = (volatile uint64_t *)at;
    uint64_t i;
    cell[1] = (uint64_t)syscall(SYS_gettid);
    for (i = 0;; i++) {
        /* Both halves have the number, so that a torn event shows. */
        if (i % 3 == 2) ut_event64(2, i << 32 | (uint32_t)~i);
        else ut_event(1, (uint32_t)i);
        __atomic_store_n(&cell[0], i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static int kills(int children, uint64_t state, const char *path) {
    int fd = open(path, O_RDWR), c, t;
    size_t bytes = (size_t)children * THREADS * 16;
    uint64_t *cells = (uint64_t *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || cells == MAP_FAILED) return 3;
    for (c = 0; c < children; c++) {
        struct timespec wait = {0, 0};
        uint64_t *mine = cells + 2 * THREADS * c;
        pid_t child;
        state = state * 6364136223846793005u + 1442695040888963407u;
        wait.tv_nsec = 50000 + (long)((state >> 33) % 500000);
        child = fork();
        if (child == 0) {
            /* Else the parent, on a CPU that the threads want, too, wakes late, and all that they
             * record until then must be read. */
            if (nice(19) == -1) _exit(4);
            for (t = 1; t < THREADS; t++) {
                pthread_t id;
                if (pthread_create(&id, NULL, count, mine + 2 * t)) _exit(4);
            }
            count(mine);
        }
        /* The time starts when the first thread writes; not all eight do yet. */
        while (!__atomic_load_n(&mine[1], __ATOMIC_ACQUIRE)) usleep(50);
        nanosleep(&wait, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    return 0;
}

static uint64_t until;
static pthread_barrier_t all;
static void *saturate(void *nothing) {
    uint64_t i = 0;
    char line[64];
    int n;
    pthread_barrier_wait(&all);
    while (now_ns() < until) {
        uint64_t end = i + 1000;
        /* The event number is the number of wraps of the payload, plus 1. */
        for (; i < end; i++) ut_event((uint16_t)(1 + (i >> 32)), (uint32_t)i);
    }
    n = snprintf(line, sizeof line, "%ld %llu\n", syscall(SYS_gettid), (unsigned long long)i);
    if (write(1, line, (size_t)n) != n) abort();
    return nothing;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "kills")) return kills(atoi(argv[2]), strtoull(argv[3], NULL, 10), argv[4]);
    if (argc == 4 && !strcmp(argv[1], "saturate")) {
        int threads = atoi(argv[2]), i;
        pthread_t ids[64];
        until = now_ns() + strtoull(argv[3], NULL, 10) * 1000000u;
        pthread_barrier_init(&all, NULL, (unsigned)threads);
        for (i = 0; i < threads; i++) pthread_create(&ids[i], NULL, saturate, NULL);
        for (i = 0; i < threads; i++) pthread_join(ids[i], NULL);
        return 0;
    }
    return 2;
}
