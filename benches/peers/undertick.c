/* Undertick beside the same floor, the same blocks. */
#include "undertick.h"
#include "floor.h"

BLOCK(event, ut_event(7, i))
BLOCK(section, ut_begin(8); ut_end(8))

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
