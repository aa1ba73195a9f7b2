#include "undertick.h"

/* What the Rust part calls. */
unsigned c_part(unsigned n) {
    unsigned sum = 0;
    UT_SCOPE("in C");
    for (unsigned i = 0; i < 1000; i++) sum = sum * 31 + (i ^ n);
    return sum;
}
