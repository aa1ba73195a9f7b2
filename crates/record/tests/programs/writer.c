/* Programs for the recording tests, one per word on the command line. Each reports on standard
 * output what it wrote, so that the test need not trust the recorder: lines "tid EVENT COUNT". */
#define _GNU_SOURCE
#include "undertick.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
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

/* Returns how often this thread has left its CPU, as the kernel counts it. */
static long switches(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) abort();
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static void *count_up(void *count) {
    unsigned long i, n = (unsigned long)(uintptr_t)count;
    for (i = 0; i < n; i++) ut_event(1, (uint32_t)i);
    said(1, n);
    return NULL;
}

/* One of each kind, for the shared vectors. */
static void vectors(void) {
    ut_name(0xb1b2, "vector");
    ut_name(7, "again");
    ut_name(7, "renamed");
    ut_thread_name("C thread");
    ut_event(0xb1b2, 0xa1a2a3a4u);
    ut_event64(0xffff, 0x0102030405060708ull);
    ut_begin(1);
    ut_next(1, 2);
    ut_pair(3);
    ut_end(2);
    ut_begin_ordered(4);
    ut_end_ordered(4);
    ut_begin_fast(5);
    ut_end_fast(5);
    ut_event(0, 0xffffffffu);
}

/* Chains of 30 dependent square roots, which are few instructions that take long, in spans of
 * each kind, on one CPU. */
static void roots(unsigned long n) {
    double x = 2.0;
    uint32_t i;
    cpu_set_t one;
    if (sched_getaffinity(0, sizeof one, &one) != 0) abort();
    for (i = 0; !CPU_ISSET(i, &one); i++) {
    }
    CPU_ZERO(&one);
    CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) abort();
#if defined(__x86_64__)
#define ROOTS() __asm__ volatile(".rept 30\n\tsqrtsd %0, %0\n\t.endr" : "+x"(x))
#else
#define ROOTS() __asm__ volatile(".rept 30\n\tfsqrt %d0, %d0\n\t.endr" : "+w"(x))
#endif
    for (; n > 0; n--) {
        x = (double)n + 0.3; /* 1.0 would be quick to take the root of */
        ut_begin(1);
        ROOTS();
        ut_end(1);
        x = (double)n + 0.3;
        ut_begin_sampled(2);
        ROOTS();
        ut_end_sampled(2);
        x = (double)n + 0.3;
        ut_begin(3);
        ROOTS();
        ut_next(3, 4);
        x = (double)n + 0.3;
        ROOTS();
        ut_end(4);
    }
}

/* Wide events over a segment's end at every offset. */
static void wide(unsigned long n) {
    unsigned long i;
    ut_event(9, 0);
    for (i = 0; i < n; i++) ut_event64(1, (uint64_t)i << 32 | (uint32_t)~i);
    said(9, 1);
    said(1, n);
}

static volatile sig_atomic_t in_handler;
static void on_timer(int signal) {
    (void)signal;
    ut_event(2, (uint32_t)in_handler++);
}
static void on_timer_in_sections(int signal) {
    (void)signal;
    ut_begin_ordered(2);
    ut_end_paired(2);
    in_handler += 2;
}

/* A handler that records while the thread records, events or spans. */
static void signals(unsigned long n, int sections) {
    struct sigaction action;
    struct itimerval every = {{0, 50}, {0, 50}};
    unsigned long i;
    memset(&action, 0, sizeof action);
    action.sa_handler = sections ? on_timer_in_sections : on_timer;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    for (i = 0; !sections && i < n; i++) ut_event(1, (uint32_t)i);
    for (i = 0; sections && i < n; i += 2) {
        ut_begin_paired(1);
        ut_end_ordered(1);
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    signal(SIGALRM, SIG_IGN);
    said(1, n);
    said(2, (unsigned long)in_handler);
}

static void forks(unsigned long n) {
    unsigned long i;
    ut_event(1, 0);
    for (i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            ut_event(2, (uint32_t)i);
            if (fork() == 0) { /* a grandchild that nobody waits for */
                usleep(20000);
                ut_event(3, (uint32_t)i);
                said(3, 1);
                _exit(0);
            }
            said(2, 1);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        ut_event(1, (uint32_t)i + 1);
    }
    said(1, n + 1);
}

/* Switches recording as the recorder does when it begins and ends. */
static void switch_recording(uint32_t on) {
#ifdef UNDERTICK_DISABLE
    (void)on;
#else
    ut_process.control->on = on;
#endif
}

/* Ends of serialised spans, which read the clock before they check whether to record: with
 * recording switched off in between, and as the first event of a child. */
static void ends(unsigned long n) {
    unsigned long i;
    ut_begin_paired(1);
    switch_recording(0);
    ut_end_paired(1);
    ut_end_ordered(1);
    switch_recording(1);
    for (i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            ut_end_paired(2);
            ut_event(3, (uint32_t)i);
            said(2, 1);
            said(3, 1);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    ut_end_ordered(1);
    said(1, 2);
}

/* Children one after the other, none of which closes its ring. */
static void children(unsigned long n) {
    unsigned long i;
    for (i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            ut_event(4, (uint32_t)i);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

/* Counts its events after each write, in memory that survives it. */
static void *count_for_kill(void *cell) {
    volatile uint64_t *published = (volatile uint64_t *)cell;
    uint64_t i;
    published[1] = (uint64_t)tid();
    for (i = 0;; i++) {
        ut_event(1, (uint32_t)i);
        __atomic_store_n(&published[0], i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void wait_for_kill(const char *path, int threads) {
    int fd = open(path, O_RDWR), i;
    uint64_t *cells = (uint64_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || cells == MAP_FAILED) exit(3);
    cells[511] = (uint64_t)getpid();
    for (i = 1; i < threads; i++) {
        pthread_t id;
        pthread_create(&id, NULL, count_for_kill, cells + 2 * i);
    }
    count_for_kill(cells);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (!strcmp(what, "vectors")) vectors();
    else if (!strcmp(what, "roots")) roots(n);
    else if (!strcmp(what, "count")) count_up((void *)(uintptr_t)n);
    else if (!strcmp(what, "wide")) wide(n);
    else if (!strcmp(what, "signals")) signals(n, 0);
    else if (!strcmp(what, "sections")) signals(n, 1);
    else if (!strcmp(what, "forks")) forks(n);
    else if (!strcmp(what, "ends")) ends(n);
    else if (!strcmp(what, "children")) children(n);
    else if (!strcmp(what, "kill")) wait_for_kill(argv[2], atoi(argv[3]));
    else if (!strcmp(what, "threads")) { /* N short threads, one after the other in pairs */
        unsigned long i;
        for (i = 0; i < n; i += 2) {
            pthread_t a, b;
            pthread_create(&a, NULL, count_up, (void *)3);
            pthread_create(&b, NULL, count_up, (void *)5);
            pthread_join(a, NULL);
            pthread_join(b, NULL);
        }
    } else if (!strcmp(what, "exec")) {
        ut_event(8, 1);
        said(8, 1);
        execl("/proc/self/exe", argv[0], "count", argv[2], (char *)NULL);
        return 3;
    } else if (!strcmp(what, "dlopen")) { /* a library with a recorder of its own, in the same thread */
        void (*record)(unsigned long);
        void *library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);
        unsigned long i;
        if (!library) return 3;
        *(void **)&record = dlsym(library, "library_record");
        for (i = 0; i < n; i++) {
            ut_event(1, (uint32_t)i);
            record(i);
        }
        said(1, n);
        said(6, n);
    } else if (!strcmp(what, "sleep")) {
        /* Spans with and without a deschedule inside. After each sleep: was there a switch
         * within the span (1), one between the points around it (2)? A sleep need not leave the
         * CPU: where the hypervisor takes the CPU away for as long, its timer has expired before
         * the kernel comes to switch. */
        unsigned long i;
        for (i = 0; i < n; i++) {
            long outer, inner;
            uint32_t saw;
            ut_begin(1);
            ut_end(1);
            outer = switches();
            ut_begin(2);
            inner = switches();
            usleep(200);
            inner = switches() - inner;
            ut_end(2);
            outer = switches() - outer;
            saw = (uint32_t)(inner > 0) | (uint32_t)(outer > 0) << 1;
            ut_event(3, saw);
        }
        said(1, 2 * n);
        said(2, 2 * n);
        said(3, n);
    } else if (!strcmp(what, "fail")) return 7;
    else return 2;
    return 0;
}
