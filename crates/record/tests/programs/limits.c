/* Records 100000 events and a name, or nothing. */
#include "undertick.h"

int main(int argc, char **argv) {
    uint32_t i;
    (void)argv;
    if (argc > 1) return 0;
    ut_name(1, "counted");
    for (i = 0; i < 100000; i++) ut_event(1, i);
    return 0;
}
