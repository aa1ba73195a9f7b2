/* Prints how long a pair of the dose takes, in ns of the CPU's time, by a chain so long that all
 * other time is negligible. */
#include "dose.h"
#include <stdint.h>
#include <stdio.h>
#include <time.h>

int main(void) {
    uint64_t x = 1;
    struct timespec a, b;
    for (int i = 0; i < 2000; i++) DOSE(1000, x);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (int i = 0; i < 100000; i++) DOSE(1000, x);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    printf("%.6f\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e8);
    return x == 0;
}
