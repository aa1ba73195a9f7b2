/* What recording costs, in the two kinds of loop that programs have: the same
 * spans in the same order every time, as where small times matter, and cases
 * in random order, whose code the core meets cold. Other work lies around each
 * span. Spans hold known doses of work; what a span shows beyond its
 * dose is what recording adds. A long chain of the same instructions, in
 * between, says what a dose takes, because the speed of a core drifts against
 * the counter.
 *
 * Other kinds of work have no known dose: a plain span around them is held against
 * an ordered one. What points inside a span cost is the difference between the same
 * loop with them and without, for each kind of work, because it depends on how much
 * of a point the core can do beside the work. */
#include "dose.h"
#include "undertick.h"
#include <string.h>

/* Event numbers; crates/calibrate/src/calibration/costs.rs has the same. */
enum {
    CHAIN = 1,
    /* In random order; after each, 3, 20, 50, 200 pairs of work. */
    PLAIN_0 = 10, ORDERED_0 = 20, PAIRED_0 = 50,
    /* In the same order every time. */
    REGULAR_PLAIN_0 = 60, REGULAR_ORDERED_0 = 70, REGULAR_PAIRED_0 = 80,
    /* Around other kinds of work (WORKS of them). */
    PLAIN_WORK = 30, ORDERED_WORK = 34,
    /* The same behind loads that nothing waits for. */
    PLAIN_BEHIND = 250, ORDERED_BEHIND = 260,
    /* Around 3 pairs, after work that has pushed the code of points out of the nearest caches. */
    PLAIN_COLD = 270, ORDERED_COLD = 271,
    INNER_EVENT = 40, INNER_SPAN = 41, INNER_ORDERED = 42, INNER_SAMPLED = 43,
    /* Ordered, around INNER steps of each kind of work: with nothing inside, an event, a
     * plain and an ordered span in each. */
    STEPS = 100, VARIANTS = 4,
    /* The same around FLOOD steps of sums, one span after the other. */
    FLOODS = 130,
    /* As PLAIN_0, of sampled spans. */
    REGULAR_SAMPLED_0 = 170, SAMPLED_0 = 180,
    /* As STEPS, with a sampled span in each, of which none or some are recorded. */
    SAMPLED_STEPS = 190,
    /* Around FLOOD steps of each kind of work: with nothing inside, with an event that is switched
     * off, and with such a span. */
    OFF_STEPS = 200, OFF_VARIANTS = 3,
    /* As STEPS, around SPARSE steps of each kind in EACH_SPARSE_KIND, which take about a
     * microsecond. */
    SPARSE_STEPS = 230
};
#define SAMPLED_SPANS_ONE_IN 4
enum { LATENCY, THROUGHPUT, MISSES, BRANCHES, OVERLAP, LOOP, LOOKUP, LONG_LATENCY, MANY_BRANCHES, FOOTPRINT };
/* Expands `once(kind)` for each kind of work. */
#define EACH_KIND(once) once(0) once(1) once(2) once(3) once(4) once(5) once(6)
/* Expands `once(kind)` for each kind of work that lies between records far from each other. */
#define EACH_SPARSE_KIND(once) once(7) once(8) once(9)
#define INNER 16
#define SPARSE 4
#define FLOOD 128
#define CHAIN_LINKS 100 /* of 200 pairs */
#define DOSES 5 /* with none */

static uint64_t table[4096]; /* 32 KiB: about the first-level cache */

static uint64_t other_work(uint64_t x) {
    int i;
    for (i = 0; i < 160; i++) {
        uint64_t *cell = &table[(x >> 20) & 4095];
        x = x * 6364136223846793005ull + *cell + 1442695040888963407ull;
        *cell ^= x;
    }
    return x;
}

/* Each case is a function of its own: in one function the compiler may take
 * common parts of the cases out of them, across a clock reading's neighbours. */
#define CASE(name, before, work, after) \
    static __attribute__((noinline)) uint64_t name(uint64_t x, uint32_t i) { DOSE_READY(odd); (void)i; (void)odd; before; work; after; return x; }
#define PLAIN(name, event, work) CASE(name, ut_begin(event), work, ut_end(event))
#define ORDERED(name, event, work) CASE(name, ut_begin_ordered(event), work, ut_end_ordered(event))
#define SAMPLED(name, event, work) CASE(name, ut_begin_sampled(event), work, ut_end_sampled(event))
#define PAIRED(name, event, work) CASE(name, ut_begin_paired(event), work, ut_end_paired(event))

PLAIN(plain_0, PLAIN_0, (void)0)
PLAIN(plain_3, PLAIN_0 + 1, DOSE(x, odd, 3))
PLAIN(plain_20, PLAIN_0 + 2, DOSE(x, odd, 20))
PLAIN(plain_50, PLAIN_0 + 3, DOSE(x, odd, 50))
PLAIN(plain_200, PLAIN_0 + 4, DOSE(x, odd, 200))
ORDERED(ordered_0, ORDERED_0, (void)0)
ORDERED(ordered_3, ORDERED_0 + 1, DOSE(x, odd, 3))
ORDERED(ordered_20, ORDERED_0 + 2, DOSE(x, odd, 20))
ORDERED(ordered_50, ORDERED_0 + 3, DOSE(x, odd, 50))
ORDERED(ordered_200, ORDERED_0 + 4, DOSE(x, odd, 200))
PAIRED(paired_0, PAIRED_0, (void)0)
PAIRED(paired_3, PAIRED_0 + 1, DOSE(x, odd, 3))
PAIRED(paired_20, PAIRED_0 + 2, DOSE(x, odd, 20))
PAIRED(paired_50, PAIRED_0 + 3, DOSE(x, odd, 50))
PAIRED(paired_200, PAIRED_0 + 4, DOSE(x, odd, 200))
SAMPLED(sampled_0, SAMPLED_0, (void)0)
SAMPLED(sampled_3, SAMPLED_0 + 1, DOSE(x, odd, 3))
SAMPLED(sampled_20, SAMPLED_0 + 2, DOSE(x, odd, 20))
SAMPLED(sampled_50, SAMPLED_0 + 3, DOSE(x, odd, 50))
SAMPLED(sampled_200, SAMPLED_0 + 4, DOSE(x, odd, 200))

/* Nodes of a line each, linked in random order: 512 KiB, more than the first-level cache.
 * Loads from memory scatter so much that a nanosecond could not be seen beside them. */
#define NODES (1u << 13)
static struct { uint32_t next, is_taken, unused[14]; } nodes[NODES];

static void link_nodes(void) {
    uint64_t choice = 7;
    uint32_t i;
    for (i = 0; i < NODES; i++) nodes[i].next = i;
    for (i = NODES - 1; i > 0; i--) { /* Sattolo: one cycle */
        uint32_t j, next;
        choice = choice * 6364136223846793005ull + 1442695040888963407ull;
        j = (uint32_t)((choice >> 33) % i);
        next = nodes[i].next;
        nodes[i].next = nodes[j].next;
        nodes[j].next = next;
        nodes[i].is_taken = (uint32_t)(choice >> 63);
    }
}

#if defined(__x86_64__)
#define JUMP_ "jmp 1f"
#define ADD_(from, to) "add " from ", " to "\n\t"
#else
#define JUMP_ "b 1f"
#define ADD_(from, to) "add " to ", " to ", " from "\n\t"
#endif
/* Code of 32 KiB: a jump in each of 512 lines, none of which falls through. */
static __attribute__((noinline)) void run_through_code(void) {
    __asm__ volatile(".rept 512\n\t" JUMP_ "\n\t.balign 64\n1:\n\t.endr");
}

static uint64_t lines[768][8]; /* 48 KiB */
static __attribute__((noinline)) uint64_t run_through_data(uint64_t x) {
    int i;
    for (i = 0; i < 768; i++) lines[i][0] += x;
    return x ^ lines[0][0];
}

static __attribute__((noinline)) uint64_t branch_at_random(uint64_t x, int times) {
    int i;
    for (i = 0; i < times; i++) {
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        if (x >> 63) table[x & 63] ^= x;
        else x ^= x >> 7;
    }
    return x;
}

/* A step of work that ends with `x`, of some tens of nanoseconds; of the kinds from LONG_LATENCY on,
 * of half a microsecond to two. */
static inline __attribute__((always_inline)) uint64_t step(int kind, uint64_t x, uint64_t odd) {
    if (kind == LATENCY) DOSE(x, odd, 40);
    if (kind == THROUGHPUT) {
        uint64_t a = x, b = x, c = x, d = x;
        __asm__ volatile(".rept 40\n\t" ADD_("%4", "%0") ADD_("%4", "%1") ADD_("%4", "%2") ADD_("%4", "%3") ".endr"
                         : "+r"(a), "+r"(b), "+r"(c), "+r"(d) : "r"(odd) : "cc");
        x = a ^ b ^ c ^ d;
    }
    if (kind == MISSES) x = nodes[nodes[x & (NODES - 1)].next].next;
    if (kind == BRANCHES) {
        int i;
        for (i = 0; i < 4; i++) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            if (x >> 63) DOSE(x, odd, 4);
            else table[x & 63] ^= x;
        }
    }
    if (kind == OVERLAP) {
        /* Nothing waits for these loads, so those of several steps are under way at once. */
        uint64_t load;
        int i;
        for (i = 0; i < 4; i++) {
            x = x * 6364136223846793005ull + 1442695040888963407ull;
            load = nodes[(x >> 33) & (NODES - 1)].next;
            __asm__ volatile("" : : "r"(load));
        }
    }
    if (kind == LOOP) {
        /* The core knows when such a loop ends by the branches before it, of which a point
         * has some. */
        uint64_t a = x, b = x, c = x;
        int i;
        for (i = 0; i < 28; i++) __asm__ volatile(ADD_("%3", "%0") ADD_("%3", "%1") ADD_("%3", "%2") : "+r"(a), "+r"(b), "+r"(c) : "r"(odd) : "cc");
        x = a ^ b ^ c;
    }
    if (kind == LOOKUP) {
        /* How often is nowhere to be known before. */
        uint32_t place;
        x = x * 6364136223846793005ull + 1442695040888963407ull;
        place = (uint32_t)(x >> 40) & (NODES - 1);
        while (nodes[place].is_taken) place = (place + 1) & (NODES - 1);
        x ^= place;
    }
    if (kind == LONG_LATENCY) {
        int i;
        for (i = 0; i < 4; i++) DOSE(x, odd, 200);
    }
    if (kind == MANY_BRANCHES) x = branch_at_random(x, 100);
    if (kind == FOOTPRINT) {
        x = run_through_data(x);
        run_through_code();
        x = branch_at_random(x, 50);
    }
    return x;
}

/* A few steps of a kind that are not measured: the first ones after other work find the caches and
 * the predictors with that work's contents, which would count against the variant that comes
 * first. */
#define WARM_UP(kind) \
    static __attribute__((noinline)) uint64_t warm_up_##kind(uint64_t x) { \
        DOSE_READY(odd); \
        int i; \
        for (i = 0; i < SPARSE; i++) x = step(kind, x, odd); \
        return x; \
    }
EACH_KIND(WARM_UP)
EACH_SPARSE_KIND(WARM_UP)

/* `steps` steps in an ordered span, each between `before` and `after`; `first` and `last` are done once,
 * at the ends of the span. */
#define STEPPED_BETWEEN(name, event, steps, kind, first, before, after, last) \
    static __attribute__((noinline)) uint64_t name(uint64_t x) { \
        DOSE_READY(odd); \
        uint32_t i; \
        ut_begin_ordered(event); \
        first; \
        for (i = 0; i < steps; i++) { \
            before; \
            x = step(kind, x, odd); \
            after; \
        } \
        last; \
        ut_end_ordered(event); \
        return x; \
    }
#define STEPPED_AS(name, event, steps, kind, before, after) \
    STEPPED_BETWEEN(name, event, steps, kind, (void)0, before, after, (void)0)
#define STEPPED(kind, variant, before, after) \
    STEPPED_AS(steps_##kind##_##variant, STEPS + kind * VARIANTS + variant, INNER, kind, before, after)
#define STEPPED_ALL(kind) \
    STEPPED(kind, 0, (void)0, (void)0) \
    STEPPED(kind, 1, ut_event(INNER_EVENT, i), (void)0) \
    STEPPED(kind, 2, ut_begin(INNER_SPAN), ut_end(INNER_SPAN)) \
    STEPPED(kind, 3, ut_begin_ordered(INNER_ORDERED), ut_end_ordered(INNER_ORDERED)) \
    STEPPED_AS(sampled_steps_##kind, SAMPLED_STEPS + kind, INNER, kind, ut_begin_sampled(INNER_SAMPLED), ut_end_sampled(INNER_SAMPLED))
EACH_KIND(STEPPED_ALL)

#define SPARSE_STEPPED(kind, variant, before, after) \
    STEPPED_AS(sparse_steps_##kind##_##variant, SPARSE_STEPS + (kind - LONG_LATENCY) * VARIANTS + variant, SPARSE, kind, before, after)
#define SPARSE_STEPPED_ALL(kind) \
    SPARSE_STEPPED(kind, 0, (void)0, (void)0) \
    SPARSE_STEPPED(kind, 1, ut_event(INNER_EVENT, i), (void)0) \
    SPARSE_STEPPED(kind, 2, ut_begin(INNER_SPAN), ut_end(INNER_SPAN)) \
    SPARSE_STEPPED(kind, 3, ut_begin_ordered(INNER_ORDERED), ut_end_ordered(INNER_ORDERED))
EACH_SPARSE_KIND(SPARSE_STEPPED_ALL)

/* At full speed, where records find no place in the caches that a record before them has
 * not taken, and segments are changed. */
STEPPED_AS(flood_0, FLOODS, FLOOD, THROUGHPUT, (void)0, (void)0)
STEPPED_AS(flood_1, FLOODS + 1, FLOOD, THROUGHPUT, ut_event(INNER_EVENT, i), (void)0)
STEPPED_AS(flood_2, FLOODS + 2, FLOOD, THROUGHPUT, ut_begin(INNER_SPAN), ut_end(INNER_SPAN))
STEPPED_AS(flood_3, FLOODS + 3, FLOOD, THROUGHPUT, ut_begin_ordered(INNER_ORDERED), ut_end_ordered(INNER_ORDERED))

/* While these steps last, the thread finds all points of a recording switched off, as it finds those of
 * some events with record --perturbation. */
static uint8_t off_control[UT_SWITCHED_AT_ + 8192] __attribute__((aligned(64)));
static volatile uint32_t off_on;
static volatile uint32_t *recording_on;
static struct ut_control_ *recording_control;
static __attribute__((noinline)) void switch_off(void) {
    off_on = (ut_thread.on & ~(uint32_t)UT_MODE_) | UT_SOME_;
    recording_on = ut_process.on;
    recording_control = ut_process.control;
    ut_process.on = &off_on;
    ut_process.control = (struct ut_control_ *)(void *)off_control;
    __asm__ volatile("" : : : "memory");
}
static __attribute__((noinline)) void switch_on(void) {
    __asm__ volatile("" : : : "memory");
    ut_process.on = recording_on;
    ut_process.control = recording_control;
    __asm__ volatile("" : : : "memory");
}
#define OFF_STEPPED(kind, variant, before, after) \
    STEPPED_BETWEEN(off_steps_##kind##_##variant, OFF_STEPS + kind * OFF_VARIANTS + variant, FLOOD, kind, switch_off(), before, after, switch_on())
#define OFF_STEPPED_ALL(kind) \
    OFF_STEPPED(kind, 0, (void)0, (void)0) \
    OFF_STEPPED(kind, 1, ut_event(INNER_EVENT, i), (void)0) \
    OFF_STEPPED(kind, 2, ut_begin(INNER_SPAN), ut_end(INNER_SPAN))
EACH_KIND(OFF_STEPPED_ALL)

/* Many steps of MISSES go through many nodes, some of which the other rounds have brought into the
 * near caches. Therefore each variant goes through the same nodes, which lie there already. */
static __attribute__((noinline)) uint64_t warm_up_nodes(uint64_t x) {
    int i;
    for (i = 0; i < FLOOD; i++) x = step(MISSES, x, 0);
    return x;
}
static inline __attribute__((always_inline)) uint64_t off_start(int kind, uint64_t x) {
    uint64_t first = 0;
    __asm__ volatile("" : "+r"(first) : "r"(x)); /* the steps before are needed, for all the compiler knows */
    return kind == MISSES ? first : x;
}
#define OFF_ROUND(kind) \
    x = warm_up_##kind(x); \
    if (kind == MISSES) x = warm_up_nodes(off_start(kind, x)); \
    x = off_steps_##kind##_0(off_start(kind, x)); \
    x = off_steps_##kind##_1(off_start(kind, x)); \
    x = off_steps_##kind##_2(off_start(kind, x));
static __attribute__((noinline)) uint64_t off(uint64_t x) {
    EACH_KIND(OFF_ROUND)
    return x;
}

#define SPARSE_ROUND(kind) \
    x = warm_up_##kind(x); \
    x = sparse_steps_##kind##_0(x); \
    x = sparse_steps_##kind##_1(x); \
    x = sparse_steps_##kind##_2(x); \
    x = sparse_steps_##kind##_3(x);
static __attribute__((noinline)) uint64_t sparse(uint64_t x) {
    EACH_SPARSE_KIND(SPARSE_ROUND)
    return x;
}

static __attribute__((noinline)) uint64_t flooded(uint64_t x) {
    int i;
    for (i = 0; i < 8; i++) x = flood_0(x);
    for (i = 0; i < 8; i++) x = flood_1(x);
    for (i = 0; i < 8; i++) x = flood_2(x);
    for (i = 0; i < 8; i++) x = flood_3(x);
    return x;
}

#define ROUND(kind) \
    x = warm_up_##kind(x); \
    x = steps_##kind##_0(x); \
    x = sampled_steps_##kind(x); /* only those count that have none or one recorded */ \
    x = steps_##kind##_1(x); \
    x = sampled_steps_##kind(x); \
    x = steps_##kind##_2(x); \
    x = sampled_steps_##kind(x); \
    x = steps_##kind##_3(x);
static __attribute__((noinline)) uint64_t stepped(uint64_t x) {
    EACH_KIND(ROUND)
    return x;
}

/* Four steps between plain readings, and between ordered ones. */
#define AROUND(kind) \
    do { \
        int i; \
        x = other_work(x); \
        ut_begin(PLAIN_WORK + kind); \
        for (i = 0; i < 4; i++) x = step(kind, x, odd); \
        ut_end(PLAIN_WORK + kind); \
        x = other_work(x); \
        ut_begin_ordered(ORDERED_WORK + kind); \
        for (i = 0; i < 4; i++) x = step(kind, x, odd); \
        ut_end_ordered(ORDERED_WORK + kind); \
    } while (0)
/* A step of OVERLAP before each: a reading that waits for what is under way lets the work after it begin
 * while it waits. */
#define AROUND_BEHIND(at, kind) \
    do { \
        x = step(OVERLAP, other_work(x), odd); \
        ut_begin(PLAIN_BEHIND + at); \
        x = step(kind, x, odd); \
        ut_end(PLAIN_BEHIND + at); \
        x = step(OVERLAP, other_work(x), odd); \
        ut_begin_ordered(ORDERED_BEHIND + at); \
        x = step(kind, x, odd); \
        ut_end_ordered(ORDERED_BEHIND + at); \
    } while (0)
static __attribute__((noinline)) uint64_t behind(uint64_t x) {
    DOSE_READY(odd);
    AROUND_BEHIND(0, LATENCY);
    AROUND_BEHIND(1, MISSES);
    AROUND_BEHIND(2, OVERLAP);
    AROUND_BEHIND(3, LOOKUP);
    return x;
}
static __attribute__((noinline)) uint64_t around(uint64_t x) {
    DOSE_READY(odd);
    AROUND(THROUGHPUT);
    AROUND(MISSES);
    AROUND(BRANCHES);
    return x;
}

/* A section twice, from the same code. The first time the core may have to fetch the code of the dose,
 * which is no cost of recording: a program's own code takes that time with points and without. Where a
 * neighbour on the other thread of the core takes the caches that both share, that was up to 10 ns. */
#define TWICE(name) \
    do { \
        int turn; \
        for (turn = 0; turn < 2; turn++) x = name(other_work(x), 0); \
    } while (0)
/* The same sections one after the other. Each is a function of its own, as above. In one function, or in
 * a loop of their own, the compiler kept the dose's multiplier in memory, and loading it inside the
 * section took a nanosecond and a half. */
#define REGULAR(k, work) \
    PLAIN(regular_plain_##k, REGULAR_PLAIN_0 + k, work) \
    ORDERED(regular_ordered_##k, REGULAR_ORDERED_0 + k, work) \
    PAIRED(regular_paired_##k, REGULAR_PAIRED_0 + k, work) \
    SAMPLED(regular_sampled_##k, REGULAR_SAMPLED_0 + k, work) \
    static uint64_t regular_##k(uint64_t x) { \
        TWICE(regular_plain_##k); \
        TWICE(regular_ordered_##k); \
        TWICE(regular_paired_##k); \
        return regular_sampled_##k(other_work(x), 0); \
    }
REGULAR(0, (void)0)
REGULAR(1, DOSE(x, odd, 3))
REGULAR(2, DOSE(x, odd, 20))
REGULAR(3, DOSE(x, odd, 50))
REGULAR(4, DOSE(x, odd, 200))
static uint64_t regular(uint64_t x) {
    return regular_4(regular_3(regular_2(regular_1(regular_0(x)))));
}

PLAIN(plain_cold, PLAIN_COLD, DOSE(x, odd, 3))
ORDERED(ordered_cold, ORDERED_COLD, DOSE(x, odd, 3))
static __attribute__((noinline)) uint64_t cold(uint64_t x, uint32_t i) {
    x = plain_cold(step(FOOTPRINT, x, 0), i);
    return ordered_cold(step(FOOTPRINT, x, 0), i);
}

typedef uint64_t (*measured_case)(uint64_t, uint32_t);
static const measured_case cases[] = {
    plain_0, plain_3, plain_20, plain_50, plain_200,
    ordered_0, ordered_3, ordered_20, ordered_50, ordered_200,
    paired_0, paired_3, paired_20, paired_50, paired_200,
    sampled_0, sampled_3, sampled_20, sampled_50, sampled_200,
};
#define CASES (sizeof cases / sizeof cases[0])

/* What a pair of work takes. */
static __attribute__((noinline)) uint64_t chain(uint64_t x) {
    DOSE_READY(odd);
    int link;
    ut_begin_ordered(CHAIN);
    for (link = 0; link < CHAIN_LINKS; link++) DOSE(x, odd, 200);
    ut_end_ordered(CHAIN);
    return x;
}

#include "calibration_functions.h"

/* `passes` through the regular sections, and five cases in random order for
 * each, in turns of 64 and 320, so that all kinds see the same times; the steps in
 * between. Or through the functions. */
uint64_t undertick_calibration_workload(uint32_t passes, int of_functions) {
    uint64_t x = 88172645463325252ull, choice = 1;
    uint32_t i, j;
    link_nodes();
    memset(off_control + UT_SWITCHED_AT_, 0xff, sizeof off_control - UT_SWITCHED_AT_);
    if (of_functions) return function_workload(passes);
    /* Each run records the same ones. */
    ut_sample_seed(x);
    ut_sample_rate(INNER_SAMPLED, INNER);
    for (i = 0; i < DOSES; i++) {
        ut_sample_rate((uint16_t)(REGULAR_SAMPLED_0 + i), SAMPLED_SPANS_ONE_IN);
        ut_sample_rate((uint16_t)(SAMPLED_0 + i), SAMPLED_SPANS_ONE_IN);
    }
    for (i = 0; i < passes; i++) {
        x = regular(x);
        x = around(x);
        if (i % 2 == 0) x = behind(x);
        if (i % 4 == 2) x = cold(x, i);
        if (i % 4 == 0) x = stepped(x);
        if (i % 16 == 0) x = chain(x);
        if (i % 16 == 8) x = off(x);
        if (i % 16 == 12) x = sparse(x);
        if (i % 64 != 63) continue;
        x = flooded(x);
        for (j = 0; j < 320; j++) {
            choice = choice * 6364136223846793005ull + 1442695040888963407ull;
            TWICE(cases[(choice >> 33) % CASES]);
        }
    }
    return x;
}
