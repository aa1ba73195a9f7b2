/* A program that damages its session by all means that its rights allow: SECONDS SEED DECOY.
 * DECOY is a directory outside the session; links to it replace the session's files.
 *
 * A witness writes 1000 events to ring 0, whose head and segment are not damaged. Then children
 * record, one after the other, while one of their threads damages the session. A child may die
 * of its own damage; then the next one starts. */
#define _GNU_SOURCE
#include "undertick.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT 131072L
static char dir[256], away[300];
static const char *decoy;
static int dir_fd;
static uint64_t state;

static uint64_t draw(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t number(void) {
    static const uint64_t edges[] = {0, 1, 16, 131072, 131073, 1u << 20, 0xffffffffu, 1ull << 40, 1ull << 63, ~0ull, ~0ull - 15};
    return draw(3) ? edges[draw(sizeof edges / sizeof *edges)] : state;
}

static int open_there(const char *name, int flags) {
    return openat(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

static void put(int fd, off_t at, uint64_t value, size_t bytes) {
    if (fd >= 0 && pwrite(fd, &value, bytes, at) < 0) return;
}

/* Offsets in the pool: docs/format.md, section 3. */
static off_t heads_at, segments_at;
static uint32_t heads, segments;

static void look_at_pool(void) {
    uint32_t counts[2] = {0, 0};
    int fd = open_there("pool", O_RDONLY);
    if (fd < 0 || pread(fd, counts, 8, 16) != 8) abort();
    close(fd);
    heads = counts[0], segments = counts[1];
    heads_at = (4096 + 8 * (off_t)(heads + segments) + segments + SEGMENT - 1) / SEGMENT * SEGMENT;
    segments_at = (heads_at + heads * (off_t)77824 + SEGMENT - 1) / SEGMENT * SEGMENT;
}

/* Returns one of the first heads, or any: never head 0, which is the witness's. */
static off_t head(void) { return heads_at + (off_t)(1 + draw(draw(2) ? 40 : heads - 1)) * 77824; }

static void header(void) {
    static const off_t fields[] = {0, 8, 16, 20, 24, 40, 64, 64, 64, 72, 80, 80, 88, 92, 128, 136, 4096, 4104, 4112, 69632};
    int fd = open_there("pool", O_RDWR), i;
    for (i = 0; i < 8; i++) put(fd, head() + fields[draw(sizeof fields / sizeof *fields)], number(), draw(2) ? 8 : 4);
    if (fd >= 0) close(fd);
}

/* Damages the entries of the queues, the marks of written pages, and the header. The counts of
 * the queues are seldom hit, because after that nobody can take anything. */
static void queues(int may_end) {
    int fd = open_there("pool", O_RDWR), i;
    for (i = 0; i < 8; i++) put(fd, 4096 + 4 * (off_t)draw(2 * (heads + segments)), draw(2) ? draw(heads) : number(), 4);
    for (i = 0; i < 8; i++) put(fd, 4096 + 8 * (off_t)(heads + segments) + (off_t)draw(segments), draw(2), 1);
    put(fd, 12, number(), 4);
    if (may_end || draw(100) == 0) {
        static const off_t fields[] = {0, 8, 16, 20};
        put(fd, draw(3) ? 128 + 64 * (off_t)draw(8) : fields[draw(4)], number(), draw(2) ? 8 : 4);
    }
    if (fd >= 0) close(fd);
}

/* Writes records that no thread wrote; not in segment 0, which has the witness's. */
static void records(void) {
    int fd = open_there("pool", O_RDWR), i;
    off_t at = segments_at + SEGMENT * (off_t)(1 + draw(40));
    for (i = 0; i < 64; i++) put(fd, at + 8 * (off_t)draw(SEGMENT / 8), number(), 8);
    if (fd >= 0) close(fd);
}

static void length(const char *name) {
    static const off_t lengths[] = {0, 1, 4096, 4097, SEGMENT, SEGMENT + 4096, 2 * SEGMENT, (off_t)1 << 40};
    int fd = open_there(name, O_RDWR);
    if (fd < 0) return;
    if (ftruncate(fd, lengths[draw(8)]) != 0) errno = 0;
    close(fd);
}

static void replace(const char *name) {
    char to[400];
    unlinkat(dir_fd, name, 0);
    unlinkat(dir_fd, name, AT_REMOVEDIR);
    snprintf(to, sizeof to, "%s/%s", decoy, draw(2) ? "pool" : "names");
    switch (draw(5)) {
    case 0: if (symlinkat(to, dir_fd, name)) return; break;
    case 1: if (linkat(AT_FDCWD, to, dir_fd, name, 0)) return; break;
    case 2: if (mkfifoat(dir_fd, name, 0600)) return; break;
    case 3: if (mkdirat(dir_fd, name, 0700)) return; break;
    default: if (symlinkat("/dev/zero", dir_fd, name)) return; break;
    }
}

/* Makes a head that claims to be a ring's. */
static void forge(void) {
    int fd = open_there("pool", O_RDWR);
    const off_t at = head();
    uint32_t most = draw(2) ? 8192 : 1 + (uint32_t)draw(64), i;
    put(fd, at + 8, 2, 4);
    put(fd, at + 16, number(), 4);
    put(fd, at + 20, most, 4);
    put(fd, at + 24, draw(2) ? 1 : number(), 4);
    for (i = 0; i < 64; i++) put(fd, at + 4096 + 8 * (off_t)i, draw(4) ? draw(segments + 1) : number(), 8);
    put(fd, at + 64, draw(2) ? draw((uint64_t)most * SEGMENT) & ~15ull : number(), 8);
    put(fd, at + 92, draw(2) ? 256 : number(), 4);
    put(fd, at + 40, draw(2) + 1, 4);
    put(fd, at, 0x3130474e49525455ull, 8);
    if (fd >= 0) close(fd);
}

/* Puts another file in the place of the pool for a moment. */
static void another_pool(void) {
    if (renameat(dir_fd, "pool", dir_fd, "kept") != 0) return;
    replace("pool");
    usleep((useconds_t)draw(20000));
    unlinkat(dir_fd, "pool", 0);
    unlinkat(dir_fd, "pool", AT_REMOVEDIR);
    if (renameat(dir_fd, "kept", dir_fd, "pool") != 0) abort();
}

static void control(int may_cut) {
    static const off_t fields[] = {0, 8, 12, 16, 20, 24, 28, 36, 40, 44, 72, 1024, 1032, 4096};
    int fd = open_there("control", O_RDWR);
    if (fd < 0) return;
    put(fd, fields[draw(14)], number(), draw(2) ? 8 : 4);
    if (may_cut && ftruncate(fd, draw(2) ? 0 : 4096) != 0) errno = 0;
    close(fd);
}

static void names(void) {
    char bytes[64];
    int fd, i;
    if (draw(4) == 0) return draw(2) ? replace("names") : length("names");
    fd = open_there("names", O_WRONLY | O_APPEND | O_CREAT);
    if (fd < 0) return;
    for (i = 0; i < 64; i++) bytes[i] = (char)draw(256);
    memcpy(bytes, "UN\1\0", 4);
    bytes[6] = (char)draw(48), bytes[7] = 0;
    for (i = 0; i < 100; i++) if (write(fd, bytes, draw(64)) < 0) break;
    close(fd);
}

/* Moves the whole directory for a moment. The lock is held while a point may make a ring,
 * because the point would make it at the wrong place. */
static pthread_mutex_t at_home = PTHREAD_MUTEX_INITIALIZER;
static void move(void) {
    pthread_mutex_lock(&at_home);
    if (rename(dir, away) != 0) abort();
    if (symlink(decoy, dir) == 0) {
        usleep((useconds_t)draw(20000));
        unlink(dir);
    }
    if (rename(away, dir) != 0) abort();
    pthread_mutex_unlock(&at_home);
}

static void *work(void *stop) {
    uint32_t i;
    for (i = 0; !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); i++) {
        pthread_mutex_lock(&at_home);
        ut_event(1, i);
        pthread_mutex_unlock(&at_home);
        if (i % 64 == 0) usleep(200);
    }
    return NULL;
}

static void child(double until, double end) {
    int stop = 0, i;
    pthread_t threads[3];
    for (i = 0; i < 3; i++) pthread_create(&threads[i], NULL, work, &stop);
    while (now() < until) {
        const int is_end = end - now() < 1;
        switch (draw(10)) {
        case 0: case 1: header(); break;
        case 2: queues(is_end); break;
        case 3: records(); break;
        case 4: another_pool(); break;
        case 5: if (end - now() < 0.5) length("pool"); break;
        case 6: forge(); break;
        case 7: control(is_end); break;
        case 8: names(); break;
        default: move(); break;
        }
        usleep((useconds_t)draw(2000));
    }
    _exit(0);
}

int main(int argc, char **argv) {
    double end;
    uint32_t i;
    if (argc < 4) return 2;
    snprintf(dir, sizeof dir, "%s", getenv("UNDERTICK_SESSION"));
    snprintf(away, sizeof away, "%s-away", dir);
    decoy = argv[3];
    dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    look_at_pool();
    state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15ull + 1;
    end = now() + atof(argv[1]);
    ut_name(5, "witness");
    for (i = 0; i < 1000; i++) ut_event(5, i);
    while (now() < end) {
        double until = now() + 0.2;
        pid_t pid;
        draw(2);
        pid = fork();
        if (pid == 0) child(until < end ? until : end, end);
        waitpid(pid, NULL, 0);
        if (faccessat(dir_fd, "kept", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            unlinkat(dir_fd, "pool", 0);
            unlinkat(dir_fd, "pool", AT_REMOVEDIR);
            renameat(dir_fd, "kept", dir_fd, "pool");
        }
        if (access(away, F_OK) == 0) {
            unlink(dir);
            if (rename(away, dir) != 0) abort();
        }
    }
    return 0;
}
