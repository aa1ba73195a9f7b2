/* libundertick_malloc.so - counts the allocations of a program by span, through undertick.h.
 *
 * `undertick record --with malloc` preloads it. Each call adds to a counter and compares the write positions
 * of its thread's rings. When one has moved, or after 1023 calls, it writes the counts, so each record covers
 * calls between two neighbouring points. The record's time is the start of the next counts: docs/format.md,
 * section 13.
 *
 * Licence: MIT or Apache-2.0, as you prefer. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

/* Whether the program is recorded is not known before the environment is set up. */
#define UNDERTICK_NO_ATTACH 1
#define UT_RECORDER_ 2u
#include "undertick.h"

#ifndef UNDERTICK_DISABLE

#define ML_EXPORT_ __attribute__((visibility("default")))
#define ML_COLD_ static __attribute__((noinline, cold))

enum { ML_EVENT_ = 0xfff0, ML_BYTES_BITS_ = 42, ML_CALLS_BITS_ = 11 };
/* The same counts in one record instead of two, where they fit. */
enum { ML_SMALL_EVENT_ = 0xfffa, ML_SMALL_BYTES_BITS_ = 20, ML_SMALL_CALLS_BITS_ = 6 };
enum { ML_HEADS_ = 4, ML_MOST_CALLS_ = 1023 };
/* Values of ml_state. */
enum { ML_UNKNOWN_ = 0, ML_STARTING_ = 1, ML_ON_ = 2, ML_OFF_ = 3 };

/* Ends of rings that there are not. */
static const uint64_t ml_no_head = 0;
static const uint32_t ml_no_rings = 0;

static volatile uint32_t ml_state;
static int ml_has_key;
static pthread_key_t ml_key;
/* The session's pool, mapped for reading by this library alone. It stays when a thread's recorders
 * leave theirs, and in a forked child. Only heads of this process are read through it: to read a page that
 * is not there would make it, or fail where /dev/shm is full. */
static const struct ut_pool_file_ *ml_pool;
static uintptr_t ml_heads;
static uint32_t ml_head_count;
static int32_t ml_pid; /* 0: not known */
/* Number of rings of all threads so far. */
static const volatile uint32_t *ml_rings = &ml_no_rings;

static __thread struct ml_thread {
    const volatile uint64_t *head[ML_HEADS_]; /* ends of the rings of this thread */
    uint64_t seen[ML_HEADS_];                 /* what they were when the counts began */
    uint32_t rings;                           /* rings of all threads that were looked at */
    uint32_t calls, frees;                    /* since the last record */
    int32_t tid;                              /* 0: not known yet */
    uint64_t bytes;
    uint64_t taken[2];                        /* heads of each queue of the pool that were looked at */
    uint32_t used;                            /* entries of `head` */
    uint32_t busy;
} ml_thread = {{&ml_no_head, &ml_no_head, &ml_no_head, &ml_no_head}, {1, 0, 0, 0}, 0, 0, 0, 0, 0, {0, 0}, 0, 0};

/* ---- the functions behind ---------------------------------------------------- */

/* What dlsym() may allocate while it looks for malloc. */
static char ml_early[4096] __attribute__((aligned(16)));
static size_t ml_early_used;

static struct {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void *(*reallocarray)(void *, size_t, size_t);
} ml_next;
static __thread uint32_t ml_resolving;

static void *ml_take_early(size_t bytes) {
    size_t at = __atomic_fetch_add(&ml_early_used, (bytes + 15) & ~(size_t)15, __ATOMIC_RELAXED);
    if (bytes > sizeof ml_early || at + bytes > sizeof ml_early) {
        errno = ENOMEM;
        return NULL;
    }
    return ml_early + at;
}

static inline int ml_is_early(const void *memory) { return (uintptr_t)memory - (uintptr_t)ml_early < sizeof ml_early; }

ML_COLD_ int ml_resolve(void) {
    static const char names[][16] = {"malloc", "free", "calloc", "realloc", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc", "reallocarray"};
    void **next = (void **)(void *)&ml_next;
    size_t i;
    if (ml_resolving) return 0;
    ml_resolving = 1;
    /* malloc last: the others look whether it is known. */
    for (i = sizeof names / sizeof names[0]; i-- > 0;) {
        void *found = dlsym(RTLD_NEXT, names[i]);
        __atomic_store_n(&next[i], found, __ATOMIC_RELEASE);
    }
    ml_resolving = 0;
    return ml_next.malloc != NULL && ml_next.free != NULL && ml_next.calloc != NULL && ml_next.realloc != NULL;
}

/* Whether the functions behind are known. */
static inline int ml_is_ready(void) { return UT_LIKELY_(__atomic_load_n(&ml_next.malloc, __ATOMIC_ACQUIRE) != NULL) || ml_resolve(); }

/* ---- the session -------------------------------------------------------------- */

ML_COLD_ void ml_map_pool(void) {
    char path[240];
    uint64_t status[32] = {0};
    struct ut_pool_file_ *pool;
    uintptr_t bytes;
    long fd, at;
    const uint32_t heads = ut_process.control->heads, segments = ut_process.control->budget_segments;
    if (heads == 0 || heads > UT_MOST_HEADS_ || segments == 0 || segments > UT_MOST_SEGMENTS_) return;
    /* Where heads lie: ut_map_pool_. */
    bytes = (4096 + 9 * (uintptr_t)segments + 8 * (uintptr_t)heads + UT_SEGMENT_MASK_) & ~UT_SEGMENT_MASK_;
    ut_path_(path, "pool");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0) return;
    at = -1;
    if (ut_syscall_(UT_SYS_NEWFSTATAT_, fd, (long)"", (long)status, UT_AT_EMPTY_PATH_, 0, 0) == 0 && status[UT_STAT_SIZE_] >= bytes + heads * UT_HEAD_BYTES_)
        at = ut_syscall_(UT_SYS_MMAP_, 0, (long)(bytes + heads * UT_HEAD_BYTES_), 1, UT_MAP_SHARED_ | UT_MAP_NORESERVE_, fd, 0);
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    if (at < 0 && at > -4096) return;
    ut_syscall_(UT_SYS_MUNLOCK_, at, (long)(bytes + heads * UT_HEAD_BYTES_), 0, 0, 0, 0);
    pool = (struct ut_pool_file_ *)at;
    if (pool->magic != UT_POOL_MAGIC_ || pool->version != UT_VERSION_ || pool->heads != heads || pool->segments != segments) {
        ut_unmap_(at, (long)(bytes + heads * UT_HEAD_BYTES_));
        return;
    }
    ml_heads = (uintptr_t)at + bytes;
    ml_head_count = heads;
    ml_pool = pool;
    ml_rings = &pool->next_ring;
}

static void ml_end_thread(void *thread);
static void ml_begin_child(void);

/* Runs before the constructor of undertick.h, or is called before it: the destructors of a thread's data run
 * in the order in which their keys were made, and the counts must be written before the ring is closed. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wprio-ctor-dtor"
__attribute__((constructor(100))) static void ml_make_key(void) {
    if (!ml_has_key) ml_has_key = pthread_key_create(&ml_key, ml_end_thread) == 0;
}
#pragma GCC diagnostic pop

/* Whether the program is recorded. */
ML_COLD_ int ml_start(void) {
    uint32_t state = __atomic_load_n(&ml_state, __ATOMIC_ACQUIRE);
    if (state == ML_ON_) return 1;
    if (state != ML_UNKNOWN_ || environ == NULL) return 0;
    if (!__atomic_compare_exchange_n(&ml_state, &state, ML_STARTING_, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return 0;
    ml_make_key();
    ut_attach_();
    if (ut_process.control != NULL) ml_map_pool();
    if (ml_pool != NULL) pthread_atfork(NULL, NULL, ml_begin_child);
    __atomic_store_n(&ml_state, ml_pool != NULL ? ML_ON_ : ML_OFF_, __ATOMIC_RELEASE);
    return ml_pool != NULL;
}

/* Whether the ring at a head is one in which this thread records spans. */
static int ml_is_mine(int fd, const struct ml_thread *m, uint64_t at) {
    struct ut_ring_start {
        uint64_t magic;
        uint32_t version, segment_bytes, ring, max_segments;
        int32_t pid, tid;
        uint32_t writer, nested;
    } ring;
#if defined(__x86_64__)
    enum { PREAD64 = 17 };
#else
    enum { PREAD64 = 67 };
#endif
    return ut_syscall_(PREAD64, fd, (long)&ring, sizeof ring, (long)at, 0, 0) == (long)sizeof ring && ring.magic == UT_RING_MAGIC_ &&
           ring.tid == m->tid && ring.pid == ml_pid && !ring.nested && ring.writer != UT_RECORDER_;
}

/* A place for one more ring: a free one, that of a closed ring, or the next one. */
static uint32_t ml_place(struct ml_thread *m) {
    uint32_t i;
    for (i = 0; i < ML_HEADS_; i++) {
        const struct ut_ring_ *ring = (const struct ut_ring_ *)((uintptr_t)m->head[i] - offsetof(struct ut_ring_, head));
        if (m->head[i] == &ml_no_head || ring->state != 1 || ring->tid != m->tid || ring->pid != ml_pid) return i;
    }
    return m->used++ % ML_HEADS_;
}

/* Notes the rings of this thread among those that were made since it looked last. At its first look these
 * are the latest ones: its own were made after it began. */
ML_COLD_ void ml_find_rings(struct ml_thread *m) {
    static const uint32_t queues[2] = {UT_HEADS_READY_, UT_HEADS_};
    enum { ML_LATEST_ = 64 };
    const uint32_t rings = __atomic_load_n(ml_rings, __ATOMIC_ACQUIRE);
    const int is_first = m->tid == 0;
    char path[240];
    long fd;
    int i;
    if (ml_pid == 0) ml_pid = (int32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    if (is_first) m->tid = (int32_t)ut_syscall_(UT_SYS_GETTID_, 0, 0, 0, 0, 0, 0);
    ut_path_(path, "pool");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    for (i = 0; i < 2 && fd >= 0; i++) {
        const uint64_t taken = __atomic_load_n(&ml_pool->queues[queues[i]].taken, __ATOMIC_ACQUIRE);
        const uint32_t *numbers = (const uint32_t *)((uintptr_t)ml_pool + 4096) + (i == 0 ? 0 : ml_head_count);
        const uint64_t most = is_first && ML_LATEST_ < ml_head_count ? ML_LATEST_ : ml_head_count;
        if (taken - m->taken[i] > most) m->taken[i] = taken - most;
        for (; m->taken[i] != taken; m->taken[i]++) {
            const uint32_t number = __atomic_load_n(&numbers[m->taken[i] % ml_head_count], __ATOMIC_RELAXED);
            const uintptr_t at = ml_heads + number * UT_HEAD_BYTES_;
            if (number < ml_head_count && ml_is_mine((int)fd, m, at - (uintptr_t)ml_pool)) m->head[ml_place(m)] = &((const struct ut_ring_ *)at)->head;
        }
    }
    if (fd >= 0) ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    m->rings = rings;
}

/* ---- counting ------------------------------------------------------------------- */

/* Writes the counts; a thread that wrote some before has its ring. */
static inline void ml_put(const struct ml_thread *m) {
    if (UT_LIKELY_(m->bytes >> ML_SMALL_BYTES_BITS_ == 0 && (m->calls | m->frees) >> ML_SMALL_CALLS_BITS_ == 0)) {
        ut_event(ML_SMALL_EVENT_, (uint32_t)m->bytes | m->calls << ML_SMALL_BYTES_BITS_ | m->frees << (ML_SMALL_BYTES_BITS_ + ML_SMALL_CALLS_BITS_));
    } else {
        const uint64_t most = (1ull << ML_BYTES_BITS_) - 1, bytes = m->bytes < most ? m->bytes : most;
        ut_event64(ML_EVENT_, bytes | (uint64_t)m->calls << ML_BYTES_BITS_ | (uint64_t)m->frees << (ML_BYTES_BITS_ + ML_CALLS_BITS_));
    }
}

/* Looks for the session, and for rings of this thread. */
ML_COLD_ void ml_look(struct ml_thread *m) {
    if (!ml_start()) return;
    if (m->tid == 0 && ml_has_key) pthread_setspecific(ml_key, m);
    ml_find_rings(m);
}

/* Writes the counts, and begins anew. Calls of the recorder itself are not counted. */
static __attribute__((noinline)) void ml_write(struct ml_thread *m) {
    int i;
    if (UT_UNLIKELY_(m->busy)) return;
    m->busy = 1;
    if (UT_UNLIKELY_(m->tid == 0 || *ml_rings != m->rings)) ml_look(m);
    if (UT_LIKELY_(m->tid != 0)) ml_put(m);
    m->calls = m->frees = 0;
    m->bytes = 0;
    /* The record may have needed a ring, by which no span begins. */
    m->rings = *ml_rings;
    for (i = 0; i < ML_HEADS_; i++) m->seen[i] = *m->head[i];
    m->busy = 0;
}

static inline __attribute__((always_inline)) void ml_count(uint32_t calls, uint32_t frees, uint64_t bytes) {
    struct ml_thread *m = &ml_thread;
    const uint64_t moved = (*m->head[0] ^ m->seen[0]) | (*m->head[1] ^ m->seen[1]) | (*m->head[2] ^ m->seen[2]) | (*m->head[3] ^ m->seen[3]);
    if (UT_UNLIKELY_((moved | (uint64_t)(*ml_rings ^ m->rings)) != 0 || m->calls + m->frees >= ML_MOST_CALLS_)) ml_write(m);
    m->calls += calls;
    m->frees += frees;
    m->bytes += bytes;
}

static void ml_end_thread(void *thread) {
    struct ml_thread *m = (struct ml_thread *)thread;
    if (m->calls | m->frees) ml_write(m);
}

/* The child has one thread, and its counts belong to the parent's. */
static void ml_begin_child(void) {
    struct ml_thread *m = &ml_thread;
    int i;
    for (i = 0; i < ML_HEADS_; i++) m->head[i] = &ml_no_head;
    m->seen[0] = 1; /* so that the next call writes */
    m->seen[1] = m->seen[2] = m->seen[3] = 0;
    for (i = 0; i < 2; i++) m->taken[i] = __atomic_load_n(&ml_pool->queues[i == 0 ? UT_HEADS_READY_ : UT_HEADS_].taken, __ATOMIC_ACQUIRE);
    m->calls = m->frees = m->used = m->busy = 0;
    m->bytes = 0;
    m->tid = 0;
    ml_pid = 0;
}

/* What was allocated before the C library knew its environment is in the first record. */
__attribute__((constructor(102))) static void ml_begin(void) { ml_write(&ml_thread); }

__attribute__((destructor(101))) static void ml_end(void) {
    struct ml_thread *m = &ml_thread;
    if (ml_state == ML_ON_ && (m->calls | m->frees)) ml_write(m);
}

/* ---- what the program calls ------------------------------------------------------ */

ML_EXPORT_ void *malloc(size_t bytes);
ML_EXPORT_ void free(void *memory);
ML_EXPORT_ void *calloc(size_t n, size_t bytes);
ML_EXPORT_ void *realloc(void *memory, size_t bytes);
ML_EXPORT_ void *memalign(size_t alignment, size_t bytes);
ML_EXPORT_ void *aligned_alloc(size_t alignment, size_t bytes);
ML_EXPORT_ int posix_memalign(void **memory, size_t alignment, size_t bytes);
ML_EXPORT_ void *valloc(size_t bytes);
ML_EXPORT_ void *pvalloc(size_t bytes);
ML_EXPORT_ void *reallocarray(void *memory, size_t n, size_t bytes);

void *malloc(size_t bytes) {
    if (UT_UNLIKELY_(!ml_is_ready())) return ml_take_early(bytes);
    ml_count(1, 0, bytes);
    return ml_next.malloc(bytes);
}

void free(void *memory) {
    if (UT_UNLIKELY_(memory == NULL || ml_is_early(memory) || !ml_is_ready())) return;
    ml_count(0, 1, 0);
    ml_next.free(memory);
}

void *calloc(size_t n, size_t bytes) {
    size_t all = 0;
    if (UT_UNLIKELY_(!ml_is_ready())) return __builtin_mul_overflow(n, bytes, &all) ? NULL : ml_take_early(all); /* it is zero */
    ml_count(1, 0, __builtin_mul_overflow(n, bytes, &all) ? 0 : all);
    return ml_next.calloc(n, bytes);
}

void *realloc(void *memory, size_t bytes) {
    if (UT_UNLIKELY_(!ml_is_ready())) return NULL;
    if (UT_UNLIKELY_(ml_is_early(memory))) {
        const size_t there = (size_t)(ml_early + sizeof ml_early - (char *)memory);
        void *larger = malloc(bytes);
        if (larger != NULL) __builtin_memcpy(larger, memory, bytes < there ? bytes : there);
        return larger;
    }
    /* With no bytes it frees. */
    ml_count(memory == NULL || bytes != 0, memory != NULL, bytes);
    return ml_next.realloc(memory, bytes);
}

void *reallocarray(void *memory, size_t n, size_t bytes) {
    size_t all = 0;
    if (__builtin_mul_overflow(n, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(memory, all);
}

#define ML_ALIGNED_(name, parameters, arguments, size) \
    void *name parameters { \
        if (UT_UNLIKELY_(!ml_is_ready() || ml_next.name == NULL)) { \
            errno = ENOMEM; \
            return NULL; \
        } \
        ml_count(1, 0, size); \
        return ml_next.name arguments; \
    }

ML_ALIGNED_(memalign, (size_t alignment, size_t bytes), (alignment, bytes), bytes)
ML_ALIGNED_(aligned_alloc, (size_t alignment, size_t bytes), (alignment, bytes), bytes)
ML_ALIGNED_(valloc, (size_t bytes), (bytes), bytes)
ML_ALIGNED_(pvalloc, (size_t bytes), (bytes), bytes)

int posix_memalign(void **memory, size_t alignment, size_t bytes) {
    if (UT_UNLIKELY_(!ml_is_ready() || ml_next.posix_memalign == NULL)) return ENOMEM;
    ml_count(1, 0, bytes);
    return ml_next.posix_memalign(memory, alignment, bytes);
}

#endif /* UNDERTICK_DISABLE */
