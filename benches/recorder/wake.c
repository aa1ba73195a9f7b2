/* Two threads that wake each other with futexes: on one CPU, on two busy ones (with a thread of
 * lowest priority on each), or on two idle ones. A serialised reading comes right before each
 * wake and right after each return. Run by `cargo xtask bench wake`. */
#define _GNU_SOURCE
#include "undertick.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PING = 1, GOT_PING = 2, PONG = 3, GOT_PONG = 4, ROUND = 5 };

static uint32_t word[2];
static unsigned long rounds;
static volatile int over;

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) exit(3);
}

static void *idler(void *cpu) {
    struct sched_param least = {0};
    sched_setscheduler(0, SCHED_IDLE, &least);
    pin((int)(intptr_t)cpu);
    while (!over) continue;
    return NULL;
}

static void wake(int other) {
    __atomic_store_n(&word[other], 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &word[other], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void sleep_until_woken(int self) {
    while (!__atomic_exchange_n(&word[self], 0, __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &word[self], FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void *answer(void *cpu) {
    unsigned long i;
    pin((int)(intptr_t)cpu);
    for (i = 0; i < rounds; i++) {
        sleep_until_woken(1);
        ut_end_ordered(GOT_PING);
        ut_begin_ordered(PONG);
        wake(0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *where = argc > 1 ? argv[1] : "one";
    const int cpus = strcmp(where, "one") ? 2 : 1, busy = !strcmp(where, "busy");
    pthread_t other, idlers[2];
    unsigned long i;
    rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    for (i = 0; busy && i < 2; i++) pthread_create(&idlers[i], NULL, idler, (void *)(intptr_t)i);
    pthread_create(&other, NULL, answer, (void *)(intptr_t)(cpus - 1));
    pin(0);
    usleep(20000);
    for (i = 0; i < rounds; i++) {
        ut_begin_ordered(ROUND);
        ut_begin_ordered(PING);
        wake(1);
        sleep_until_woken(0);
        ut_end_ordered(GOT_PONG);
        ut_end_ordered(ROUND);
    }
    over = 1;
    pthread_join(other, NULL);
    for (i = 0; busy && i < 2; i++) pthread_join(idlers[i], NULL);
    return 0;
}
