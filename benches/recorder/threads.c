/* What a thread's first span costs, and ten in a short thread.
 *
 *     threads THREADS AT_ONCE
 *
 * Makes THREADS threads, AT_ONCE of them at a time. Prints for each the ticks of its first begin
 * and of ten spans, by fenced readings. Run by `cargo xtask bench threads`, with and without a
 * session. */
#include "fenced.h"
#include "undertick.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100000 };
static uint64_t first[MOST], ten[MOST];

static void *short_thread(void *number) {
    const size_t i = (size_t)number;
    const uint64_t from = fenced();
    int k;
    ut_begin(1);
    first[i] = fenced() - from;
    ut_end(1);
    for (k = 1; k < 10; k++) {
        ut_begin(1);
        ut_end(1);
    }
    ten[i] = fenced() - from;
    return NULL;
}

int main(int argc, char **argv) {
    const size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
    const size_t at_once = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    pthread_t *ids = malloc(sizeof *ids * (at_once > 0 ? at_once : 1));
    size_t i, k;
    if (ids == NULL || at_once == 0 || threads > MOST) return 1;
    for (i = 0; i + at_once <= threads; i += at_once) {
        for (k = 0; k < at_once; k++)
            if (pthread_create(&ids[k], NULL, short_thread, (void *)(i + k)) != 0) return 1;
        for (k = 0; k < at_once; k++) pthread_join(ids[k], NULL);
    }
    for (k = 0; k < i; k++) printf("%llu %llu\n", (unsigned long long)first[k], (unsigned long long)ten[k]);
    free(ids);
    return 0;
}
