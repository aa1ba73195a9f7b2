/* Waits for the file of the third argument, names 3000 events, makes the file of the first
 * argument, waits for that of the second, and ends with status 7. */
#include "undertick.h"
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char text[64];
    uint32_t i;
    FILE *told;
    if (argc < 4) return 2;
    while (access(argv[3], F_OK)) usleep(1000);
    ut_thread_name("main thread");
    for (i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "event number %u, with a name that is long", i);
        ut_name((uint16_t)i, text);
    }
    for (i = 0; i < 100; i++) ut_event(1, i);
    told = fopen(argv[1], "w");
    if (!told || fclose(told)) return 3;
    while (access(argv[2], F_OK)) usleep(1000);
    return 7;
}
