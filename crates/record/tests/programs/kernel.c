/* What the kernel does to a thread, with the thread's own report: lines "WORD tid NUMBER ..." on
 * standard output. The program does not know what the recorder wrote; the test compares. */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTER = 1, INNER = 2, STEP = 3, WARM = 4, BEFORE = 5, AFTER = 6 };

static int tid(void) { return (int)syscall(SYS_gettid); }

/* Switches of the thread so far, as the kernel counts them: waits, all others. */
struct account { long waits, others; };
static struct account account(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) abort();
    return (struct account){usage.ru_nvcsw, usage.ru_nivcsw};
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) abort();
}

/* The counts are read between two stamps at either end. What lies between the inner stamps is in
 * them; what lies outside the outer ones is not. */
static struct account begin(void) {
    ut_event(OUTER, 0);
    struct account at = account();
    ut_event(INNER, 0);
    return at;
}
static void end(const char *word, struct account from) {
    ut_event(INNER, 1);
    struct account to = account();
    ut_event(OUTER, 1);
    printf("%s %d %ld %ld\n", word, tid(), to.waits - from.waits, to.others - from.others);
    fflush(stdout);
}

static void nap(long ns) {
    struct timespec t = {0, ns};
    while (nanosleep(&t, &t) != 0) {}
}

/* Computes for a while, and on a busy machine, where its turns are rare, until it was taken off its CPU
 * that often; no longer than a minute. */
static void spin(double seconds, long times) {
    double from = now();
    struct account before = account();
    while (now() < from + seconds ||
           (account().others < before.others + times && now() < from + 60)) {}
}

static void *sleeper(void *times) {
    struct account from = begin();
    for (long i = 0; i < (long)(intptr_t)times; i++) nap(200000);
    end("sleeper", from);
    return NULL;
}

static volatile int stop;
static void *hog(void *cpu) {
    stay_on((int)(intptr_t)cpu);
    while (!stop) {}
    return NULL;
}

/* Timer interrupts of the CPU so far; -1: not known. */
static long timer_interrupts(int cpu) {
    char line[1 << 14];
    long count = -1;
    FILE *file = fopen("/proc/interrupts", "r");
    while (file && fgets(line, sizeof line, file)) {
        char *at = strstr(line, "LOC:");
        if (!at) continue;
        at += 4;
        for (int i = 0; i <= cpu; i++) count = strtol(at, &at, 10);
    }
    if (file) fclose(file);
    return count;
}

static void *hogged(void *cpu) {
    stay_on((int)(intptr_t)cpu);
    long before = timer_interrupts((int)(intptr_t)cpu);
    struct account from = begin();
    spin(0.4, 20);
    end("hogged", from);
    printf("timer %d %ld\n", tid(), before < 0 ? -1 : timer_interrupts((int)(intptr_t)cpu) - before);
    return NULL;
}

/* Runs beside a busy thread on the same CPU. */
static void beside_a_hog(int cpu) {
    pthread_t one, other;
    pthread_create(&one, NULL, hog, (void *)(intptr_t)cpu);
    pthread_create(&other, NULL, hogged, (void *)(intptr_t)cpu);
    pthread_join(other, NULL);
    stop = 1;
    pthread_join(one, NULL);
}

/* Goes to and fro between two CPUs; each stamp has the CPU. */
static void *mover(void *cpus) {
    int *two = cpus;
    stay_on(two[0]);
    struct account from = begin();
    for (int i = 1; i <= 40; i++) {
        stay_on(two[i % 2]);
        ut_event(STEP, (uint32_t)sched_getcpu());
    }
    end("mover", from);
    return NULL;
}

static void *wait_for_byte(void *fds) {
    int *both = fds;
    char byte;
    struct account from = begin();
    for (int i = 0; i < 500; i++) {
        if (read(both[0], &byte, 1) != 1 || write(both[3], &byte, 1) != 1) abort();
    }
    end("pinged", from);
    return NULL;
}

/* Two threads that wake each other by pipes. */
static void ping_pong(void) {
    int to[2], back[2];
    if (pipe(to) != 0 || pipe(back) != 0) abort();
    int fds[4] = {to[0], to[1], back[0], back[1]};
    pthread_t other;
    pthread_create(&other, NULL, wait_for_byte, fds);
    struct account from = begin();
    for (int i = 0; i < 500; i++) {
        char byte = 0;
        if (write(to[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) abort();
    }
    end("pinger", from);
    pthread_join(other, NULL);
}

/* Touches pages for the first time. */
static void faults(void) {
    long page = sysconf(_SC_PAGESIZE), pages = 300;
    char *at = mmap(NULL, (size_t)(page * pages), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || madvise(at, (size_t)(page * pages), MADV_NOHUGEPAGE) != 0) abort();
    struct rusage before, after;
    ut_event(WARM, 0); /* the first one makes the ring */
    getrusage(RUSAGE_THREAD, &before);
    ut_event(INNER, 2);
    for (long i = 0; i < pages; i++) at[i * page] = 1;
    ut_event(INNER, 3);
    getrusage(RUSAGE_THREAD, &after);
    printf("faults %d %ld\n", tid(), after.ru_minflt - before.ru_minflt);
}

/* A child process that sleeps, and its counts. */
static void child(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct account from = begin();
        for (int i = 0; i < 50; i++) nap(200000);
        end("child", from);
        exit(0);
    }
    waitpid(pid, NULL, 0);
}

/* Each wake lies between two stamps, one before it and one after it: of a thread that writes to
 * a pipe and of one that waits for it. */
enum { ROUNDS = 20000 };
struct line { int cpus[2], to[2], back[2]; };
static void *woken(void *of) {
    struct line *line = of;
    char byte;
    stay_on(line->cpus[1]);
    printf("woken %d %d\n", tid(), ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        if (read(line->to[0], &byte, 1) != 1) abort();
        ut_begin_ordered(AFTER);
        if (write(line->back[1], &byte, 1) != 1) abort();
    }
    return NULL;
}
static void line_up(int waker, int woken_on) {
    struct line line = {{waker, woken_on}, {0, 0}, {0, 0}};
    pthread_t other;
    char byte = 0;
    if (pipe(line.to) != 0 || pipe(line.back) != 0) abort();
    pthread_create(&other, NULL, woken, &line);
    stay_on(waker);
    for (int i = 0; i < ROUNDS; i++) {
        ut_begin_ordered(BEFORE);
        if (write(line.to[1], &byte, 1) != 1 || read(line.back[0], &byte, 1) != 1) abort();
    }
    pthread_join(other, NULL);
}

static void two_cpus(int *two) {
    cpu_set_t set;
    int found = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) abort();
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &set)) two[found++] = cpu;
    if (found == 1) two[1] = two[0];
}

int main(int argc, char **argv) {
    int cpus[2];
    pthread_t thread;
    two_cpus(cpus);
    printf("main %d %d %d\n", tid(), cpus[0], cpus[1]);
    fflush(stdout);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "sleep") == 0) {
            pthread_create(&thread, NULL, sleeper, (void *)200);
            pthread_join(thread, NULL);
        } else if (strcmp(argv[i], "hog") == 0) {
            beside_a_hog(cpus[1]);
        } else if (strcmp(argv[i], "move") == 0) {
            pthread_create(&thread, NULL, mover, cpus);
            pthread_join(thread, NULL);
        } else if (strcmp(argv[i], "ping") == 0) {
            ping_pong();
        } else if (strcmp(argv[i], "fault") == 0) {
            faults();
        } else if (strcmp(argv[i], "child") == 0) {
            child();
        } else if (strcmp(argv[i], "wake-here") == 0) {
            line_up(cpus[1], cpus[1]);
        } else if (strcmp(argv[i], "wake-there") == 0) {
            line_up(cpus[0], cpus[1]);
        } else if (strcmp(argv[i], "long") == 0) {
            for (int j = 0; j < 100000; j++) nap(1000000);
        } else {
            return 2;
        }
    }
    return 0;
}
