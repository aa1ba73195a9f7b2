/* libundertick_locks.so - records what the threads of a program wait for, through undertick.h.
 *
 * `undertick record --with locks` preloads it. A free lock is taken with the try function, and nothing is
 * recorded. A held lock costs one failed attempt before the wait. A thread that must wait records the lock
 * and, if it is known, the holder, and then the result of the wait. Waits for conditions are always
 * recorded. So are signals and posts: the last one before a wait ended shows which thread woke it. The
 * records are described in docs/format.md, section 13.
 *
 * Licence: MIT or Apache-2.0, as you prefer. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <semaphore.h>
#include <time.h>

#define UNDERTICK_NO_ATTACH 1
#define UT_RECORDER_ 2u
#include "undertick.h"

#ifndef UNDERTICK_DISABLE

#define LK_EXPORT_ __attribute__((visibility("default")))
#define LK_COLD_ static __attribute__((noinline, cold))

enum {
    LK_MUTEX_ = 0xfff1, LK_READ_ = 0xfff2, LK_WRITE_ = 0xfff3, LK_CONDITION_ = 0xfff4, LK_SEMAPHORE_ = 0xfff5, /* a wait begins; payload: address */
    LK_HOLDER_ = 0xfff6,   /* payload: the thread that holds what the wait that has just begun is for */
    LK_END_ = 0xfff7,      /* the wait ends; payload: result of the call */
    LK_SIGNAL_ = 0xfff8, LK_POST_ = 0xfff9 /* payload: address */
};

typedef const struct timespec *lk_until;

/* The version of condition variables with today's layout. Without it old C libraries (glibc below 2.36)
 * give the first version that they had. */
#if defined(__x86_64__)
#define LK_CONDITIONS_ "GLIBC_2.3.2"
#else
#define LK_CONDITIONS_ "GLIBC_2.17"
#endif

static void *lk_look_up(const char *name, const char *version) {
    void *found = version != NULL ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

/* The functions behind, looked up in the constructor: to look up later takes the loader's lock, while the
 * program holds locks of its own. Another library's constructor may be faster than ours. */
#define LK_NEXT_(result, name, parameters) LK_NEXT_OF_(NULL, result, name, parameters)
#define LK_NEXT_OF_(version, result, name, parameters) \
    typedef result (*lk_type_##name) parameters; \
    static lk_type_##name lk_known_##name; \
    LK_COLD_ lk_type_##name lk_find_##name(void) { \
        void *found = lk_look_up(#name, version); \
        lk_type_##name next = NULL; \
        __builtin_memcpy(&next, &found, sizeof next); \
        __atomic_store_n(&lk_known_##name, next, __ATOMIC_RELEASE); \
        return next; \
    } \
    static inline lk_type_##name lk_next_##name(void) { \
        lk_type_##name next = __atomic_load_n(&lk_known_##name, __ATOMIC_ACQUIRE); \
        return UT_LIKELY_(next != NULL) ? next : lk_find_##name(); \
    }

LK_NEXT_(int, pthread_mutex_lock, (pthread_mutex_t *))
LK_NEXT_(int, pthread_mutex_trylock, (pthread_mutex_t *))
LK_NEXT_(int, pthread_mutex_timedlock, (pthread_mutex_t *, lk_until))
LK_NEXT_(int, pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, lk_until))
LK_NEXT_(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *))
LK_NEXT_(int, pthread_rwlock_rdlock, (pthread_rwlock_t *))
LK_NEXT_(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *, lk_until))
LK_NEXT_(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *, clockid_t, lk_until))
LK_NEXT_(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *))
LK_NEXT_(int, pthread_rwlock_wrlock, (pthread_rwlock_t *))
LK_NEXT_(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *, lk_until))
LK_NEXT_(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *, clockid_t, lk_until))
LK_NEXT_OF_(LK_CONDITIONS_, int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *))
LK_NEXT_OF_(LK_CONDITIONS_, int, pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, lk_until))
LK_NEXT_(int, pthread_cond_clockwait, (pthread_cond_t *, pthread_mutex_t *, clockid_t, lk_until))
LK_NEXT_OF_(LK_CONDITIONS_, int, pthread_cond_signal, (pthread_cond_t *))
LK_NEXT_OF_(LK_CONDITIONS_, int, pthread_cond_broadcast, (pthread_cond_t *))
LK_NEXT_(int, sem_trywait, (sem_t *))
LK_NEXT_(int, sem_wait, (sem_t *))
LK_NEXT_(int, sem_timedwait, (sem_t *, lk_until))
LK_NEXT_(int, sem_clockwait, (sem_t *, clockid_t, lk_until))
LK_NEXT_(int, sem_post, (sem_t *))

/* ---- where locks lie ------------------------------------------------------------- */

/* Locks that were looked for. A lock that finds no room gets no name. */
enum { LK_SEEN_ = 1024, LK_LOOKS_ = 8, LK_LOCK_NAME_ = 3 };
static uint64_t lk_seen[LK_SEEN_];

/* glibc 2.35 on; takes no lock, unlike dl_iterate_phdr(), which a thread that waits must not do. Locks of
 * programs with older ones have no names. The result is declared larger than it is, because it depends on
 * the version; its fourth word is the link map. */
extern int lk_find_object(void *address, uint64_t *result) __asm__("_dl_find_object") __attribute__((weak));

static char *lk_append_hex(char *out, uint64_t number) {
    int shift = 60;
    while (shift > 0 && number >> shift == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) *out++ = "0123456789abcdef"[(number >> shift) & 15];
    *out++ = ' ';
    return out;
}

/* Tells the recorder in which file a lock lies, and where in it: its symbol is the lock's name. */
LK_COLD_ void lk_tell(uintptr_t lock) {
#if defined(__x86_64__)
    enum { READLINKAT = 267 };
#else
    enum { READLINKAT = 78 };
#endif
    const struct link_map *map;
    uint64_t found[32] = {0};
    char text[256], *end;
    long length = 0;
    if (&lk_find_object == NULL || lk_find_object((void *)lock, found) != 0) return; /* on the heap, or on a stack */
    map = (const struct link_map *)(uintptr_t)found[3];
    end = lk_append_hex(lk_append_hex(text, lock), lock - (uintptr_t)map->l_addr);
    if (map->l_name != NULL && *map->l_name) {
        while (map->l_name[length] && end + length < text + sizeof text - 1) {
            end[length] = map->l_name[length];
            length++;
        }
    } else {
        length = ut_syscall_(READLINKAT, UT_AT_FDCWD_, (long)"/proc/self/exe", (long)end, text + sizeof text - 1 - end, 0, 0);
        if (length < 0) return;
    }
    end[length] = 0;
    if (end + length < text + sizeof text - 1) ut_append_name_(LK_LOCK_NAME_, 0, text);
}

static inline void lk_know(uintptr_t lock) {
    const uint64_t first = lock * 0x9e3779b97f4a7c15ull >> 54;
    uint32_t i;
    for (i = 0; i < LK_LOOKS_; i++) {
        uint64_t *seen = &lk_seen[(first + i) % LK_SEEN_], found = __atomic_load_n(seen, __ATOMIC_RELAXED);
        if (found == lock) return;
        if (found == 0 && __atomic_compare_exchange_n(seen, &found, lock, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            if (ut_process.control != NULL) lk_tell(lock);
            return;
        }
    }
}

/* A child's locks have the same addresses, in another process. */
static void lk_begin_child(void) { __builtin_memset(lk_seen, 0, sizeof lk_seen); }


/* ---- records ------------------------------------------------------------------------ */

static inline void lk_begin(uint16_t what, const void *lock, int32_t holder) {
    lk_know((uintptr_t)lock);
    ut_event64(what, (uint64_t)(uintptr_t)lock);
    if (holder > 0) ut_event(LK_HOLDER_, (uint32_t)holder);
}

static inline int lk_end(int result) {
    ut_event(LK_END_, (uint32_t)result);
    return result;
}

/* What the C library keeps in its locks; there is no function for it. */
static inline int32_t lk_owner(pthread_mutex_t *mutex) { return __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED); }
static inline int32_t lk_writer(pthread_rwlock_t *lock) { return __atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED); }

/* A function that takes a lock: first the attempt `try`, and while that says `busy` the call. */
#define LK_TAKE_(name, parameters, arguments, try, what, holder) \
    LK_EXPORT_ int name parameters; \
    LK_COLD_ int lk_slow_##name parameters { \
        const lk_type_##name next = lk_next_##name(); \
        if (next == NULL) return ENOSYS; /* this C library has none */ \
        lk_begin(what, lock, holder(lock)); \
        return lk_end(next arguments); \
    } \
    int name parameters { \
        const int result = lk_next_##try()(lock); \
        return UT_LIKELY_(result != EBUSY) ? result : lk_slow_##name arguments; \
    }

LK_TAKE_(pthread_mutex_lock, (pthread_mutex_t *lock), (lock), pthread_mutex_trylock, LK_MUTEX_, lk_owner)
LK_TAKE_(pthread_mutex_timedlock, (pthread_mutex_t *lock, lk_until until), (lock, until), pthread_mutex_trylock, LK_MUTEX_, lk_owner)
LK_TAKE_(pthread_mutex_clocklock, (pthread_mutex_t *lock, clockid_t clock, lk_until until), (lock, clock, until), pthread_mutex_trylock, LK_MUTEX_, lk_owner)
LK_TAKE_(pthread_rwlock_rdlock, (pthread_rwlock_t *lock), (lock), pthread_rwlock_tryrdlock, LK_READ_, lk_writer)
LK_TAKE_(pthread_rwlock_timedrdlock, (pthread_rwlock_t *lock, lk_until until), (lock, until), pthread_rwlock_tryrdlock, LK_READ_, lk_writer)
LK_TAKE_(pthread_rwlock_clockrdlock, (pthread_rwlock_t *lock, clockid_t clock, lk_until until), (lock, clock, until), pthread_rwlock_tryrdlock, LK_READ_, lk_writer)
LK_TAKE_(pthread_rwlock_wrlock, (pthread_rwlock_t *lock), (lock), pthread_rwlock_trywrlock, LK_WRITE_, lk_writer)
LK_TAKE_(pthread_rwlock_timedwrlock, (pthread_rwlock_t *lock, lk_until until), (lock, until), pthread_rwlock_trywrlock, LK_WRITE_, lk_writer)
LK_TAKE_(pthread_rwlock_clockwrlock, (pthread_rwlock_t *lock, clockid_t clock, lk_until until), (lock, clock, until), pthread_rwlock_trywrlock, LK_WRITE_, lk_writer)

/* A thread that is cancelled while it waits waits no longer. */
static void lk_cancelled(void *nothing) {
    (void)nothing;
    (void)lk_end(ECANCELED);
}

/* Condition variables are always waited for. */
#define LK_WAIT_(name, parameters, arguments) \
    LK_EXPORT_ int name parameters; \
    int name parameters { \
        const lk_type_##name next = lk_next_##name(); \
        int result; \
        if (next == NULL) return ENOSYS; \
        lk_begin(LK_CONDITION_, condition, 0); \
        pthread_cleanup_push(lk_cancelled, NULL); \
        result = next arguments; \
        pthread_cleanup_pop(0); \
        return lk_end(result); \
    }

LK_WAIT_(pthread_cond_wait, (pthread_cond_t *condition, pthread_mutex_t *mutex), (condition, mutex))
LK_WAIT_(pthread_cond_timedwait, (pthread_cond_t *condition, pthread_mutex_t *mutex, lk_until until), (condition, mutex, until))
LK_WAIT_(pthread_cond_clockwait, (pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, lk_until until), (condition, mutex, clock, until))

#define LK_WAKE_(name, type, what) \
    LK_EXPORT_ int name(type *object); \
    int name(type *object) { \
        ut_event64(what, (uint64_t)(uintptr_t)object); \
        return lk_next_##name()(object); \
    }

LK_WAKE_(pthread_cond_signal, pthread_cond_t, LK_SIGNAL_)
LK_WAKE_(pthread_cond_broadcast, pthread_cond_t, LK_SIGNAL_)
LK_WAKE_(sem_post, sem_t, LK_POST_)

/* As locks; the results are in errno. */
#define LK_SEMAPHORE_WAIT_(name, parameters, arguments) \
    LK_EXPORT_ int name parameters; \
    LK_COLD_ int lk_slow_##name parameters { \
        const lk_type_##name next = lk_next_##name(); \
        int result; \
        if (next == NULL) { \
            errno = ENOSYS; \
            return -1; \
        } \
        lk_begin(LK_SEMAPHORE_, semaphore, 0); \
        pthread_cleanup_push(lk_cancelled, NULL); \
        result = next arguments; \
        pthread_cleanup_pop(0); \
        (void)lk_end(result == 0 ? 0 : errno); \
        return result; \
    } \
    int name parameters { \
        const int before = errno; \
        int result; \
        pthread_testcancel(); /* also where it need not wait */ \
        result = lk_next_sem_trywait()(semaphore); \
        if (UT_LIKELY_(result == 0) || errno != EAGAIN) return result; \
        errno = before; \
        return lk_slow_##name arguments; \
    }

LK_SEMAPHORE_WAIT_(sem_wait, (sem_t *semaphore), (semaphore))
LK_SEMAPHORE_WAIT_(sem_timedwait, (sem_t *semaphore, lk_until until), (semaphore, until))
LK_SEMAPHORE_WAIT_(sem_clockwait, (sem_t *semaphore, clockid_t clock, lk_until until), (semaphore, clock, until))

__attribute__((constructor(102))) static void lk_attach(void) {
#define LK_FIND_(name) (void)lk_next_##name();
    LK_FIND_(pthread_mutex_lock) LK_FIND_(pthread_mutex_trylock) LK_FIND_(pthread_mutex_timedlock) LK_FIND_(pthread_mutex_clocklock)
    LK_FIND_(pthread_rwlock_tryrdlock) LK_FIND_(pthread_rwlock_rdlock) LK_FIND_(pthread_rwlock_timedrdlock) LK_FIND_(pthread_rwlock_clockrdlock)
    LK_FIND_(pthread_rwlock_trywrlock) LK_FIND_(pthread_rwlock_wrlock) LK_FIND_(pthread_rwlock_timedwrlock) LK_FIND_(pthread_rwlock_clockwrlock)
    LK_FIND_(pthread_cond_wait) LK_FIND_(pthread_cond_timedwait) LK_FIND_(pthread_cond_clockwait)
    LK_FIND_(pthread_cond_signal) LK_FIND_(pthread_cond_broadcast)
    LK_FIND_(sem_trywait) LK_FIND_(sem_wait) LK_FIND_(sem_timedwait) LK_FIND_(sem_clockwait) LK_FIND_(sem_post)
    pthread_atfork(NULL, NULL, lk_begin_child);
}

#endif /* UNDERTICK_DISABLE */
