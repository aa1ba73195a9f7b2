/* Threads that come and go, and write in bursts: the number of records is known by construction.
 * As a library it writes by the function that it is given. */
#include "undertick.h"
#include <pthread.h>
#include <unistd.h>

enum { ROUNDS = 16, THREADS = 30, BURSTS = 8, BURST = 512 };

typedef void (*record_event)(uint16_t event, uint32_t payload);

static void *burst(void *event) {
    record_event record = *(record_event *)event;
    uint32_t i;
    int n;
    for (n = 0; n < BURSTS; n++) {
        for (i = 0; i < BURST; i++) record(1, i);
        usleep(500);
    }
    return NULL;
}

int write_in_bursts(record_event record);
int write_in_bursts(record_event record) {
    pthread_t ids[THREADS];
    int round, i, made;
    for (round = 0; round < ROUNDS; round++) {
        for (made = 0; made < THREADS; made++)
            if (pthread_create(&ids[made], NULL, burst, &record)) return 3;
        for (i = 0; i < made; i++) pthread_join(ids[i], NULL);
    }
    return 0;
}

#ifndef AS_LIBRARY
static void record_here(uint16_t event, uint32_t payload) { ut_event(event, payload); }

int main(void) { return write_in_bursts(record_here); }
#endif
