/* What a span is compared with: an empty call by JNI, and in C two waiting readings of the clock with two stores of 16
 * bytes. */
#include <jni.h>

#include "undertick.h"

JNIEXPORT void JNICALL Java_dev_undertick_Bench_empty(JNIEnv *env, jclass self, jint number) {
    (void)env, (void)self, (void)number;
}

JNIEXPORT void JNICALL Java_dev_undertick_Bench_floors(JNIEnv *env, jclass self, jint n) {
    static uint64_t records[4096];
    uint32_t cpu = 0;
    jint i;
    (void)env, (void)self;
    for (i = 0; i < n; i++) {
        volatile uint64_t *at = &records[(i & 1023) * 4];
        at[0] = ut_counter_after_(&cpu);
        at[1] = (uint64_t)i;
        at[2] = ut_counter_after_(&cpu);
        at[3] = (uint64_t)i;
    }
}
