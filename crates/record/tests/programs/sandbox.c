/* Enters a sandbox that kills for every system call but those that end a program, and records
 * there. -DAS_LIBRARY builds it for a program that records by another recorder. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int record_in_a_sandbox(void (*by)(uint16_t, uint32_t), uint32_t before, uint32_t inside) {
    const struct timespec pause = {1, 0};
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(exit_group), ALLOW(write), ALLOW(rt_sigreturn),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    uint32_t i;
    for (i = 0; i < before; i++) by(1, i);
    nanosleep(&pause, NULL); /* the collector has had time */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 77;
    for (i = 0; i < inside; i++) by(2, i);
    syscall(SYS_exit_group, 0);
    return 1;
}

#ifndef AS_LIBRARY
#include "undertick.h"

static void in_c(uint16_t event, uint32_t payload) { ut_event(event, payload); }

int main(int argc, char **argv) {
    return argc < 3 ? 2 : record_in_a_sandbox(in_c, (uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]));
}
#endif
