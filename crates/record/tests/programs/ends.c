/* Threads that end while recording signal handlers interrupt them, and whose destructors record,
 * too. Writes the number of recorded events into the file of the first argument. The number of
 * threads follows, and a word if handlers record sampled spans, too. */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AT_ONCE = 4 };
static unsigned long attempts;
static int tids[AT_ONCE], done, is_sampled;
static pthread_key_t late;

static void record(uint16_t event) {
    __atomic_fetch_add(&attempts, 1, __ATOMIC_RELAXED);
    ut_event(event, 0);
}

static void on_signal(int number) {
    (void)number;
    record(2);
    if (is_sampled) {
        ut_begin_sampled(4);
        ut_end_sampled(4);
    }
}

/* Sets the value again, so it is called as often as destructors can be. */
static void at_end(void *value) {
    record(3);
    pthread_setspecific(late, value);
}

static void *thread(void *slot) {
    int i;
    __atomic_store_n((int *)slot, (int)syscall(SYS_gettid), __ATOMIC_RELAXED);
    pthread_setspecific(late, slot);
    for (i = 0; i < 20; i++) record(1);
    if (is_sampled) {
        ut_begin_sampled(4);
        ut_end_sampled(4);
    }
    return NULL;
}

static void *interrupter(void *nothing) {
    const struct timespec pause = {0, 50000};
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        int i;
        for (i = 0; i < AT_ONCE; i++) {
            int tid = __atomic_load_n(&tids[i], __ATOMIC_RELAXED);
            if (tid != 0) syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
        }
        nanosleep(&pause, NULL);
    }
    return nothing;
}

int main(int argc, char **argv) {
    struct sigaction action = {0};
    pthread_t sender, threads[AT_ONCE];
    long left = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
    FILE *said = fopen(argv[1], "w");
    is_sampled = argc > 3;
    pthread_key_create(&late, at_end);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&sender, NULL, interrupter, NULL);
    for (; left > 0; left -= AT_ONCE) {
        int i;
        for (i = 0; i < AT_ONCE; i++) {
            if (pthread_create(&threads[i], NULL, thread, &tids[i]) != 0) return 2;
        }
        for (i = 0; i < AT_ONCE; i++) {
            pthread_join(threads[i], NULL);
            __atomic_store_n(&tids[i], 0, __ATOMIC_RELAXED);
        }
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
    pthread_join(sender, NULL);
    fprintf(said, "%lu\n", attempts);
    return fclose(said) != 0;
}
