/* The calls of undertick.h for Java, by JNI: one instance of the recorder for all threads of the process. The Java side
 * is dev.undertick.Native. */
#include <jni.h>

#include "undertick.h"

#ifdef UNDERTICK_DISABLE
#error "undertick: no recorder for this platform"
#endif

#include <sys/random.h>

#define CALL(type, name) JNIEXPORT type JNICALL Java_dev_undertick_Native_##name

/* A name as Java gives it: bytes of UTF-8. It gives at most 255. */
enum { NAME_BYTES = 256 };

/* The number of the next task, for all threads. It starts at random, so that tasks of two processes of a recording
 * hardly ever have one number. */
static uint32_t next_task;

__attribute__((constructor)) static void start_numbers(void) {
    if (getrandom(&next_task, sizeof next_task, GRND_NONBLOCK) != (ssize_t)sizeof next_task) next_task = 1;
}

/* Tasks may have no polls, and then are spans that may end elsewhere: their readings wait, as those of spans do
 * (docs/format.md, section 14). */
static void task_event(jint event, jint task) {
    ut_record_(UT_KIND_INSTANT_, (uint16_t)event, (uint32_t)task, UT_WAITING_READ_);
}

CALL(void, begin)(JNIEnv *env, jclass self, jint event) {
    (void)env, (void)self;
    ut_begin((uint16_t)event);
}

CALL(void, end)(JNIEnv *env, jclass self, jint event) {
    (void)env, (void)self;
    ut_end((uint16_t)event);
}

CALL(void, event)(JNIEnv *env, jclass self, jint event, jint payload) {
    (void)env, (void)self;
    ut_event((uint16_t)event, (uint32_t)payload);
}

CALL(void, wideEvent)(JNIEnv *env, jclass self, jint event, jlong payload) {
    (void)env, (void)self;
    ut_event64((uint16_t)event, (uint64_t)payload);
}

CALL(jint, newTask)(JNIEnv *env, jclass self, jint event) {
    const jint task = (jint)__atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED);
    (void)env, (void)self;
    task_event(event, task);
    return task;
}

CALL(void, taskEvent)(JNIEnv *env, jclass self, jint event, jint task) {
    (void)env, (void)self;
    task_event(event, task);
}

CALL(void, beginPoll)(JNIEnv *env, jclass self, jint polled, jint task, jint event) {
    (void)env, (void)self;
    ut_event((uint16_t)polled, (uint32_t)task);
    ut_begin((uint16_t)event);
}

static void text(JNIEnv *env, jbyteArray name, char *out) {
    const jsize bytes = (*env)->GetArrayLength(env, name);
    const jsize taken = bytes < NAME_BYTES - 1 ? bytes : NAME_BYTES - 1;
    (*env)->GetByteArrayRegion(env, name, 0, taken, (jbyte *)out);
    out[taken] = 0;
}

CALL(jint, numberOf)(JNIEnv *env, jclass self, jbyteArray name) {
    char out[NAME_BYTES];
    (void)self;
    text(env, name, out);
    return ut_number(out);
}

CALL(void, threadName)(JNIEnv *env, jclass self, jbyteArray name) {
    char out[NAME_BYTES];
    (void)self;
    text(env, name, out);
    ut_thread_name(out);
}

/* The word that says whether anything is recorded: reading it costs Java less than a call. The mapping stays as long as
 * the process. */
CALL(jobject, on)(JNIEnv *env, jclass self) {
    (void)self;
    return (*env)->NewDirectByteBuffer(env, (void *)(uintptr_t)ut_process.on, sizeof *ut_process.on);
}
