/* A program that runs on while recorders come and go. It executes commands from standard input
 * and reports what it wrote, so that the test need not trust the recorder: lines "tid EVENT
 * COUNT", then "done". Its workers are permanent. */
#define _GNU_SOURCE
#include "undertick.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 3 };
static pthread_barrier_t begin, end;
static char command[32];
static unsigned long n;

static int tid(void) { return (int)syscall(SYS_gettid); }
static void said(int event, unsigned long count) {
    char line[64];
    int length = snprintf(line, sizeof line, "%d %d %lu\n", tid(), event, count);
    if (write(1, line, (size_t)length) != length) abort();
}

static void events(int event) {
    unsigned long i;
    for (i = 0; i < n; i++) ut_event((uint16_t)event, (uint32_t)i);
    said(event, n);
}

/* Sampled spans of every kind, inside spans that are not sampled. */
static void spans(void) {
    unsigned long i;
    for (i = 0; i < n; i++) {
        ut_begin_paired(4);
        ut_begin_sampled(3);
        ut_event64(5, (uint64_t)i << 32);
        ut_end_sampled(3);
        ut_end_ordered(4);
    }
    said(3, n);
    said(4, n);
    said(5, n);
}

static void *work(void *unused) {
    (void)unused;
    ut_thread_name("worker");
    for (;;) {
        pthread_barrier_wait(&begin);
        if (strcmp(command, "events") == 0) events(1);
        if (strcmp(command, "spans") == 0) spans();
        pthread_barrier_wait(&end);
    }
    return NULL;
}

static void *pass_by(void *unused) {
    (void)unused;
    events(6);
    return NULL;
}

static volatile sig_atomic_t stop, in_handler;
static void on_timer(int signal) {
    (void)signal;
    if (!ut_enabled()) return;
    ut_event(8, (uint32_t)in_handler++);
    ut_begin_sampled(9);
    ut_end_sampled(9);
}
static void on_stop(int signal) {
    (void)signal;
    stop = 1;
}

/* Points in the thread and in a handler, while sessions come and go. */
static void storm(void) {
    struct sigaction action;
    struct itimerval every = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    unsigned long i = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_timer;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = on_stop;
    sigaction(SIGUSR1, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    if (write(1, "storm\n", 6) != 6) abort();
    while (!stop) {
        ut_event(7, (uint32_t)i++);
        ut_begin_sampled(9);
        ut_begin_ordered(4);
        ut_end_ordered(4);
        ut_end_sampled(9);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    stop = 0;
}

/* A library with a recorder, and so an attach page. */
static void library_does(const char *what, const char *path) {
    static void *library;
    void (*record)(unsigned long);
    unsigned long i;
    if (strcmp(what, "load") == 0 && !(library = dlopen(path, RTLD_NOW | RTLD_LOCAL))) abort();
    if (strcmp(what, "unload") == 0) dlclose(library);
    if (strcmp(what, "reload") == 0) {
        pthread_key_t key;
        for (i = 0; i < n; i++) dlclose(dlopen(path, RTLD_NOW | RTLD_LOCAL));
        if (pthread_key_create(&key, NULL)) abort(); /* there are 1024 */
        pthread_key_delete(key);
    }
    if (strcmp(what, "library") != 0) return;
    *(void **)&record = dlsym(library, "library_record");
    for (i = 0; i < n; i++) record(i);
    said(10, n); /* its event 6 */
}

int main(int argc, char **argv) {
    pthread_t thread;
    sigset_t timer;
    int i, status;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM); /* the main thread's */
    pthread_sigmask(SIG_BLOCK, &timer, NULL);
    ut_name(1, "first");
    ut_name(1, "counted");
    ut_name(3, "sampled");
    ut_thread_name("main thread");
    pthread_barrier_init(&begin, NULL, WORKERS + 1);
    pthread_barrier_init(&end, NULL, WORKERS + 1);
    for (i = 0; i < WORKERS; i++) pthread_create(&thread, NULL, work, NULL);
    pthread_sigmask(SIG_UNBLOCK, &timer, NULL);
    setvbuf(stdin, NULL, _IONBF, 0);
    while (scanf("%31s %lu", command, &n) == 2) {
        if (strcmp(command, "on") == 0)
            while (!ut_enabled()) usleep(200);
        if (strcmp(command, "off") == 0)
            while (ut_enabled()) usleep(200);
        if (strcmp(command, "events") == 0 || strcmp(command, "spans") == 0) {
            pthread_barrier_wait(&begin);
            pthread_barrier_wait(&end);
        }
        if (strcmp(command, "main") == 0) events(2);
        if (argc > 1) library_does(command, argv[1]);
        if (strcmp(command, "thread") == 0) {
            pthread_create(&thread, NULL, pass_by, NULL);
            pthread_join(thread, NULL);
        }
        if (strcmp(command, "fork") == 0) {
            pid_t child = fork();
            if (child == 0) {
                events(2);
                spans();
                if (fork() == 0) {
                    events(1);
                    _exit(0);
                }
                wait(NULL);
                pthread_exit(NULL); /* the last thread: as exit(0) */
            }
            if (waitpid(child, &status, 0) != child || status != 0) abort();
        }
        if (strcmp(command, "storm") == 0) storm();
        if (strcmp(command, "name") == 0) ut_name((uint16_t)n, "given late");
        if (strcmp(command, "names") == 0) {
            char name[32];
            for (i = 0; i < (int)n; i++) {
                snprintf(name, sizeof name, "name %d of many", i);
                ut_name((uint16_t)(1000 + i), name);
            }
        }
        if (strcmp(command, "close") == 0)
            for (i = 3; i < 1024; i++) close(i);
        if (strcmp(command, "user") == 0 && setuid((uid_t)n) != 0) abort();
        if (write(1, "done\n", 5) != 5) abort();
        if (strcmp(command, "quit") == 0) return 0;
        if (strcmp(command, "exit") == 0) _exit(0);
    }
    return 0;
}
