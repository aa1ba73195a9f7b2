/* What a span is compared with: an empty call of an addon, and in C two waiting readings of the clock with two stores
 * of 16 bytes. */
#define NAPI_VERSION 8
#include <node_api.h>

#include "undertick.h"

static napi_value empty(napi_env env, napi_callback_info info) {
    (void)env;
    (void)info;
    return NULL;
}

/* floor(n): n times. */
static napi_value floors(napi_env env, napi_callback_info info) {
    static uint64_t records[4096];
    size_t count = 1;
    napi_value value = NULL;
    uint32_t n = 0, i, cpu = 0;
    napi_get_cb_info(env, info, &count, &value, NULL, NULL);
    napi_get_value_uint32(env, value, &n);
    for (i = 0; i < n; i++) {
        volatile uint64_t *at = &records[(i & 1023u) * 4];
        at[0] = ut_counter_after_(&cpu);
        at[1] = i;
        at[2] = ut_counter_after_(&cpu);
        at[3] = i;
    }
    return NULL;
}

NAPI_MODULE_INIT() {
    napi_value call;
    napi_create_function(env, "empty", NAPI_AUTO_LENGTH, empty, NULL, &call);
    napi_set_named_property(env, exports, "empty", call);
    napi_create_function(env, "floors", NAPI_AUTO_LENGTH, floors, NULL, &call);
    napi_set_named_property(env, exports, "floors", call);
    return exports;
}
