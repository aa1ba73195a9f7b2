/* Two threads with a number of orders each, for the test of `undertick import`. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "shop.h"
#include <pthread.h>
#include <stdlib.h>

static int orders;

static void *work(void *unused) {
    for (int i = 0; i < orders; i++) {
        lttng_ust_tracepoint(shop, order_begin, i);
        /* Characters that a reader of text may take for syntax. */
        lttng_ust_tracepoint(shop, sold, i - 5, "a, \"b\" } = {");
        lttng_ust_tracepoint(shop, order_end, i);
    }
    return unused;
}

int main(int argc, char **argv) {
    pthread_t other;
    orders = argc > 1 ? atoi(argv[1]) : 1000;
    pthread_create(&other, NULL, work, NULL);
    work(NULL);
    pthread_join(other, NULL);
    return 0;
}
