/* Known truth: doses of counted dependent instructions, 20 ns to 1 ms, inside ordered spans of a
 * loop of about 2 us, interleaved with a long chain of the same instructions. Run by `cargo
 * xtask bench truth`, which compares each span's compensated mean with the chain's price of its
 * dose. */
#include "../../crates/calibrate/src/dose.h"
#include "undertick.h"
#include <stdlib.h>

enum { CHAIN = 1, FIRST = 10 };

static uint64_t other_work(uint64_t x) {
    static uint64_t cells[512];
    int i;
    for (i = 0; i < 300; i++) {
        uint64_t *cell = &cells[(x >> 33) & 511];
        x = (x ^ *cell) * 2862933555777941757ull + 3037000493ull;
        *cell += x >> 7;
    }
    return x;
}

#define SECTION(event, work)     \
    do {                         \
        ut_begin_ordered(event); \
        work;                    \
        ut_end_ordered(event);   \
    } while (0)
#define TIMES(n, work)                       \
    do {                                     \
        uint32_t t_;                         \
        for (t_ = 0; t_ < (n); t_++) { work; } \
    } while (0)

int main(int argc, char **argv) {
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20000, i;
    DOSE_READY(odd);
    uint64_t x = 88172645463325252ull, choice = 7;
    for (i = 0; i < n; i++) {
        x = other_work(x);
        choice = choice * 6364136223846793005ull + 1442695040888963407ull;
        switch ((choice >> 33) % 5) {
        case 0: SECTION(FIRST + 0, DOSE(x, odd, 15)); break;
        case 1: SECTION(FIRST + 1, DOSE(x, odd, 35)); break;
        case 2: SECTION(FIRST + 2, DOSE(x, odd, 150)); break;
        case 3: SECTION(FIRST + 3, DOSE(x, odd, 700)); break;
        default: break;
        }
        if (i % 64 == 0) SECTION(CHAIN, TIMES(100, DOSE(x, odd, 200)));
        if (i % 64 == 32) SECTION(FIRST + 4, TIMES(35, DOSE(x, odd, 200)));
        if (i % 512 == 100) SECTION(FIRST + 5, TIMES(350, DOSE(x, odd, 200)));
        if (i % 2048 == 200) SECTION(FIRST + 6, TIMES(3500, DOSE(x, odd, 200)));
    }
    return x == 0;
}
