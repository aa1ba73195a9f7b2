/* Requests, most of them quick, some held up for a known time. Each has its number as an event
 * inside. Standard output: "stall NUMBER" for each that was held up.
 *
 *   stalls STALLS PAUSE_MS KIND              in the main thread, with quick requests in between; KIND is
 *                                            spin, sleep, lock, stopped (SIGSTOP), preempted=FILE (by
 *                                            `preempt FILE`), or disk=FILE (page faults of a file of 64 MiB
 *                                            or more that is on a disk)
 *   preempt FILE                             takes CPU 0 with real-time priority when a program asks for it
 *   threads STALLS                           each in a thread that ends right after it
 *   open MS                                  one, which sleeps for that long
 *   events N                                 one event "error", N times quick requests before it */
#define _GNU_SOURCE
#include "undertick.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST = 11, NUMBER = 12, ERROR = 13, STALL_MS = 8, QUICK = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held;
static atomic_int has_begun;
static uint32_t number;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void spin(double ms) {
    double until = now_ms() + ms;
    while (now_ms() < until) {}
}

static void nap(double ms) {
    struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    while (nanosleep(&t, &t) != 0) {}
}

/* Holds the lock until the request has waited for it, however late that begins. */
static void *hold(void *nothing) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&held);
    while (!atomic_load(&has_begun)) nap(0.05);
    nap(STALL_MS);
    pthread_mutex_unlock(&lock);
    return nothing;
}

/* Shared with a helper, which holds this process up when it is told to. */
static struct shared {
    atomic_int wanted; /* 1: hold up; 0: done */
    atomic_int is_there;
} *shared;

static struct shared *map_shared(int file) {
    const int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    struct shared *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, file, 0);
    if (mapped == MAP_FAILED) abort();
    return mapped;
}

/* Stops the program each time, and lets it go on after a while. */
static void start_stopper(void) {
    const pid_t program = getpid();
    shared = map_shared(-1);
    if (fork() != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        while (!atomic_load(&shared->wanted)) nap(0.1);
        kill(program, SIGSTOP);
        nap(STALL_MS);
        atomic_store(&shared->wanted, 0);
        kill(program, SIGCONT);
    }
}

static void stay_on_cpu_0(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) abort();
}

/* Another program, which takes CPU 0 with real-time priority each time. */
static int preempt(const char *path) {
    const struct sched_param priority = {.sched_priority = 1};
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0) return 2;
    shared = map_shared(file);
    stay_on_cpu_0();
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0) {
        perror("sched_setscheduler");
        return 3;
    }
    atomic_store(&shared->is_there, 1);
    for (;;) {
        while (!atomic_load(&shared->wanted)) nap(0.1);
        spin(STALL_MS);
        atomic_store(&shared->wanted, 0);
    }
}

/* Waits for that program. */
static void await_preempter(const char *path) {
    int file;
    while ((file = open(path, O_RDWR)) < 0) nap(1);
    for (struct stat about = {0}; about.st_size < 4096; fstat(file, &about)) nap(1);
    shared = map_shared(file);
    while (!atomic_load(&shared->is_there)) nap(1);
    stay_on_cpu_0();
}

static const char *cold;
static int cold_file = -1;
static long cold_bytes, cold_at;

static void open_cold(const char *path) {
    struct stat about;
    cold_file = open(path, O_RDONLY);
    if (cold_file < 0 || fstat(cold_file, &about) != 0) abort();
    cold_bytes = about.st_size & ~4095L;
    cold = mmap(NULL, (size_t)cold_bytes, PROT_READ, MAP_SHARED, cold_file, 0);
    if (cold == MAP_FAILED) abort();
    madvise((void *)cold, (size_t)cold_bytes, MADV_RANDOM);
}

/* Nothing of the file is in memory any more. */
static void make_cold(void) {
    madvise((void *)cold, (size_t)cold_bytes, MADV_DONTNEED);
    posix_fadvise(cold_file, 0, 0, POSIX_FADV_DONTNEED);
}

/* Reads pages that are on the disk, for that long. */
static int fault(double ms) {
    const double until = now_ms() + ms;
    int sum = 0;
    while (now_ms() < until) {
        cold_at = (cold_at + 37 * 4096) % cold_bytes;
        sum += ((const volatile char *)cold)[cold_at];
    }
    return sum;
}

static void stall(const char *kind, double ms) {
    pthread_t other;
    int by_lock = strcmp(kind, "lock") == 0;
    atomic_store(&has_begun, 0);
    if (cold != NULL) make_cold();
    if (by_lock) {
        if (pthread_create(&other, NULL, hold, NULL) != 0) abort();
        pthread_barrier_wait(&held);
    }
    ut_begin(REQUEST);
    ut_event(NUMBER, number);
    atomic_store(&has_begun, 1);
    if (by_lock) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    } else if (shared != NULL) {
        atomic_store(&shared->wanted, 1);
        while (atomic_load(&shared->wanted)) {}
    } else if (cold != NULL) {
        fault(ms);
    } else if (strcmp(kind, "sleep") == 0) {
        nap(ms);
    } else {
        spin(ms);
    }
    ut_end(REQUEST);
    printf("stall %u\n", number++);
    if (by_lock) pthread_join(other, NULL);
}

static void quick(void) {
    ut_begin(REQUEST);
    ut_event(NUMBER, number++);
    spin(0.01);
    ut_end(REQUEST);
}

static void *short_life(void *nothing) {
    for (int i = 0; i < QUICK; i++) quick();
    stall("spin", STALL_MS);
    return nothing;
}

int main(int arguments, char **words) {
    if (arguments < 3) return 2;
    const char *what = words[1];
    long n = atol(words[2]);
    if (strcmp(what, "preempt") == 0) return preempt(words[2]);
    ut_name(REQUEST, "request");
    ut_name(NUMBER, "number");
    ut_name(ERROR, "error");
    pthread_barrier_init(&held, NULL, 2);
    if (strcmp(what, "stalls") == 0 && arguments == 5) {
        if (strncmp(words[4], "disk=", 5) == 0) open_cold(words[4] + 5);
        if (strncmp(words[4], "preempted=", 10) == 0) await_preempter(words[4] + 10);
        if (strcmp(words[4], "stopped") == 0) start_stopper();
        for (long i = 0; i < n; i++) {
            double until = now_ms() + atof(words[3]);
            while (now_ms() < until) quick();
            stall(words[4], STALL_MS);
        }
    } else if (strcmp(what, "threads") == 0) {
        for (long i = 0; i < n; i++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, short_life, NULL) != 0) return 1;
            pthread_join(thread, NULL);
        }
    } else if (strcmp(what, "open") == 0) {
        for (int i = 0; i < QUICK; i++) quick();
        stall("sleep", (double)n);
    } else if (strcmp(what, "events") == 0) {
        for (long i = 0; i < n; i++) quick();
        ut_event(ERROR, 1);
        for (long i = 0; i < n; i++) quick();
    } else {
        return 2;
    }
    return 0;
}
