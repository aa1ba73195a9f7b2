/* Runs a program and writes the CPU time that the kernel charged it, all its threads
   together, s. Usage: cpu_time FILE PROGRAM [ARGUMENTS] */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct rusage used;
    int status;
    pid_t child;
    FILE *file;
    if (argc < 3) return 2;
    child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child) return 1;
    file = fopen(argv[1], "w");
    if (!file) return 1;
    fprintf(file, "%.6f\n",
            (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec));
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
