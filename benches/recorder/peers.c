/* Loops as other tools run them, and as scripts do: why the figures differ.
 *
 *     peers unix one|two BYTES       a message there and back between two processes on
 *                                    one CPU: over one pair of sockets, or a pair for
 *                                    each direction. Prints ns, and switches of the
 *                                    first process, for a round trip.
 *     peers fork BYTES TABLES MAPS PAGES
 *                                    fork(2) until it returns, in a process with BYTES of
 *                                    touched memory, in TABLES places each of which has
 *                                    a separate page table, and MAPS further mappings,
 *                                    which writes to PAGES pages before it reads the
 *                                    clock. Prints ns, mappings, page faults a fork,
 *                                    KiB of page tables.
 *     peers mutex HOLD ALONE         two processes on two CPUs and a mutex: each holds it
 *                                    for HOLD and leaves it for ALONE, ns. Prints ns to
 *                                    take it (median), and for one turn (mean).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 25, ROUNDS = 2000, FORKS = 101, TURNS = 200000, PAGE = 4096 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void on_cpu(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("sched_setaffinity");
        exit(1);
    }
}

static int rising(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n) {
    qsort(values, n, sizeof *values, rising);
    return values[n / 2];
}

static void must(int is_well, const char *what) {
    if (!is_well) {
        perror(what);
        exit(1);
    }
}

static void sockets(int two, size_t bytes) {
    int there[2], back[2];
    char message[256] = {0};
    struct rusage before, after;
    double begun, took[BLOCKS];
    pid_t server;
    int block, i;
    bytes = bytes > sizeof message ? sizeof message : bytes;
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, there), "socketpair");
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, back), "socketpair");
    on_cpu(0);
    server = fork();
    must(server >= 0, "fork");
    if (!server) {
        while (read(there[1], message, bytes) > 0)
            if (write(two ? back[0] : there[1], message, bytes) < 0) break;
        _exit(0);
    }
    getrusage(RUSAGE_SELF, &before);
    for (block = 0; block < BLOCKS; block++) {
        begun = now_ns();
        for (i = 0; i < ROUNDS; i++) {
            must(write(there[0], message, bytes) > 0, "write");
            must(read(two ? back[1] : there[0], message, bytes) > 0, "read");
        }
        took[block] = (now_ns() - begun) / ROUNDS;
    }
    getrusage(RUSAGE_SELF, &after);
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    printf("%.1f %.3f\n", median(took, BLOCKS),
           (double)(after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw) /
               (BLOCKS * ROUNDS));
}

/* Memory in pieces 4 MiB apart, so that no two of them share a page table. */
static char *pieces(size_t bytes, int tables) {
    const size_t apart = 4 << 20, each = bytes / (size_t)tables / PAGE * PAGE;
    char *at = mmap(NULL, apart * (size_t)tables, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int i;
    must(at != MAP_FAILED && !munmap(at, apart * (size_t)tables), "mmap");
    for (i = 0; i < tables; i++) {
        char *piece = mmap(at + apart * (size_t)i, each, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        must(piece != MAP_FAILED, "mmap");
        madvise(piece, each, MADV_NOHUGEPAGE);
        memset(piece, 1, each);
    }
    return at;
}

/* Returns a number from the process's `status`, or the lines of its `maps`. */
static long of_process(const char *file, const char *key) {
    char line[512];
    long found = 0;
    FILE *from = fopen(file, "r");
    must(from != NULL, file);
    while (fgets(line, sizeof line, from)) {
        if (!key) found++;
        else if (!strncmp(line, key, strlen(key))) found = atol(line + strlen(key));
    }
    fclose(from);
    return found;
}

static void children(size_t bytes, int tables, int maps, int pages) {
    struct rusage before, after;
    double took[FORKS];
    long faults = 0;
    int i, page;
    char *memory = bytes && tables > 0 ? pieces(bytes, tables) : NULL;
    for (i = 0; i < maps; i++) { /* no two alike beside each other: they would be one */
        must(MAP_FAILED != mmap(NULL, PAGE, i % 2 ? PROT_READ : PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), "mmap");
    }
    on_cpu(0);
    for (i = 0; i < FORKS; i++) {
        double begun;
        pid_t child;
        getrusage(RUSAGE_SELF, &before);
        begun = now_ns();
        child = fork();
        if (!child) _exit(0);
        for (page = 0; memory && page < pages; page++) memory[page * PAGE] = (char)i;
        took[i] = now_ns() - begun;
        getrusage(RUSAGE_SELF, &after);
        must(child > 0, "fork");
        waitpid(child, NULL, 0);
        faults += after.ru_minflt - before.ru_minflt;
    }
    printf("%.0f %ld %.1f %ld\n", median(took, FORKS), of_process("/proc/self/maps", NULL),
           (double)faults / FORKS, of_process("/proc/self/status", "VmPTE:"));
}

/* Dependent multiplications, so that no clock is read while the mutex is held. */
static uint64_t work(uint64_t x, long turns) {
    while (turns-- > 0) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static double turns_a_ns(void) {
    double best = 1e18;
    int i;
    for (i = 0; i < 20; i++) {
        const double begun = now_ns();
        double took;
        work(1, 100000);
        took = now_ns() - begun;
        best = took < best ? took : best;
    }
    return 100000 / best;
}

struct shared {
    pthread_mutex_t mutex;
    volatile int ready, done;
};

static void rivals(double hold_ns, double alone_ns) {
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double *took = malloc(TURNS * sizeof *took), nothing[1001], begun, all;
    pthread_mutexattr_t attributes;
    long hold, alone;
    pid_t rival;
    int i;
    must(shared != MAP_FAILED && took, "memory");
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attributes);
    hold = (long)(hold_ns * turns_a_ns());
    alone = (long)(alone_ns * turns_a_ns());
    for (i = 0; i < 1001; i++) {
        const double at = now_ns();
        nothing[i] = now_ns() - at;
    }
    rival = fork();
    must(rival >= 0, "fork");
    if (!rival) {
        on_cpu(1);
        shared->ready = 1;
        while (!shared->done) {
            /* Makes two readings, as the other process does. */
            now_ns();
            pthread_mutex_lock(&shared->mutex);
            now_ns();
            work(1, hold);
            pthread_mutex_unlock(&shared->mutex);
            work(1, alone);
        }
        _exit(0);
    }
    on_cpu(0);
    while (!shared->ready) {
    }
    usleep(1000);
    all = now_ns();
    for (i = 0; i < TURNS; i++) {
        begun = now_ns();
        pthread_mutex_lock(&shared->mutex);
        took[i] = now_ns() - begun;
        work(1, hold);
        pthread_mutex_unlock(&shared->mutex);
        work(1, alone);
    }
    all = (now_ns() - all) / TURNS;
    shared->done = 1;
    waitpid(rival, NULL, 0);
    printf("%.1f %.1f\n", median(took, TURNS) - median(nothing, 1001), all);
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "unix") && count == 4)
        sockets(!strcmp(words[2], "two"), strtoul(words[3], NULL, 10));
    else if (!strcmp(what, "fork") && count == 6)
        children(strtoul(words[2], NULL, 10), atoi(words[3]), atoi(words[4]), atoi(words[5]));
    else if (!strcmp(what, "mutex") && count == 4)
        rivals(atof(words[2]), atof(words[3]));
    else
        return fprintf(stderr, "see the head of peers.c\n"), 2;
    return 0;
}
