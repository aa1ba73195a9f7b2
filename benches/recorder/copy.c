/* Copies a file in pieces and writes it to the disk. Usage: copy FROM TO TIMES */
#include "undertick.h"
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { ALL = 1, READ = 2, WRITE = 3, SYNC = 4 };

int main(int argc, char **argv) {
    static char piece[1 << 16];
    int times = argc > 3 ? atoi(argv[3]) : 1;
    if (argc < 3) return 2;
    ut_name(ALL, "all");
    ut_name(READ, "read");
    ut_name(WRITE, "write");
    ut_name(SYNC, "sync");
    ut_begin(ALL);
    while (times-- > 0) {
        int from = open(argv[1], O_RDONLY), to = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (from < 0 || to < 0) return 1;
        for (;;) {
            ssize_t got;
            ut_begin(READ);
            got = read(from, piece, sizeof piece);
            ut_end(READ);
            if (got <= 0) break;
            ut_begin(WRITE);
            if (write(to, piece, (size_t)got) != got) return 1;
            ut_end(WRITE);
        }
        ut_begin(SYNC);
        fsync(to);
        ut_end(SYNC);
        close(from);
        close(to);
    }
    ut_end(ALL);
    return 0;
}
