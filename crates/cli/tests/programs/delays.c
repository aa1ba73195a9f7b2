// Requests of a few microseconds, some of which are delayed in a way that is marked before them:
// for tests of what explains slow calls.
//
//   delays serve PIPE PIPE   another program: delays who asks it, over two named pipes
//   delays PIPE PIPE EACH    the requests, with EACH delays of every kind
#define _GNU_SOURCE
#include "undertick.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { REQUEST = 1, LOOKUP = 2, FLUSH = 3, SIZE = 4, MARK = 5 };
enum kind {
    NOTHING, SLEEP, LOCK, HOG, OWN_THREAD, QUEUED, FAULTS, SLOW_CHILD, MORE_CHILDREN, SPIN, PIPE, STOPPED, KINDS
};
enum { PAGES = 400, SLEEPS = 50, PER_KIND = 40, LARGE_SIZE = 950 };
static const long US = 1000;
static const long DELAY = 1000 * 1000;

static long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin(long ns) {
    for (long end = now_ns() + ns; now_ns() < end;) {}
}

static void pause_ns(long ns) {
    struct timespec t = {ns / 1000000000L, ns % 1000000000L};
    nanosleep(&t, 0);
}

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(77);
}

// On one CPU, the first that is allowed, or on another one; before everything that is less urgent.
static void run_at(int urgency, int other_cpu) {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && seen++ == other_cpu) CPU_SET(cpu, &one);
    struct sched_param param = {.sched_priority = urgency};
    if (sched_setaffinity(0, sizeof one, &one) || sched_setscheduler(0, SCHED_FIFO, &param)) fail("SCHED_FIFO");
}

// Asked 'h' it spins at once, 'l' after a while, 'a' answers after a while; 's' and a process: it lets
// that go on after a while.
static int serve(const char *in_name, const char *out_name) {
    run_at(20, 0);
    int in = open(in_name, O_RDONLY), out = open(out_name, O_WRONLY);
    if (in < 0 || out < 0) fail("pipe");
    for (char what; read(in, &what, 1) == 1;) {
        if (what == 'h') spin(DELAY);
        if (what == 'l') { pause_ns(100 * US); spin(DELAY + 400 * US); }
        pid_t stopped;
        if (what == 's') {
            if (read(in, &stopped, sizeof stopped) != sizeof stopped) return 1;
            pause_ns(DELAY);
            kill(stopped, SIGCONT);
        }
        if (what == 'a') { pause_ns(DELAY); if (write(out, "a", 1) != 1) return 1; }
    }
    return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int holder_pipe[2], hog_pipe[2], held[2];

// Holds the lock for a while on another CPU, or asleep.
static void *holder(void *unused) {
    ut_thread_name("holder");
    run_at(15, 0);
    for (char what; read(holder_pipe[0], &what, 1) == 1;) {
        pthread_mutex_lock(&lock);
        if (write(held[1], "x", 1) != 1) break;
        pause_ns(DELAY + 200 * US);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

// Takes the CPU of the requests.
static void *own_hog(void *unused) {
    ut_thread_name("own hog");
    run_at(16, 0);
    for (char what; read(hog_pipe[0], &what, 1) == 1;) spin(DELAY);
    return unused;
}

static int ask = -1, answer = -1;
static char *faulted;

static void tell(int pipe, char what) {
    if (write(pipe, &what, 1) != 1) fail("write");
}

static void delay(enum kind kind) {
    char read_back;
    switch (kind) {
    case SLEEP: pause_ns(DELAY); break;
    case LOCK:
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
        break;
    case HOG: tell(ask, 'h'); break;
    case OWN_THREAD: tell(hog_pipe[1], 'h'); break;
    case QUEUED: tell(ask, 'l'); pause_ns(400 * US); break;
    case FAULTS:
        faulted = mmap(0, PAGES * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (faulted == MAP_FAILED) fail("mmap");
        madvise(faulted, PAGES * 4096L, MADV_NOHUGEPAGE);
        for (int page = 0; page < PAGES; page++) ((volatile char *)faulted)[page * 4096L] = 1;
        break;
    case MORE_CHILDREN:
        for (int child = 0; child < 200; child++) {
            ut_begin(FLUSH);
            spin(5 * US);
            ut_end(FLUSH);
        }
        break;
    case SPIN: spin(DELAY); break;
    case PIPE:
        tell(ask, 'a');
        if (read(answer, &read_back, 1) != 1) fail("read");
        break;
    case STOPPED: {
        struct { char what; pid_t pid; } __attribute__((packed)) stop = {'s', getpid()};
        if (write(ask, &stop, sizeof stop) != sizeof stop) fail("write");
        raise(SIGSTOP);
        break;
    }
    default: break;
    }
}

static void request(enum kind kind, unsigned size) {
    char read_back;
    if (kind == LOCK) {
        tell(holder_pipe[1], 'l');
        if (read(held[0], &read_back, 1) != 1) fail("read");
    }
    // Large requests take longer, and are not marked: there are many of them.
    ut_event(MARK, (uint32_t)kind);
    ut_begin(REQUEST);
    ut_event(SIZE, size);
    spin(size >= LARGE_SIZE ? DELAY / 5 : 2 * US);
    ut_begin(LOOKUP);
    spin(kind == SLOW_CHILD ? DELAY : 1 * US);
    ut_end(LOOKUP);
    if (kind != SLOW_CHILD) delay(kind);
    ut_end(REQUEST);
    // Unmapped, which is not the request's: the same memory is faulted in each time. Memory that a virtual
    // machine has not used before costs many times as much, as often as there is some.
    if (kind == FAULTS) munmap(faulted, PAGES * 4096L);
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "serve")) return serve(argv[2], argv[3]);
    if (argc != 4) return 2;
    int each = atoi(argv[3]);
    ut_name(REQUEST, "request");
    ut_name(LOOKUP, "lookup");
    ut_name(FLUSH, "flush");
    ut_name(SIZE, "size");
    ut_name(MARK, "mark");
    ask = open(argv[1], O_WRONLY);
    answer = open(argv[2], O_RDONLY);
    if (ask < 0 || answer < 0 || pipe(holder_pipe) || pipe(hog_pipe) || pipe(held)) fail("pipe");
    run_at(10, 0);
    pthread_t threads[2];
    if (pthread_create(&threads[0], 0, holder, 0) || pthread_create(&threads[1], 0, own_hog, 0)) fail("thread");
    pause_ns(50 * 1000 * US);
    unsigned chance = 1;
    for (int turn = 0; turn < each; turn++) {
        for (enum kind kind = SLEEP; kind < KINDS; kind++) {
            for (int between = 0; between < PER_KIND; between++) {
                chance = chance * 1103515245 + 12345;
                request(NOTHING, (chance >> 16) % 1000);
            }
            chance = chance * 1103515245 + 12345;
            request(kind, (chance >> 16) % LARGE_SIZE);
            // Urgent programs may not have all of a CPU, and whoever was asked is done.
            pause_ns(1500 * US);
        }
    }
    close(ask);
    exit(0);
}
