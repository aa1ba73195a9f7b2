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
 * crates/lab/src/calibration/functions.rs counts in the same order: around 0, 3, 20, 50, 200
 * pairs of work, in the same order every time, and in random order. */
static const function_case functions[] = {
    undertick_calibrated_0, undertick_calibrated_3, undertick_calibrated_20, undertick_calibrated_50, undertick_calibrated_200,
    undertick_calibrated_random_0, undertick_calibrated_random_3, undertick_calibrated_random_20, undertick_calibrated_random_50,
    undertick_calibrated_random_200,
};
enum { DOSED = 5, FUNCTIONS = sizeof functions / sizeof functions[0] };

/* Ordered, around INNER steps of each kind of work, each step a function of its own: not
 * recorded, recorded. */
enum { FUNCTION_STEPS = 150 };
#define FUNCTION_STEPPED(kind) \
    uint64_t undertick_calibrated_step_##kind(uint64_t x, uint64_t odd); \
    static __attribute__((noinline)) uint64_t bare_step_##kind(uint64_t x, uint64_t odd) { return step(kind, x, odd); } \
    __attribute__((noinline)) uint64_t undertick_calibrated_step_##kind(uint64_t x, uint64_t odd) { \
        ENTER(undertick_calibrated_step_##kind); \
        x = step(kind, x, odd); \
        LEAVE(undertick_calibrated_step_##kind); \
        return x; \
    } \
    static __attribute__((noinline)) uint64_t function_steps_##kind(uint64_t x) { \
        DOSE_READY(odd); \
        int i; \
        ut_begin_ordered(FUNCTION_STEPS + 2 * kind); \
        for (i = 0; i < INNER; i++) x = bare_step_##kind(x, odd); \
        ut_end_ordered(FUNCTION_STEPS + 2 * kind); \
        ut_begin_ordered(FUNCTION_STEPS + 2 * kind + 1); \
        for (i = 0; i < INNER; i++) x = undertick_calibrated_step_##kind(x, odd); \
        ut_end_ordered(FUNCTION_STEPS + 2 * kind + 1); \
        return x; \
    }
FUNCTION_STEPPED(0)
FUNCTION_STEPPED(1)
FUNCTION_STEPPED(2)
FUNCTION_STEPPED(3)
FUNCTION_STEPPED(4)
FUNCTION_STEPPED(5)
FUNCTION_STEPPED(6)

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
        if (i % 2 == 0) {
            x = function_steps_0(x);
            x = function_steps_1(x);
            x = function_steps_2(x);
            x = function_steps_3(x);
            x = function_steps_4(x);
            x = function_steps_5(x);
            x = function_steps_6(x);
        }
        if (i % 16 == 0) x = chain(x);
    }
    return x;
}
