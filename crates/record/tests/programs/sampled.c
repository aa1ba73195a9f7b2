/* Programs with sampled spans, one per word on the command line. Each reports on standard output
 * what it executed: lines "tid EVENT COUNT". */
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
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int tid(void) { return (int)syscall(SYS_gettid); }
static void said(int event, unsigned long count) {
    char line[64];
    int n = snprintf(line, sizeof line, "%d %d %lu\n", tid(), event, count);
    if (write(1, line, (size_t)n) != n) abort();
}

static void spans(int event, unsigned long n) {
    unsigned long i;
    for (i = 0; i < n; i++) {
        ut_begin_sampled((uint16_t)event);
        ut_end_sampled((uint16_t)event);
    }
}

/* The shared vectors: what is recorded follows from the seed. */
static void vectors(void) {
    ut_sample_seed(20261121);
    spans(5, 200);
    ut_sample_rate(5, 3);
    spans(5, 100);
    spans(5 + 256, 3); /* no cell left for it */
    ut_sample_rate(5, 1);
    spans(5, 10);
}

static void *of_thread(void *n) {
    unsigned long count = (unsigned long)(uintptr_t)n;
    spans(1, count);
    spans(7, count / 3);
    spans(7 + 256, 5);
    ut_event(9, 1);
    said(1, count);
    said(7, count / 3);
    said(7 + 256, 5);
    said(9, 1);
    return NULL;
}

static void threads(unsigned long n) {
    unsigned long i;
    for (i = 0; i < n; i += 2) {
        pthread_t a, b;
        pthread_create(&a, NULL, of_thread, (void *)(uintptr_t)(i + 1));
        pthread_create(&b, NULL, of_thread, (void *)(uintptr_t)(10 * i));
        pthread_join(a, NULL);
        pthread_join(b, NULL);
    }
}

/* Many events, each executed a few times in each of several threads. */
static void *few_of_many(void *n) {
    int event;
    for (event = 0; event < 240; event++) {
        spans(event, (unsigned long)(uintptr_t)n);
        said(event, (unsigned long)(uintptr_t)n);
    }
    return NULL;
}
static void few(unsigned long n) {
    int i;
    for (i = 0; i < 40; i++) {
        pthread_t id;
        pthread_create(&id, NULL, few_of_many, (void *)(uintptr_t)n);
        pthread_join(id, NULL);
    }
}

/* Children with a recorded span of the parent open, and grandchildren. */
static void forks(unsigned long n) {
    unsigned long i;
    ut_sample_rate(3, 1);
    for (i = 0; i < n; i++) {
        pid_t child;
        ut_begin_sampled(3);
        spans(1, 40);
        child = fork();
        if (child == 0) {
            ut_end_sampled(3); /* of the parent: nothing */
            if (i % 2) spans(1, 70);
            else spans(2, 11);
            said(i % 2 ? 1 : 2, i % 2 ? 70 : 11);
            if (fork() == 0) {
                spans(1, 30);
                said(1, 30);
                _exit(0);
            }
            _exit(0);
        }
        waitpid(child, NULL, 0);
        ut_end_sampled(3);
    }
    said(1, 40 * n);
    said(3, n);
}

/* Each level records its depth, right after its begin and before its end. */
static unsigned long begun;
static uint32_t state = 12345;
static void level(int depth, int most) {
    int next;
    ut_begin_sampled(4);
    ut_event(6, (uint32_t)depth);
    begun++;
    for (next = 0; next < 2 && depth < most; next++) {
        state = state * 1664525u + 1013904223u;
        if (state >> 31) level(depth + 1, most);
    }
    if (depth == 0) spans(1, 3);
    ut_event(6, (uint32_t)depth);
    ut_end_sampled(4);
}
static void nested(unsigned long n) {
    unsigned long i;
    for (i = 0; i < n; i++) level(0, 25);
    said(4, begun);
    said(1, 3 * n);
    said(6, 2 * begun);
}
static void deep(int depth) {
    ut_begin_sampled(8);
    if (depth) deep(depth - 1);
    ut_end_sampled(8);
}

static volatile unsigned long in_handler;
static void on_timer(int signal) {
    (void)signal;
    spans(1, 3);
    ut_begin_sampled(2);
    spans(1, 1);
    ut_end_sampled(2);
    in_handler++;
}
static void signals(unsigned long n) {
    struct sigaction action;
    struct itimerval every = {{0, 50}, {0, 50}};
    unsigned long i;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_timer;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (i = 0; i < n; i++) {
        ut_begin_sampled(1);
        if (i % 64 == 0) ut_event(9, (uint32_t)i);
        ut_end_sampled(1);
        if (i % 4096 == 0) ut_sample_rate(1, 1 + (uint32_t)(i >> 12) % 5);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    signal(SIGALRM, SIG_IGN);
    said(1, n + 4 * in_handler);
    said(2, in_handler);
    said(9, (n + 63) / 64);
}

/* Recording switched off and on again, with spans open. */
static void off_and_on(unsigned long n) {
    unsigned long i;
    ut_sample_rate(1, 2);
    for (i = 0; i < n; i++) {
        ut_begin_sampled(1);
        ut_process.control->on = i % 3 != 0;
        spans(1, 5);
        if (i % 7 == 0) ut_process.control->on = 1;
        ut_end_sampled(1);
        ut_process.control->on = 1;
    }
    ut_event(9, 1);
    said(1, 6 * n);
    said(9, 1);
}

/* Counts the spans after each one, in memory that survives the program. */
static void *count_for_kill(void *cell) {
    volatile uint64_t *published = (volatile uint64_t *)cell;
    uint64_t i;
    published[1] = (uint64_t)tid();
    for (i = 0;; i++) {
        ut_begin_sampled(1);
        ut_end_sampled(1);
        __atomic_store_n(&published[0], i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}
static void wait_for_kill(const char *path, int threads) {
    int fd = open(path, O_RDWR), i;
    uint64_t *cells = (uint64_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || cells == MAP_FAILED) exit(3);
    ut_sample_rate(1, 2 + (uint32_t)threads);
    cells[511] = (uint64_t)getpid();
    for (i = 1; i < threads; i++) {
        pthread_t id;
        pthread_create(&id, NULL, count_for_kill, cells + 2 * i);
    }
    count_for_kill(cells);
}

/* Runs until a recorder asks for every span. */
static void until_all(void) {
    unsigned long n = 0;
    while (ut_process.control->rates[1] == 0) {
        spans(1, 16);
        n += 16;
    }
    spans(1, 31); /* the gap that runs ends */
    ut_event(9, 1);
    spans(1, 100);
    said(1, n + 131);
    said(9, 1);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, i;
    if (!strcmp(what, "vectors")) vectors();
    else if (!strcmp(what, "spans")) {
        ut_sample_seed(n);
        spans(1, n);
        said(1, n);
    } else if (!strcmp(what, "few")) few(n);
    else if (!strcmp(what, "threads")) threads(n);
    else if (!strcmp(what, "forks")) forks(n);
    else if (!strcmp(what, "nested")) nested(n);
    else if (!strcmp(what, "deep")) {
        for (i = 0; i < n; i++) deep(99);
        said(8, 100 * n);
    } else if (!strcmp(what, "signals")) signals(n);
    else if (!strcmp(what, "off")) off_and_on(n);
    else if (!strcmp(what, "kill")) wait_for_kill(argv[2], atoi(argv[3]));
    else if (!strcmp(what, "all")) until_all();
    else if (!strcmp(what, "full")) { /* more than the rings hold */
        ut_sample_rate(1, 2);
        spans(1, n);
        said(1, n);
    } else return 2;
    return 0;
}
