/* A process in which madvise() reports success and does nothing, as under some emulators. It
 * executes its arguments, or without any forks 50 children that record. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Forks by fork(), or without the C library, which would call handlers of pthread_atfork(). */
static pid_t split(int is_raw) { return is_raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork(); }

/* 100 events and 100 sampled spans here and in each child. */
int fork_children(void (*by)(uint16_t, uint32_t), void (*span)(void)) {
    int child, status, i, failed = 0;
    for (i = 0; i < 100; i++) by(1, (uint32_t)i), span();
    for (child = 0; child < 50; child++) {
        pid_t pid = split(child % 2);
        if (pid == 0) {
            for (i = 0; i < 100; i++) by(2, (uint32_t)i), span();
            _exit(0);
        }
        failed |= waitpid(pid, &status, 0) != pid || status != 0;
    }
    return failed;
}

#ifndef AS_LIBRARY
#include "undertick.h"

static int without_advice(char **argv) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 77;
    execv(argv[0], argv);
    return 78;
}

static void in_c(uint16_t event, uint32_t payload) { ut_event(event, payload); }
static void span(void) {
    ut_begin_sampled(3);
    ut_end_sampled(3);
}

int main(int argc, char **argv) { return argc > 1 ? without_advice(argv + 1) : fork_children(in_c, span); }
#endif
