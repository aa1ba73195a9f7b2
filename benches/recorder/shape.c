/* THREADS threads write N events together: nested spans, three deep at most, of 24 kinds (eight
 * for each depth), with about 8 in 100 points among them. The durations are those of the
 * writing. Run by `cargo xtask bench kernel`. */
#define _GNU_SOURCE
#include "undertick.h"
#include <stdio.h>
#include <stdlib.h>

static uint64_t each;

static void *run(void *argument) {
    uint64_t mix = 0x9e3779b97f4a7c15u * (uint64_t)(uintptr_t)argument, i;
    uint16_t open[3];
    int depth = 0;
    for (i = 0; i < each; i++) {
        mix ^= mix << 13, mix ^= mix >> 7, mix ^= mix << 17;
        unsigned chance = (unsigned)(mix >> 40) & 1023;
        if (each - i <= (uint64_t)depth) ut_end(open[--depth]); /* all are ended */
        else if (chance < 82) ut_event(100, (uint32_t)mix & 4095);
        else if (depth < 3 && (depth == 0 || chance < 553) && each - i > (uint64_t)depth + 1) {
            open[depth] = (uint16_t)(1 + 8 * depth + (int)(mix >> 60 & 7));
            ut_begin(open[depth++]);
        } else if (depth > 0) ut_end(open[--depth]);
        else ut_event(100, 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1, i;
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    pthread_t *id;
    pthread_attr_t small;
    if (threads < 1 || threads > 10000) return 2;
    each = n / (uint64_t)threads;
    id = calloc((size_t)threads, sizeof *id);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (i = 0; i < threads; i++)
        if (pthread_create(&id[i], &small, run, (void *)(uintptr_t)(i + 1))) return 1;
    for (i = 0; i < threads; i++) pthread_join(id[i], NULL);
    free(id);
    return 0;
}
