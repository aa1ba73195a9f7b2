/* Spans that have only names, for named.rs: WHO is the name of this part.
 *
 * named LIBRARY LIBRARY: eight threads go through the scopes of all three parts at once; then a
 * child does, forked by the program. named many: asks for more numbers than there are.
 * -DAS_LIBRARY builds one of the parts. */
#define _GNU_SOURCE
#include "undertick.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef WHO
#define WHO "program"
#endif

/* One span with the name of this part around three with a name that all parts have, from two
 * places. */
__attribute__((visibility("default"))) void part(void) {
    int i;
    UT_SCOPE(WHO);
    for (i = 0; i < 2; i++) {
        UT_SCOPE("shared");
        if (i == 1) continue; /* the scope ends here, too */
        {
            UT_SCOPE("shared");
        }
    }
}

#ifndef AS_LIBRARY
enum { THREADS = 8, MANY = 16400 };
static void (*parts[3])(void) = {part, NULL, NULL};
static pthread_barrier_t all;

static void *thread(void *nothing) {
    int i;
    pthread_barrier_wait(&all);
    for (i = 0; i < 3; i++) parts[i]();
    return nothing;
}

static int threads(void) {
    pthread_t ids[THREADS];
    int i;
    pthread_barrier_init(&all, NULL, THREADS);
    for (i = 0; i < THREADS; i++)
        if (pthread_create(&ids[i], NULL, thread, NULL)) return 3;
    for (i = 0; i < THREADS; i++) pthread_join(ids[i], NULL);
    return 0;
}

static int many(void) {
    char name[32];
    int i;
    for (i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "name %d", i);
        ut_event(ut_number(name), (uint32_t)i);
    }
    return ut_number("name 7") == ut_number("name 7") ? 0 : 4;
}

int main(int argc, char **argv) {
    int i, status = 0;
    pid_t child;
    if (argc == 2 && !strcmp(argv[1], "many")) return many();
    for (i = 1; i < 3; i++) {
        void *library = argc == 3 ? dlopen(argv[i], RTLD_NOW) : NULL;
        void *found = library != NULL ? dlsym(library, "part") : NULL;
        if (found == NULL) return 2;
        memcpy(&parts[i], &found, sizeof found);
    }
    if (threads()) return 3;
    child = fork();
    if (child == 0) exit(threads());
    return waitpid(child, &status, 0) == child ? status : 5;
}
#endif
