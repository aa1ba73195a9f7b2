/* LTTng-UST beside the floor. Arguments: blocks, points in each.
 * Run by `cargo xtask bench beside-recorders`, in a session of LTTng's. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng-points.h"
#include "floor.h"

BLOCK(event, lttng_ust_tracepoint(undertick_peers, event, i))
BLOCK(section, lttng_ust_tracepoint(undertick_peers, section_begin); lttng_ust_tracepoint(undertick_peers, section_end))

int main(int argc, char **argv) {
    int blocks = argc > 1 ? atoi(argv[1]) : 10;
    uint32_t n = argc > 2 ? (uint32_t)atoi(argv[2]) : 20000;
    make_floor_ring();
    event(n);
    for (int i = 0; i < blocks; i++) {
        timed("floor", floor_1, n);
        timed("event", event, n);
        timed("section", section, n);
    }
    return 0;
}
