/* The calls of undertick.h for Node.js, by Node-API: one instance of the recorder for all threads of the process. */
#define NAPI_VERSION 8
#include <node_api.h>

#include "undertick.h"

#ifdef UNDERTICK_DISABLE
#error "undertick: no recorder for this platform; build.js builds nothing here"
#endif

#include <sys/random.h>

enum { NAME_BYTES = 256 };

/* The number of the next task, for all threads. It starts at random, so that tasks of two processes of a recording
 * hardly ever have one number. */
static uint32_t next_task;

__attribute__((constructor)) static void start_numbers(void) {
    if (getrandom(&next_task, sizeof next_task, GRND_NONBLOCK) != (ssize_t)sizeof next_task) next_task = 1;
}

/* The argument `at` of a call as a number of 32 bits; 0 if it is none, which lib/name.js never passes. */
static uint32_t number(napi_env env, napi_value value) {
    uint32_t found = 0;
    napi_get_value_uint32(env, value, &found);
    return found;
}

static uint32_t only_number(napi_env env, napi_callback_info info) {
    size_t count = 1;
    napi_value value = NULL;
    napi_get_cb_info(env, info, &count, &value, NULL, NULL);
    return number(env, value);
}

static napi_value as_value(napi_env env, uint32_t number) {
    napi_value value = NULL;
    napi_create_uint32(env, number, &value);
    return value;
}

static napi_value begin(napi_env env, napi_callback_info info) {
    ut_begin((uint16_t)only_number(env, info));
    return NULL;
}

static napi_value end(napi_env env, napi_callback_info info) {
    ut_end((uint16_t)only_number(env, info));
    return NULL;
}

/* event(number, payload): a payload of 32 bits. */
static napi_value event(napi_env env, napi_callback_info info) {
    size_t count = 2;
    napi_value values[2] = {NULL, NULL};
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    ut_event((uint16_t)number(env, values[0]), number(env, values[1]));
    return NULL;
}

/* wideEvent(number, payload): a BigInt of up to 64 bits. */
static napi_value wide_event(napi_env env, napi_callback_info info) {
    size_t count = 2;
    napi_value values[2] = {NULL, NULL};
    uint64_t payload = 0;
    bool is_whole = false;
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    napi_get_value_bigint_uint64(env, values[1], &payload, &is_whole);
    ut_event64((uint16_t)number(env, values[0]), payload);
    return NULL;
}

/* Tasks may have no polls, and then are spans that may end elsewhere: their readings wait, as those of spans do
 * (docs/format.md, section 14). */
static void task_event(uint32_t event, uint32_t task) {
    ut_record_(UT_KIND_INSTANT_, (uint16_t)event, task, UT_WAITING_READ_);
}

/* newTask(number of the name's `new`): the task's number. */
static napi_value new_task(napi_env env, napi_callback_info info) {
    const uint32_t task = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);
    task_event(only_number(env, info), task);
    return as_value(env, task);
}

/* taskDone(number of the name's `done`, task) */
static napi_value task_done(napi_env env, napi_callback_info info) {
    size_t count = 2;
    napi_value values[2] = {NULL, NULL};
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    task_event(number(env, values[0]), number(env, values[1]));
    return NULL;
}

/* beginPoll(number of the name's `polled`, task, number of the name) */
static napi_value begin_poll(napi_env env, napi_callback_info info) {
    size_t count = 3;
    napi_value values[3] = {NULL, NULL, NULL};
    napi_get_cb_info(env, info, &count, values, NULL, NULL);
    ut_event((uint16_t)number(env, values[0]), number(env, values[1]));
    ut_begin((uint16_t)number(env, values[2]));
    return NULL;
}

/* numberOf(name): the event number of a name, of which 255 bytes count. */
static napi_value number_of(napi_env env, napi_callback_info info) {
    size_t count = 1, bytes = 0;
    napi_value value = NULL;
    char name[NAME_BYTES] = "";
    napi_get_cb_info(env, info, &count, &value, NULL, NULL);
    if (napi_get_value_string_utf8(env, value, name, sizeof name, &bytes) != napi_ok) return as_value(env, UT_OTHER_NAMES_);
    return as_value(env, ut_number(name));
}

static napi_value thread_name(napi_env env, napi_callback_info info) {
    size_t count = 1, bytes = 0;
    napi_value value = NULL;
    char name[NAME_BYTES] = "";
    napi_get_cb_info(env, info, &count, &value, NULL, NULL);
    if (napi_get_value_string_utf8(env, value, name, sizeof name, &bytes) == napi_ok) ut_thread_name(name);
    return NULL;
}

/* The word that says whether anything is recorded, as a Uint32Array: reading it costs JavaScript less than a call. The
 * mapping stays as long as the process. */
static napi_status word_that_says_on(napi_env env, napi_value *array) {
    napi_value buffer;
    void *const word = (void *)(uintptr_t)ut_process.on;
    const napi_status status = napi_create_external_arraybuffer(env, word, sizeof *ut_process.on, NULL, NULL, &buffer);
    return status != napi_ok ? status : napi_create_typedarray(env, napi_uint32_array, 1, buffer, 0, array);
}

NAPI_MODULE_INIT() {
    static const struct {
        const char *name;
        napi_callback call;
    } calls[] = {
        {"begin", begin}, {"end", end}, {"event", event}, {"wideEvent", wide_event},
        {"newTask", new_task}, {"beginPoll", begin_poll}, {"taskDone", task_done},
        {"numberOf", number_of}, {"threadName", thread_name},
    };
    napi_value value;
    size_t i;
    for (i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (napi_create_function(env, calls[i].name, NAPI_AUTO_LENGTH, calls[i].call, NULL, &value) != napi_ok ||
            napi_set_named_property(env, exports, calls[i].name, value) != napi_ok)
            return NULL;
    }
    if (word_that_says_on(env, &value) != napi_ok || napi_set_named_property(env, exports, "on", value) != napi_ok) {
        napi_throw_error(env, NULL,
                         "undertick: this Node.js cannot show memory of an addon to JavaScript (napi_create_external_arraybuffer)");
        return NULL;
    }
    return exports;
}
