/* What the C library promises about locks and memory: one line for each answer. The same lines must come
 * with the libraries that `undertick record --with` preloads. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, robust;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int cleaned, counter;

static void say(const char *what, long answer) { printf("%s %ld\n", what, answer); }

static struct timespec in_ms(clockid_t clock, long ms) {
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_nsec += ms * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void *dies_with_the_lock(void *nothing) {
    pthread_mutex_lock(&robust);
    return nothing;
}

static void unlock(void *mutex) {
    cleaned++;
    pthread_mutex_unlock(mutex);
}

static void *is_cancelled(void *nothing) {
    pthread_mutex_lock(&plain);
    pthread_cleanup_push(unlock, &plain);
    for (;;) pthread_cond_wait(&never, &plain);
    pthread_cleanup_pop(1);
    return nothing;
}

static void *counts(void *nothing) {
    void *volatile some;
    int i;
    for (i = 0; i < 100000; i++) {
        pthread_mutex_lock(&plain);
        counter++;
        pthread_mutex_unlock(&plain);
        some = malloc((size_t)(i % 100));
        free(some);
    }
    return nothing;
}

static void *tries_all(void *nothing) {
    struct timespec soon = in_ms(CLOCK_REALTIME, 20);
    say("timedlock of another's", pthread_mutex_timedlock(&plain, &soon));
    soon = in_ms(CLOCK_MONOTONIC, 20);
    say("clocklock of another's", pthread_mutex_clocklock(&plain, CLOCK_MONOTONIC, &soon));
    say("trylock of another's", pthread_mutex_trylock(&plain));
    soon = in_ms(CLOCK_REALTIME, 20);
    say("timedrdlock while written", pthread_rwlock_timedrdlock(&table, &soon));
    soon = in_ms(CLOCK_REALTIME, 20);
    say("timedwrlock while written", pthread_rwlock_timedwrlock(&table, &soon));
    soon = in_ms(CLOCK_MONOTONIC, 20);
    say("clockwrlock while written", pthread_rwlock_clockwrlock(&table, CLOCK_MONOTONIC, &soon));
    return nothing;
}

static pthread_mutex_t made(int type, int is_robust) {
    pthread_mutexattr_t kind;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, type);
    if (is_robust) pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&mutex, &kind);
    return mutex;
}

static void locks(void) {
    pthread_mutex_t checked = made(PTHREAD_MUTEX_ERRORCHECK, 0), recursive = made(PTHREAD_MUTEX_RECURSIVE, 0);
    pthread_t threads[4];
    struct timespec soon;
    void *result;
    int i;
    say("lock", pthread_mutex_lock(&checked));
    say("lock of one's own", pthread_mutex_lock(&checked));
    say("unlock", pthread_mutex_unlock(&checked));
    say("unlock of a free one", pthread_mutex_unlock(&checked));
    say("recursive", pthread_mutex_lock(&recursive));
    say("recursive again", pthread_mutex_lock(&recursive));
    say("recursive unlock", pthread_mutex_unlock(&recursive) + pthread_mutex_unlock(&recursive));
    robust = made(PTHREAD_MUTEX_DEFAULT, 1);
    pthread_create(threads, NULL, dies_with_the_lock, NULL);
    pthread_join(threads[0], NULL);
    say("lock of a dead thread's", pthread_mutex_lock(&robust));
    say("consistent", pthread_mutex_consistent(&robust));
    say("unlock of it", pthread_mutex_unlock(&robust));
    pthread_mutex_lock(&plain);
    say("wrlock", pthread_rwlock_wrlock(&table));
    say("rdlock of one's own write", pthread_rwlock_rdlock(&table));
    pthread_create(threads, NULL, tries_all, NULL);
    pthread_join(threads[0], NULL);
    pthread_rwlock_unlock(&table);
    soon = in_ms(CLOCK_REALTIME, 20);
    say("timedwait", pthread_cond_timedwait(&never, &plain, &soon));
    soon = in_ms(CLOCK_MONOTONIC, 20);
    say("clockwait", pthread_cond_clockwait(&never, &plain, CLOCK_MONOTONIC, &soon));
    pthread_mutex_unlock(&plain);
    pthread_create(threads, NULL, is_cancelled, NULL);
    usleep(50000);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    say("cancelled", result == PTHREAD_CANCELED);
    say("cleaned", cleaned);
    say("lock after it", pthread_mutex_lock(&plain));
    pthread_mutex_unlock(&plain);
    for (i = 0; i < 4; i++) pthread_create(&threads[i], NULL, counts, NULL);
    for (i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    say("counted", counter);
}

static sem_t full;

/* Never has to wait. */
static void *takes_for_ever(void *nothing) {
    for (;;) {
        sem_wait(&full);
        sem_post(&full);
    }
    return nothing;
}

static void semaphores(void) {
    sem_t slots;
    pthread_t thread;
    void *result;
    struct timespec soon;
    sem_init(&slots, 0, 1);
    errno = 77;
    say("sem_wait", sem_wait(&slots));
    say("errno is left alone", errno);
    soon = in_ms(CLOCK_REALTIME, 20);
    say("sem_timedwait", sem_timedwait(&slots, &soon));
    say("its errno", errno);
    soon = in_ms(CLOCK_MONOTONIC, 20);
    say("sem_clockwait", sem_clockwait(&slots, CLOCK_MONOTONIC, &soon));
    say("its errno", errno);
    sem_init(&full, 0, 1000);
    pthread_create(&thread, NULL, takes_for_ever, NULL);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    say("cancelled although it need not wait", result == PTHREAD_CANCELED);
    say("sem_post", sem_post(&slots));
    say("sem_trywait", sem_trywait(&slots));
}

static void memory(void) {
    volatile size_t huge = SIZE_MAX / 2;
    char *some = malloc(40), *more, *volatile nothing;
    void *aligned = NULL;
    int i, zeros = 0;
    memset(some, 5, 40);
    more = realloc(some, 100000);
    say("realloc keeps", more[0] + more[39]);
    free(more);
    errno = 0;
    say("malloc of too much", malloc(huge * 2) == NULL);
    say("its errno", errno);
    errno = 0;
    say("calloc that overflows", calloc(huge, 4) == NULL);
    say("its errno", errno);
    errno = 0;
    say("reallocarray that overflows", reallocarray(NULL, huge, 4) == NULL);
    say("its errno", errno);
    more = calloc(100, 10);
    for (i = 0; i < 1000; i++) zeros += more[i] == 0;
    say("zeros of calloc", zeros);
    say("usable", malloc_usable_size(more) >= 1000);
    nothing = realloc(more, 0);
    say("realloc to nothing", nothing == NULL);
    say("posix_memalign", posix_memalign(&aligned, 256, 100));
    say("is aligned", (uintptr_t)aligned % 256 == 0);
    free(aligned);
    say("posix_memalign of 3", posix_memalign(&aligned, 3, 100));
    aligned = aligned_alloc(4096, 8192);
    say("aligned_alloc", (uintptr_t)aligned % 4096 == 0);
    free(aligned);
    aligned = memalign(128, 10);
    say("memalign", (uintptr_t)aligned % 128 == 0);
    free(aligned);
    aligned = valloc(10);
    say("valloc", (uintptr_t)aligned % 4096 == 0);
    free(aligned);
    free(NULL);
    for (i = 0; i < 3; i++) {
        int status = 0;
        fflush(stdout);
        if (fork() == 0) {
            free(malloc(100));
            pthread_mutex_lock(&plain);
            pthread_mutex_unlock(&plain);
            _exit(i);
        }
        wait(&status);
        say("child", WEXITSTATUS(status));
    }
}

int main(void) {
    locks();
    semaphores();
    memory();
    return 0;
}
