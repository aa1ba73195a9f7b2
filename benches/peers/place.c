/* The same doses in the middle of the same work, with Undertick's ordered points. */
#include "undertick.h"
#include "dose.h"

#define SECTION(n)                     \
    do {                               \
        DOSE(2000, x);                 \
        ut_begin_ordered(n);           \
        DOSE(n, x);                    \
        ut_end_ordered(n);             \
    } while (0)

int main(void) {
    uint64_t x = 1;
    ut_name(5, "within_5");
    ut_name(20, "within_20");
    ut_name(50, "within_50");
    ut_name(200, "within_200");
    for (int i = 0; i < 50000; i++) {
        SECTION(5);
        SECTION(20);
        SECTION(50);
        SECTION(200);
    }
    return x == 0;
}
