/* The native part of a Python program; the test counts its events. */
#include "undertick.h"

void native_setup(void) { ut_name(1, "native work"); ut_name(2, "native tick"); }

unsigned native_work(unsigned n) {
    unsigned i, sum = 0;
    for (i = 0; i < n; i++) {
        ut_begin(1);
        sum += i;
        ut_event(2, i);
        ut_end(1);
    }
    return sum;
}

int native_enabled(void) { return ut_enabled(); }
