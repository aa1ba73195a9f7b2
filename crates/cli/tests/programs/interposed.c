/* Waits for each kind of lock, whose holder is known, and allocates a known number of times
 * in each span. A thread goes on only when the other one sleeps: how busy the machine is changes nothing.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "undertick.h"

enum { REQUEST = 1, COMMIT, LOOKUP, UPDATE, READ, TAKE, PUSH, ACQUIRE, RELEASE, PARSE, TREE, CHILD };
enum { ROUNDS = 20 };

static pthread_mutex_t cache = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct {
    void *more[2];
    sem_t slots;
} pool;
static int jobs, turn, other;

static void nap(void) {
    const struct timespec pause = {0, 200000};
    nanosleep(&pause, NULL);
}

/* Waits for the turn; the other thread sets it just before it waits. */
static void await(int wanted) {
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != wanted) nap();
}
static void pass(int to) { __atomic_store_n(&turn, to, __ATOMIC_RELEASE); }

/* Until the other thread sleeps in the kernel, in the wait that its turn said. */
static void await_sleep(void) {
    char path[64], text[512];
    do {
        FILE *file;
        char *state = NULL;
        nap();
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", other);
        file = fopen(path, "r");
        if (file != NULL && fgets(text, sizeof text, file) != NULL) state = text;
        if (file != NULL) fclose(file);
        if (state != NULL && atoi(state) == SYS_futex) return;
    } while (1);
}

/* The holder's side of each wait. */
static void *holder(void *nothing) {
    int i;
    for (i = 0; i < ROUNDS; i++) {
        ut_begin(COMMIT);
        pthread_mutex_lock(&cache);
        pass(1);
        await(2);
        await_sleep();
        pthread_mutex_unlock(&cache);
        ut_end(COMMIT);
        await(3);
    }
    ut_begin(UPDATE);
    pthread_rwlock_wrlock(&table);
    pass(4);
    await(5);
    await_sleep();
    pthread_rwlock_unlock(&table);
    ut_end(UPDATE);
    await(6);
    await_sleep();
    ut_begin(PUSH);
    pthread_mutex_lock(&queue);
    jobs++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&queue);
    ut_end(PUSH);
    await(7);
    await_sleep();
    ut_begin(RELEASE);
    sem_post(&pool.slots);
    ut_end(RELEASE);
    return nothing;
}

static void wait_for_all(void) {
    int i;
    for (i = 0; i < ROUNDS; i++) {
        await(1);
        ut_begin(REQUEST);
        ut_begin(LOOKUP);
        pass(2);
        pthread_mutex_lock(&cache);
        pthread_mutex_unlock(&cache);
        ut_end(LOOKUP);
        ut_end(REQUEST);
        pass(3);
    }
    await(4);
    ut_begin(READ);
    pass(5);
    pthread_rwlock_rdlock(&table);
    pthread_rwlock_unlock(&table);
    ut_end(READ);
    ut_begin(TAKE);
    pthread_mutex_lock(&queue);
    pass(6);
    while (jobs == 0) pthread_cond_wait(&filled, &queue);
    pthread_mutex_unlock(&queue);
    ut_end(TAKE);
    ut_begin(ACQUIRE);
    pass(7);
    sem_wait(&pool.slots);
    ut_end(ACQUIRE);
}

static void allocate(void) {
    void *volatile kept[100];
    int i, j;
    for (i = 0; i < 50; i++) {
        ut_begin(PARSE);
        for (j = 0; j < 7; j++) kept[j] = malloc(100);
        ut_begin(TREE);
        kept[7] = calloc(3, 1000);
        kept[8] = realloc(kept[0], 5000);
        kept[0] = NULL;
        if (posix_memalign((void **)&kept[9], 64, 640) != 0) abort();
        ut_end(TREE);
        for (j = 0; j < 10; j++) free(kept[j]);
        ut_end(PARSE);
    }
    /* More than fit into a record, and a number of bytes that does not fit into 32 bits. */
    ut_begin(PARSE);
    for (i = 0; i < 3000; i++) {
        kept[0] = malloc(1);
        free(kept[0]);
    }
    kept[0] = malloc((size_t)5 << 30); /* reserved only, or refused */
    free(kept[0]);
    ut_end(PARSE);
}

int main(int count, char **words) {
    pthread_t thread;
    static const char *const names[] = {"", "request", "commit", "lookup", "update", "read", "take", "push", "acquire", "release", "parse", "tree", "child"};
    uint16_t i;
    for (i = REQUEST; i <= CHILD; i++) ut_name(i, names[i]);
    if (count > 1 && strcmp(words[1], "waits") == 0) {
        other = (int)syscall(SYS_gettid);
        sem_init(&pool.slots, 0, 0);
        if (pthread_create(&thread, NULL, holder, NULL) != 0) return 1;
        ut_thread_name("front");
        wait_for_all();
        pthread_join(thread, NULL);
    } else if (count > 1 && strcmp(words[1], "stuck") == 0) {
        /* Nobody unlocks: the process is killed while it waits. */
        pthread_mutex_lock(&cache);
        ut_begin(REQUEST);
        alarm(1);
        pthread_mutex_lock(&cache);
    } else {
        allocate();
        if (fork() == 0) {
            void *volatile one;
            ut_begin(CHILD);
            for (i = 0; i < 11; i++) {
                one = malloc(10);
                free(one);
            }
            ut_end(CHILD);
            exit(0);
        }
        wait(NULL);
    }
    return 0;
}
