/* Programs that treat their process in unusual ways, one per word on the command line. Lines
 * "tid EVENT COUNT" report what they wrote. */
#define _GNU_SOURCE
#include "undertick.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int tid(void) { return (int)syscall(SYS_gettid); }
static void said_of(int who, int event, unsigned long count) {
    char line[64];
    int n = snprintf(line, sizeof line, "%d %d %lu\n", who, event, count);
    if (write(1, line, (size_t)n) != n) abort();
}

/* Children of vfork record in their parent's memory, before they execute. */
__attribute__((noinline)) static pid_t vforked(uint32_t number, char *name) {
    pid_t child = vfork();
    if (child == 0) {
        ut_event(2, number);
        execl("/proc/self/exe", name, "one", (char *)NULL);
        _exit(9);
    }
    return child;
}

static void vforks(unsigned long n, char **argv) {
    unsigned long i;
    int me = tid();
    for (i = 0; i < n; i++) {
        pid_t child;
        ut_event(1, (uint32_t)i);
        child = vforked((uint32_t)i, argv[0]);
        ut_event(3, (uint32_t)i);
        waitpid(child, NULL, 0);
    }
    said_of(me, 1, n);
    said_of(me, 2, n);
    said_of(me, 3, n);
}

/* Each process has two children, down to the leaves. */
static void tree(unsigned long depth) {
    int i;
    ut_event(1, (uint32_t)depth);
    said_of(tid(), 1, 1);
    for (i = 0; depth > 0 && i < 2; i++) {
        if (fork() == 0) {
            tree(depth - 1);
            while (wait(NULL) > 0) continue;
            _exit(0);
        }
    }
    while (wait(NULL) > 0) continue;
}

/* Closes all files that it did not open; its output too, so it reports nothing. */
static void *after(void *nothing) {
    uint32_t i;
    for (i = 0; i < 1000; i++) ut_event(2, i);
    return nothing;
}
static void close_all(void) {
    pthread_t thread;
    uint32_t i;
    int fd;
    ut_name(1, "before");
    for (i = 0; i < 1000; i++) ut_event(1, i);
    for (fd = 0; fd < 1024; fd++) close(fd);
    ut_name(2, "after");
    for (i = 0; i < 1000; i++) ut_event(1, 1000 + i);
    pthread_create(&thread, NULL, after, NULL);
    pthread_join(thread, NULL);
}

/* Unmaps memory that it does not know. */
static void unmap(void) {
    static char maps[1 << 16];
    char *line, *save = NULL;
    FILE *file;
    uint32_t i;
    for (i = 0; i < 1000; i++) ut_event(1, i);
    file = fopen("/proc/self/maps", "r");
    if (!file || fread(maps, 1, sizeof maps - 1, file) == 0) abort();
    for (line = strtok_r(maps, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned long from, to;
        if (!strstr(line, "undertick") || sscanf(line, "%lx-%lx", &from, &to) != 2) continue;
        munmap((void *)from, to - from);
    }
    for (i = 0; i < 1000; i++) ut_event(1, 1000 + i);
}

static pthread_barrier_t all;
static void *stay(void *number) {
    ut_event(1, (uint32_t)(uintptr_t)number);
    pthread_barrier_wait(&all);
    ut_event(2, (uint32_t)(uintptr_t)number);
    return NULL;
}

/* Starts `n` threads at once. */
static int alive(unsigned long n) {
    pthread_t *ids = (pthread_t *)calloc(n, sizeof *ids);
    pthread_attr_t small;
    unsigned long i;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (i = 0; i < n; i++)
        if (pthread_create(&ids[i], &small, stay, (void *)(uintptr_t)i)) return 4;
    for (i = 0; i < n; i++) pthread_join(ids[i], NULL);
    return 0;
}

/* Starts `n` threads one after the other. */
static void ended(unsigned long n) {
    unsigned long i;
    pthread_barrier_init(&all, NULL, 1);
    for (i = 0; i < n; i++) {
        pthread_t id;
        pthread_create(&id, NULL, stay, (void *)(uintptr_t)i);
        pthread_join(id, NULL);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (!strcmp(what, "vfork")) vforks(n, argv);
    else if (!strcmp(what, "one")) { ut_event(4, 1); said_of(tid(), 4, 1); }
    else if (!strcmp(what, "tree")) tree(n);
    else if (!strcmp(what, "close")) close_all();
    else if (!strcmp(what, "unmap")) unmap();
    else if (!strcmp(what, "alive")) return alive(n);
    else if (!strcmp(what, "ended")) ended(n);
    else return 2;
    return 0;
}
