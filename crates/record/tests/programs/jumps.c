/* A signal handler that jumps out while events are being recorded. Writes into a file the number
 * of begun events and of jumps. -DAS_LIBRARY builds it for a program that records by another
 * recorder. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile uint32_t begun, jumps;
static uint32_t most;
static void (*volatile record)(uint16_t event, uint32_t payload);

static void on_signal(int number) {
    (void)number;
    if (jumps == most) return; /* it was under way when the timer was stopped */
    record(2, 0);
    jumps++;
    siglongjmp(back, 1);
}

/* A timer that signals the calling thread only. */
static timer_t timer(void) {
    struct sigevent event = {0};
    timer_t made;
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGALRM;
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &event, &made) != 0) abort();
    return made;
}

static void interrupts(timer_t timer, long nanoseconds) {
    struct itimerspec every = {{0, nanoseconds}, {0, nanoseconds}};
    timer_settime(timer, 0, &every, NULL);
}

/* Records event 1 with the numbers from 1 on until the handler has jumped `wanted` times, then
 * event 3 with 0 .. last. The handler records event 2. */
int jump_out(void (*by)(uint16_t, uint32_t), uint32_t wanted, int on_signal_stack, uint32_t last, const char *out) {
    struct sigaction action = {0};
    stack_t stack = {0};
    static timer_t every;
    uint32_t i;
    FILE *said = fopen(out, "w");
    record = by;
    most = wanted;
    if (on_signal_stack) {
        stack.ss_size = 1 << 16;
        stack.ss_sp = malloc(stack.ss_size);
        if (sigaltstack(&stack, NULL) != 0) return 2;
    }
    action.sa_handler = on_signal;
    action.sa_flags = on_signal_stack ? SA_ONSTACK : 0;
    sigaction(SIGALRM, &action, NULL);
    every = timer();
    if (sigsetjmp(back, 1) == 0) interrupts(every, 250000);
    while (jumps < wanted) by(1, ++begun);
    interrupts(every, 0);
    for (i = 0; i < last; i++) by(3, i);
    fprintf(said, "%u %u\n", begun, jumps);
    return fclose(said) != 0;
}

#ifndef AS_LIBRARY
#include "undertick.h"

static void in_c(uint16_t event, uint32_t payload) { ut_event(event, payload); }

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    return jump_out(in_c, (uint32_t)atoi(argv[2]), atoi(argv[3]), (uint32_t)atoi(argv[4]), argv[1]);
}
#endif
