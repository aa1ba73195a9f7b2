/* Takes a test-and-set lock again and again, and writes begin and end of each lock and unlock
 * to the event card, as any program does that includes undertick.h. */
#include "undertick.h"

enum { LOCK = 1, UNLOCK = 2 };

/* A load that finds 0 has taken the lock; a store of 0 gives it back. */
#define LOCK_WORD (*(volatile uint32_t *)0x50000000u)
/* Another number for each processor and run. */
#define SEED (*(volatile uint32_t *)0x60000000u)

static uint32_t state;

static uint32_t draw(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state & (below - 1); /* below is a power of two */
}

static void work(uint32_t rounds) {
    while (rounds-- > 0) __asm__ volatile("");
}

void begin(void) {
    state = SEED | 1;
    for (;;) {
        work(draw(512));
        ut_begin(LOCK);
        while (LOCK_WORD != 0) work(draw(4));
        ut_end(LOCK);
        work(draw(16));
        ut_begin(UNLOCK);
        LOCK_WORD = 0;
        ut_end(UNLOCK);
    }
}
