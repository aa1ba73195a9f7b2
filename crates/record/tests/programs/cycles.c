/* Loads and unloads a library as often as the command line says, and has it pass a number of
 * points each time; two libraries in turn, if a second one is named. Prints the number of its
 * mappings and its virtual memory, in KiB, after a tenth and at the end. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(void) {
    char line[512];
    unsigned long lines = 0, kib = 0;
    FILE *file = fopen("/proc/self/maps", "r");
    while (file && fgets(line, sizeof line, file)) lines += strchr(line, '\n') != NULL;
    if (file) fclose(file);
    file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmSize:", 7)) kib = strtoul(line + 7, NULL, 10);
    if (file) fclose(file);
    printf("%lu %lu\n", lines, kib);
}

int main(int argc, char **argv) {
    unsigned long cycles = argc > 3 ? strtoul(argv[2], NULL, 10) : 0, i;
    for (i = 1; i <= cycles; i++) {
        void (*work)(unsigned);
        const char *path = argv[argc > 4 && i % 2 ? 4 : 1];
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "cycle %lu: %s\n", i, dlerror());
            return 3;
        }
        *(void **)&work = dlsym(library, "work");
        work((unsigned)strtoul(argv[3], NULL, 10));
        if (dlclose(library)) return 4;
        if (dlopen(path, RTLD_NOW | RTLD_NOLOAD)) return 5; /* it was not unloaded */
        if (i == cycles / 10 || i == cycles) say();
    }
    return 0;
}
