/* A program that is recorded by a flight recorder, or whose recorder is killed. Its threads
 * count their events after each write, in memory that survives both; the trace is compared with
 * these counts. */
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
#include <unistd.h>

/* Cells of thread t: 4 t (events), 4 t + 1 (its number), 4 t + 2 (its end). */
enum { STOP = 508, ENDED = 509, WRITTEN = 510, PID = 511 };
static volatile uint64_t *cells;
static int pause_us, burst;

static int tid(void) { return (int)syscall(SYS_gettid); }
static uint64_t load(int cell) { return __atomic_load_n(&cells[cell], __ATOMIC_ACQUIRE); }
static void store(int cell, uint64_t value) { __atomic_store_n(&cells[cell], value, __ATOMIC_RELEASE); }

/* Event i of a thread: every third one is wide, and has its number in both halves. */
static void put(uint64_t i) {
    if (i % 3 == 2) ut_event64(2, i << 32 | (uint32_t)~i);
    else ut_event(1, (uint32_t)i);
}

static void *write_on(void *place) {
    int at = 4 * (int)(intptr_t)place;
    uint64_t i = 0;
    store(at + 1, (uint64_t)tid());
    while (!load(STOP)) {
        int n;
        for (n = 0; n < burst; n++) {
            put(i++);
            store(at, i);
        }
        if (pause_us) usleep((useconds_t)pause_us);
    }
    store(at + 2, 1);
    return NULL;
}

/* A thread that ends after five events. */
static void *pass_by(void *number) {
    uint64_t i;
    for (i = 0; i < 5; i++) ut_event(3, (uint32_t)((uint64_t)(uintptr_t)number * 8 + i));
    __atomic_fetch_add(&cells[WRITTEN], 5, __ATOMIC_RELAXED);
    __atomic_fetch_add(&cells[ENDED], 1, __ATOMIC_RELEASE);
    return NULL;
}

static volatile sig_atomic_t signals;
static void on_signal(int signal) {
    (void)signal;
    signals++;
}

int main(int argc, char **argv) {
    int fd = argc > 2 ? open(argv[2], O_RDWR) : -1;
    unsigned long n = argc > 3 ? strtoul(argv[3], NULL, 10) : 0, i;
    pthread_t ids[64];
    struct sigaction action;
    if (fd < 0 || n == 0) return 2;
    cells = (uint64_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (cells == MAP_FAILED) return 3;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGRTMIN, &action, NULL);
    ut_name(1, "narrow");
    ut_name(2, "wide");
    store(PID, (uint64_t)getpid());
    if (!strcmp(argv[1], "write")) {
        burst = argc > 4 ? atoi(argv[4]) : 1000;
        pause_us = argc > 5 ? atoi(argv[5]) : 0;
        for (i = 0; i < n; i++) pthread_create(&ids[i], NULL, write_on, (void *)(uintptr_t)i);
        for (i = 0; i < n; i++) pthread_join(ids[i], NULL);
    } else if (!strcmp(argv[1], "churn")) { /* eight at a time */
        for (i = 0; i < n && !load(STOP); i += 8) {
            int k;
            for (k = 0; k < 8; k++) pthread_create(&ids[k], NULL, pass_by, (void *)(uintptr_t)(i + (unsigned long)k));
            for (k = 0; k < 8; k++) pthread_join(ids[k], NULL);
        }
        while (!load(STOP)) usleep(1000);
    } else return 2;
    return signals ? 9 : 0;
}
