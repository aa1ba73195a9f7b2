/* A span around many points, compared with the same program without them: what `report`
 * subtracts for the points inside. Built once for each kind of point (-DWAY=n) and once without
 * points (-DWAY=0), which `cargo xtask bench nested` runs in turn.
 *
 *     nested KIND POINTS SPANS SEED
 *
 * WAY 5 is for -finstrument-functions and `record --functions`: there the inner work is a
 * separate function, and so it is in the program without points (-DWAY=0 -DAPART).
 *
 * Prints the mean ticks of the outer span by fenced readings, and those around nothing; ticks
 * over ten times the median, such as interrupts, are dropped. */
#include "../../crates/calibrate/src/dose.h"
#include "fenced.h"
#include "undertick.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

enum { OUTER = 1, INNER = 2 };
#if WAY == 5
#define APART
#endif
#if WAY == 1
#define BEGIN ut_event(INNER, 7)
#define END (void)0
#elif WAY == 2
#define BEGIN ut_begin(INNER)
#define END ut_end(INNER)
#elif WAY == 3
#define BEGIN ut_begin_ordered(INNER)
#define END ut_end_ordered(INNER)
#elif WAY == 4
#define BEGIN ut_begin_sampled(INNER)
#define END ut_end_sampled(INNER)
#else
#define BEGIN (void)0
#define END (void)0
#endif

#define NODES (1u << 21) /* 128 MiB: more than the share of the last cache that other tenants leave */
static struct { uint32_t next, unused[15]; } nodes[NODES];
#define SLOTS (1u << 16)
static uint64_t slots[SLOTS];
static uint64_t cells[64];

/* Text of repeated words, and the same text deflated. */
enum { TEXT = 1 << 20, PIECE = 256 };
static unsigned char text[TEXT], deflated[TEXT + TEXT / 2];
static z_stream inflating;
static uLong deflated_bytes = sizeof deflated;

static BESIDE int deflate_text(uint64_t *state) {
    size_t at = 0;
    while (at < TEXT) {
        uint64_t word = draw(state) % 2000 * 0x9e3779b97f4a7c15ull, length = 3 + (word >> 61);
        for (; length > 0 && at < TEXT - 1; length--, word >>= 5) text[at++] = (unsigned char)('a' + word % 26);
        text[at++] = ' ';
    }
    return compress(deflated, &deflated_bytes, text, TEXT) == Z_OK && inflateInit(&inflating) == Z_OK;
}

static BESIDE uint64_t inflate_piece(uint64_t x) {
    unsigned char piece[PIECE];
    if (inflating.avail_in == 0) {
        inflateReset(&inflating);
        inflating.next_in = deflated;
        inflating.avail_in = (uInt)deflated_bytes;
    }
    inflating.next_out = piece;
    inflating.avail_out = PIECE;
    if (inflate(&inflating, Z_NO_FLUSH) == Z_STREAM_END) inflating.avail_in = 0;
    return x + piece[x % PIECE];
}

enum { ROWS = 20000 };
static sqlite3 *database;
static sqlite3_stmt *lookup;

static BESIDE int fill_database(void) {
    char insert[200];
    snprintf(insert, sizeof insert,
             "CREATE TABLE t(k INTEGER PRIMARY KEY, v); WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO t SELECT i, i * 7 FROM n;",
             ROWS);
    return sqlite3_open(":memory:", &database) == SQLITE_OK && sqlite3_exec(database, insert, NULL, NULL, NULL) == SQLITE_OK &&
           sqlite3_prepare_v2(database, "SELECT v FROM t WHERE k = ?", -1, &lookup, NULL) == SQLITE_OK;
}

static BESIDE uint64_t look_up(uint64_t x) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    sqlite3_bind_int64(lookup, 1, (sqlite3_int64)((x >> 33) % ROWS));
    if (sqlite3_step(lookup) == SQLITE_ROW) x ^= (uint64_t)sqlite3_column_int64(lookup, 0);
    sqlite3_reset(lookup);
    return x;
}

static inline __attribute__((always_inline)) BESIDE uint64_t step(int kind, uint64_t x, uint64_t odd) {
    uint64_t a, b, c, d, slot;
    int i;
    switch (kind) {
    case 0: DOSE(x, odd, 40); break; /* latency */
    case 1: /* throughput */
        a = b = c = d = x;
        for (i = 0; i < 40; i++) __asm__ volatile("add %4, %0\n\tadd %4, %1\n\tadd %4, %2\n\tadd %4, %3" : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(odd) : "cc");
        x = a ^ b ^ c ^ d;
        break;
    case 2: x = nodes[nodes[x % NODES].next].next; break; /* memory */
    case 3: /* branches */
        for (i = 0; i < 4; i++) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            if (x >> 63) DOSE(x, odd, 4);
            else cells[x & 63] ^= x;
        }
        break;
    case 5: x = inflate_piece(x); break;
    case 6: x = look_up(x); break;
    default: /* hash map, half full */
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        slot = x >> 48;
        while (slots[slot] != 0 && slots[slot] != x) slot = (slot + 1) % SLOTS;
        x ^= slot;
    }
    return x;
}

#ifdef APART
#define INNER_OF(kind) \
    static __attribute__((noinline)) uint64_t inner_##kind(uint64_t x, uint64_t odd) { return step(kind, x, odd); }
INNER_OF(0) INNER_OF(1) INNER_OF(2) INNER_OF(3) INNER_OF(4) INNER_OF(5) INNER_OF(6)
#define STEP(kind, x, odd) inner_##kind(x, odd)
#else
#define STEP(kind, x, odd) step(kind, x, odd)
#endif

#define LOOP(kind) \
    static __attribute__((noinline)) BESIDE uint64_t loop_##kind(uint64_t x, uint32_t points) { \
        uint32_t i; \
        DOSE_READY(odd); \
        for (i = 0; i < points; i++) { \
            BEGIN; \
            x = STEP(kind, x, odd); \
            END; \
        } \
        return x; \
    }
LOOP(0) LOOP(1) LOOP(2) LOOP(3) LOOP(4) LOOP(5) LOOP(6)
enum { KINDS = 7 };
static uint64_t (*const loops[KINDS])(uint64_t, uint32_t) = {loop_0, loop_1, loop_2, loop_3, loop_4, loop_5, loop_6};

#ifdef APART
static __attribute__((noinline)) uint64_t outer(int kind, uint64_t x, uint32_t points) { return loops[kind](x, points); }
#else
#define outer(kind, x, points) loops[kind](x, points)
#endif

BESIDE int main(int argc, char **argv) {
    const int kind = argc > 1 ? atoi(argv[1]) % KINDS : 0;
    const uint32_t points = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 10;
    const uint32_t spans = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1000;
    uint64_t state = argc > 4 ? strtoull(argv[4], NULL, 10) : 1, x = 88172645463325252ull;
    uint64_t *ticks = malloc(sizeof *ticks * spans), *nothing = malloc(sizeof *nothing * spans);
    uint32_t i, r;
    if (ticks == NULL || nothing == NULL || spans == 0) return 1;
    for (i = 0; i < NODES; i++) nodes[i].next = i;
    for (i = NODES - 1; i > 0; i--) { /* Sattolo: one cycle */
        const uint32_t j = (uint32_t)(draw(&state) % i), next = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = next;
    }
    for (i = 0; i < SLOTS / 2; i++) slots[(draw(&state) * 0x9e3779b9u) % SLOTS] = draw(&state) | 1;
    if (!deflate_text(&state) || !fill_database()) return 1;
#if WAY < 5
    ut_name(OUTER, "outer");
    ut_name(INNER, "inner");
#endif
    for (r = 0; r < spans; r++) {
        uint64_t from;
        for (i = 0; i < 150; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
        from = fenced();
#if WAY > 0 && WAY < 5
        ut_begin_ordered(OUTER);
#endif
        x = outer(kind, x, points);
#if WAY > 0 && WAY < 5
        ut_end_ordered(OUTER);
#endif
        ticks[r] = fenced() - from;
        from = fenced();
        nothing[r] = fenced() - from;
    }
    printf("%.3f %.3f\n", mean(ticks, spans), mean(nothing, spans));
    free(ticks);
    free(nothing);
    return x == 1;
}
