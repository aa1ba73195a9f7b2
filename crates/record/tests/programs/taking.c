/* Two threads take from a queue that holds one number, many times: one gets it, and the other
 * learns that there is none, without a number. Ends with 0, or with 1 after printing what it
 * saw. */
#define UNDERTICK_NO_ATTACH
#include "undertick.h"
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

enum { ROUNDS = 100000, HEADS = 64, NONE = -1 };
static struct ut_pool_ pool;
static uint32_t got[2], number[2];
static uint32_t begun, done;

static void wait_for(const uint32_t *count, uint32_t least) {
    uint32_t looks = 0;
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < least) {
        if (++looks % 100 == 0) sched_yield(); /* there may be one CPU */
    }
}

static void take(uintptr_t which) {
    number[which] = (uint32_t)NONE;
    got[which] = (uint32_t)ut_take_(&pool, UT_HEADS_READY_, &number[which]);
}

static void *other(void *nothing) {
    uint32_t round;
    for (round = 1; round <= ROUNDS; round++) {
        wait_for(&begun, round);
        take(1);
        __atomic_store_n(&done, round, __ATOMIC_RELEASE);
    }
    return nothing;
}

int main(void) {
    pthread_t id;
    struct ut_queue_ *queue;
    uint32_t *numbers, round, i;
    pool.file = (struct ut_pool_file_ *)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool.file == MAP_FAILED) return 2;
    pool.head_count = pool.segment_count = HEADS;
    queue = &pool.file->queues[UT_HEADS_READY_];
    numbers = (uint32_t *)((uintptr_t)pool.file + 4096);
    if (pthread_create(&id, NULL, other, NULL)) return 2;
    for (round = 1; round <= ROUNDS; round++) {
        numbers[(round - 1) % HEADS] = round % HEADS;
        __atomic_store_n(&queue->put, round, __ATOMIC_RELEASE);
        __atomic_store_n(&begun, round, __ATOMIC_RELEASE);
        take(0);
        wait_for(&done, round);
        for (i = 0; i < 2; i++) {
            if (number[i] != (got[i] ? round % HEADS : (uint32_t)NONE) || got[0] + got[1] != 1) {
                printf("round %u: %u and %u, numbers %d and %d\n", round, got[0], got[1], (int)number[0], (int)number[1]);
                return 1;
            }
        }
    }
    return pthread_join(id, NULL);
}
