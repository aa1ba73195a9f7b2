/* What a function costs that is recorded by the hooks that a compiler calls
 * (-finstrument-functions): its own span, and what it adds to a span around it. The hooks
 * are called by hand in the way that compiled code does it, from functions whose names
 * `record --functions` can know. A part of calibration.c. */

extern void __cyg_profile_func_enter(void *function, void *call_site) __attribute__((weak));
extern void __cyg_profile_func_exit(void *function, void *call_site) __attribute__((weak));

#define ENTER(function) __cyg_profile_func_enter((void *)function, __builtin_return_address(0))
#define LEAVE(function) __cyg_profile_func_exit((void *)function, __builtin_return_address(0))
/* Not static, so that they keep their names; of a stripped program nothing is measured. */
#define HOOKED(name, work) \
    uint64_t undertick_calibrated_##name(uint64_t x); \
    __attribute__((noinline)) uint64_t undertick_calibrated_##name(uint64_t x) { \
        DOSE_READY(odd); \
        (void)odd; \
        ENTER(undertick_calibrated_##name); \
        work; \
        LEAVE(undertick_calibrated_##name); \
        return x; \
    }
HOOKED(0, (void)0)
HOOKED(3, DOSE(x, odd, 3))
HOOKED(20, DOSE(x, odd, 20))
HOOKED(50, DOSE(x, odd, 50))
HOOKED(200, DOSE(x, odd, 200))
HOOKED(random_0, (void)0)
HOOKED(random_3, DOSE(x, odd, 3))
HOOKED(random_20, DOSE(x, odd, 20))
HOOKED(random_50, DOSE(x, odd, 50))
HOOKED(random_200, DOSE(x, odd, 200))

typedef uint64_t (*function_case)(uint64_t);
/* Functions get their numbers in the order in which they are first called;
 * crates/calibrate/src/calibration/functions.rs counts in the same order: around 0, 3, 20, 50, 200
 * pairs of work, in the same order every time, and in random order. */
static const function_case functions[] = {
    undertick_calibrated_0, undertick_calibrated_3, undertick_calibrated_20, undertick_calibrated_50, undertick_calibrated_200,
    undertick_calibrated_random_0, undertick_calibrated_random_3, undertick_calibrated_random_20, undertick_calibrated_random_50,
    undertick_calibrated_random_200,
};
enum { DOSED = 5, FUNCTIONS = sizeof functions / sizeof functions[0] };

/* Ordered, around steps of work, each step a function of its own: not recorded, recorded. */
#define FUNCTION_STEPS_AS(name, event, steps, kind) \
    static __attribute__((noinline)) uint64_t bare_##name(uint64_t x) { \
        DOSE_READY(odd); \
        int i; \
        ut_begin_ordered(event); \
        for (i = 0; i < steps; i++) x = bare_step_##kind(x, odd); \
        ut_end_ordered(event); \
        return x; \
    } \
    static __attribute__((noinline)) uint64_t recorded_##name(uint64_t x) { \
        DOSE_READY(odd); \
        int i; \
        ut_begin_ordered(event + 1); \
        for (i = 0; i < steps; i++) x = undertick_calibrated_step_##kind(x, odd); \
        ut_end_ordered(event + 1); \
        return x; \
    }
/* INNER steps of each kind of work, and FLOOD steps of sums, one span after the other. */
enum { FUNCTION_STEPS = 150, FUNCTION_FLOODS = 164 };
#define FUNCTION_STEPPED(kind) \
    uint64_t undertick_calibrated_step_##kind(uint64_t x, uint64_t odd); \
    static __attribute__((noinline)) uint64_t bare_step_##kind(uint64_t x, uint64_t odd) { return step(kind, x, odd); } \
    __attribute__((noinline)) uint64_t undertick_calibrated_step_##kind(uint64_t x, uint64_t odd) { \
        ENTER(undertick_calibrated_step_##kind); \
        x = step(kind, x, odd); \
        LEAVE(undertick_calibrated_step_##kind); \
        return x; \
    } \
    FUNCTION_STEPS_AS(function_steps_##kind, FUNCTION_STEPS + 2 * kind, INNER, kind)
EACH_KIND(FUNCTION_STEPPED)
FUNCTION_STEPS_AS(function_flood, FUNCTION_FLOODS, FLOOD, 1 /* THROUGHPUT */)

#define FUNCTION_ROUND(kind) \
    x = bare_function_steps_##kind(x); \
    x = recorded_function_steps_##kind(x);
static __attribute__((noinline)) uint64_t stepped_functions(uint64_t x) {
    EACH_KIND(FUNCTION_ROUND)
    return x;
}

static __attribute__((noinline)) uint64_t flooded_functions(uint64_t x) {
    int i;
    for (i = 0; i < 8; i++) x = bare_function_flood(x);
    for (i = 0; i < 8; i++) x = recorded_function_flood(x);
    return x;
}

static uint64_t function_workload(uint32_t passes) {
    uint64_t x = 88172645463325252ull, choice = 1;
    uint32_t i;
    int at;
    if (__cyg_profile_func_enter == NULL || __cyg_profile_func_exit == NULL) return 0;
    for (at = 0; at < FUNCTIONS; at++) x = functions[at](x);
    for (i = 0; i < passes; i++) {
        for (at = 0; at < DOSED; at++) x = functions[at](other_work(x));
        choice = choice * 6364136223846793005ull + 1442695040888963407ull;
        x = functions[DOSED + (choice >> 33) % DOSED](other_work(x));
        if (i % 2 == 0) x = stepped_functions(x);
        if (i % 16 == 0) x = chain(x);
        if (i % 64 == 32) x = flooded_functions(x);
    }
    return x;
}
