/* Two threads and a queue of eight places: which waits for which. Usage: queue ITEMS */
#include "undertick.h"
#include <pthread.h>
#include <stdlib.h>

enum { ALL = 1, PUT = 2, TAKE = 3, WORK = 4, PLACES = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long items, held;

static void work(unsigned long steps) {
    unsigned long k, x = 1;
    for (k = 0; k < steps; k++) {
        x = x * 6364136223846793005ul + 1442695040888963407ul;
        __asm__ volatile("" : "+r"(x));
    }
}

static void *consumer(void *unused) {
    unsigned long i;
    ut_begin(ALL);
    for (i = 0; i < items; i++) {
        ut_begin(TAKE);
        pthread_mutex_lock(&lock);
        while (held == 0) pthread_cond_wait(&changed, &lock);
        held--;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        ut_end(TAKE);
        ut_begin(WORK);
        work(20000);
        ut_end(WORK);
    }
    ut_end(ALL);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t other;
    unsigned long i;
    items = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    ut_name(ALL, "all");
    ut_name(PUT, "put");
    ut_name(TAKE, "take");
    ut_name(WORK, "work");
    pthread_create(&other, NULL, consumer, NULL);
    ut_begin(ALL);
    for (i = 0; i < items; i++) {
        work(15000);
        ut_begin(PUT);
        pthread_mutex_lock(&lock);
        while (held == PLACES) pthread_cond_wait(&changed, &lock);
        held++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        ut_end(PUT);
    }
    ut_end(ALL);
    pthread_join(other, NULL);
    return 0;
}
