/* Calls whose number is known: see tests/functions/main.rs. It is compiled with
 * -finstrument-functions, and contains no code of Undertick. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile uint32_t sink;

APART static void leaf(void) { sink++; }
APART void exported(void) { leaf(); }
static inline void inlined(void) { sink += 2; }
APART static void recursive(int depth) {
    if (depth > 0) recursive(depth - 1);
    sink++;
}
static void same_address(void) { leaf(); }
void another_name(void) __attribute__((alias("same_address")));
APART static void by_pointer(void) { sink++; }
__attribute__((constructor)) static void before_main(void) { sink++; }

APART static void in_thread(void) { sink++; }
static void *thread(void *unused) {
    for (int i = 0; i < 1000; i++) in_thread();
    return unused;
}

APART static void in_handler(void) { sink++; }
static void handler(int number) {
    (void)number;
    in_handler();
}

static jmp_buf back;
APART static void jumps(void) { longjmp(back, 1); }
APART static void jumped_over(void) { jumps(); }

APART static void in_child(void) { sink++; }

static void (*library(const char *path, void **handle))(void) {
    void (*function)(void);
    void *symbol;
    *handle = dlopen(path, RTLD_NOW);
    if (*handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    symbol = dlsym(*handle, "from_library");
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Opens two libraries in turn, which are loaded at the same address. */
static void libraries(char **paths) {
    for (int round = 0; round < 3; round++)
        for (int which = 0; which < 2; which++) {
            void *handle;
            void (*function)(void) = library(paths[which], &handle);
            printf("%p\n", (void *)(uintptr_t)function);
            for (int i = 0; i <= which; i++) function();
            dlclose(handle);
        }
}

int main(int count, char **arguments) {
    void (*volatile pointer)(void) = by_pointer;
    pthread_t threads[4];
    for (int i = 0; i < 10; i++) exported();
    for (int i = 0; i < 20; i++) inlined();
    for (int i = 0; i < 3; i++) recursive(500);
    for (int i = 0; i < 5; i++) another_name();
    for (int i = 0; i < 7; i++) pointer();
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 6; i++) raise(SIGUSR1);
    for (volatile int i = 0; i < 8; i++)
        if (setjmp(back) == 0) jumped_over();
    for (int i = 0; i < 9; i++) {
        pid_t child = fork();
        if (child == 0) {
            in_child();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (count > 2) libraries(arguments + 1);
    return 0;
}
