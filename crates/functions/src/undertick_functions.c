/* libundertick_functions.so - records the calls of a program that was compiled
 * with -finstrument-functions, through undertick.h.
 *
 *     $ cc -O2 -finstrument-functions program.c -o program
 *     $ undertick record --functions '^parse_' -- ./program
 *
 * `record --functions` preloads it; a program may also be linked with it
 * (-lundertick_functions). It is built without -finstrument-functions:
 *
 *     cc -O2 -fPIC -shared -ftls-model=initial-exec -fvisibility=hidden \
 *        -Wl,-z,initfirst undertick_functions.c -o libundertick_functions.so
 *
 * A call costs two looks into a small table and two records. The table says
 * which event an address has, and "none" for what the filter left out. What it
 * does not know yet is looked up in the tables that `undertick record` keeps in
 * the session directory (docs/format.md, section 9): symbols are read there, not
 * here. Nothing here locks or allocates from the heap, and nothing that is
 * called could be instrumented itself, so it may run in signal handlers and
 * below malloc.
 *
 * Licence: MIT or Apache-2.0, as you prefer. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

/* Functions are recorded of programs that `record` has started; and before there
 * is an environment nobody knows whether this is one. */
#define UNDERTICK_NO_ATTACH 1
#include "undertick.h"

#ifndef UNDERTICK_DISABLE

#define FN_EXPORT_ __attribute__((visibility("default"), no_instrument_function))
#define FN_COLD_ static __attribute__((noinline, cold, no_instrument_function))
#define FN_APART_ static __attribute__((noinline, no_instrument_function))

/* ---- layout: docs/format.md, section 9 ---------------------------------- */

#define FN_CONTROL_MAGIC_ 0x31304e4654435455ull /* "UTCTFN01" */
#define FN_TABLE_MAGIC_ 0x31304e4642545455ull   /* "UTTBFN01" */
#define FN_ASK_MAGIC_ 0x4b534155u               /* "UASK" */

struct fn_control {
    uint64_t magic;
    uint32_t alive;      /* 1 while somebody answers */
    uint32_t next_event; /* fetch-and-add */
    uint64_t beyond;     /* functions that got no number */
    uint64_t beyond_calls;
    uint64_t unanswered; /* times that a file's table could not be had */
};

struct fn_entry {
    uint64_t offset; /* address of the function less where its file is loaded */
    uint32_t event;  /* 0 not called yet, FN_FIRST_.. its number, FN_BEYOND_EVENT_ */
    uint32_t name_bytes;
    uint64_t name_at;
};

struct fn_table {
    uint64_t magic;
    uint64_t entries;
    uint64_t reserved[2];
    struct fn_entry entry[]; /* by offset, ascending */
};

struct fn_ask {
    uint32_t magic, bytes;
    int32_t pid;
    uint32_t reserved;
    uint64_t device, inode;
    char path[1024];
};

enum { FN_FIRST_ = 0x8000, FN_BEYOND_EVENT_ = 0x10000 };
/* What a word of the cache says instead of an event's number. */
enum { FN_NONE_ = 0, FN_BEYOND_ = 1 };

_Static_assert(sizeof(struct fn_entry) == 24 && offsetof(struct fn_table, entry) == 32, "layout");
_Static_assert(offsetof(struct fn_control, unanswered) == 32 && offsetof(struct fn_ask, path) == 32, "layout");

/* ---- the cache: address -> event ----------------------------------------- */

/* A word is address << 16 | event: one load tells both, and one store makes both
 * known. User space has 47 or 48 bits of addresses unless it asks for more. A
 * word that is lost costs another look-up, so nobody has to wait for anybody. */
struct fn_cache {
    uint64_t shift; /* 64 - log2 of the number of words */
    uint64_t words[];
};

enum { FN_FIRST_BITS_ = 12, FN_MOST_BITS_ = 22, FN_MOST_FILES_ = 256 };

static struct {
    uint64_t shift;
    uint64_t words[1 << FN_FIRST_BITS_];
} fn_first_cache = {64 - FN_FIRST_BITS_, {0}};

/* NULL: functions are not recorded. */
static struct fn_cache *volatile fn_cache;
static struct fn_control *fn_control;
static uint32_t fn_used, fn_growing, fn_clears;
static char fn_dir[200];

/* Tables that are mapped, by the file that they are about. */
static struct fn_file {
    uint64_t device, inode;
    struct fn_table *table; /* NULL: none of its functions are recorded */
    uint32_t ready;
} fn_files[FN_MOST_FILES_];
static uint32_t fn_files_used;

static inline __attribute__((always_inline, no_instrument_function)) uint64_t fn_place(uint64_t address, uint64_t shift) {
    return (address * 0x9e3779b97f4a7c15ull) >> (shift & 63);
}

FN_COLD_ void fn_put(struct fn_cache *cache, uint64_t word) {
    const uint64_t size = 1ull << (64 - cache->shift);
    uint64_t i, at = fn_place(word >> 16, cache->shift);
    for (i = 0; i < size; i++, at = (at + 1) & (size - 1)) {
        uint64_t found = __atomic_load_n(&cache->words[at], __ATOMIC_RELAXED);
        if (found == 0 && __atomic_compare_exchange_n(&cache->words[at], &found, word, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            __atomic_fetch_add(&fn_used, 1, __ATOMIC_RELAXED);
            return;
        }
        if (found >> 16 == word >> 16) return;
    }
}

FN_COLD_ void fn_forget(struct fn_cache *cache) {
    uint64_t i;
    for (i = 0; i < 1ull << (64 - cache->shift); i++) __atomic_store_n(&cache->words[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&fn_used, 0, __ATOMIC_RELAXED);
}

/* A cache four times as large. The old one stays where it is: others read it. */
FN_COLD_ void fn_grow(struct fn_cache *old) {
    const uint64_t bits = 64 - old->shift + 2, size = 1ull << bits;
    const uint32_t clears = __atomic_load_n(&fn_clears, __ATOMIC_SEQ_CST);
    struct fn_cache *cache;
    uint64_t i;
    long at;
    if (bits > FN_MOST_BITS_ || __atomic_exchange_n(&fn_growing, 1, __ATOMIC_ACQUIRE)) return;
    at = ut_syscall_(UT_SYS_MMAP_, 0, (long)(sizeof *cache + size * 8), UT_PROT_RW_, UT_MAP_PRIVATE_ | UT_MAP_ANONYMOUS_, -1, 0);
    if ((at > 0 || at < -4095) && fn_cache == old) {
        cache = (struct fn_cache *)at;
        cache->shift = 64 - bits;
        __atomic_store_n(&fn_used, 0, __ATOMIC_RELAXED);
        for (i = 0; i < 1ull << (64 - old->shift); i++) {
            uint64_t word = __atomic_load_n(&old->words[i], __ATOMIC_RELAXED);
            if (word) fn_put(cache, word);
        }
        __atomic_store_n(&fn_cache, cache, __ATOMIC_SEQ_CST);
        /* A library was closed meanwhile: what was copied may be of it. */
        if (__atomic_load_n(&fn_clears, __ATOMIC_SEQ_CST) != clears) fn_forget(cache);
    }
    __atomic_store_n(&fn_growing, 0, __ATOMIC_RELEASE);
}

/* ---- which file an address belongs to ------------------------------------ */

struct fn_where {
    uintptr_t base;
    const char *path; /* "": the program */
};

/* glibc 2.35 on; safe in signal handlers. The result is declared larger than it
 * is, because it depends on the version; its fourth word is the link map. */
extern int fn_find_object(void *address, uint64_t *result) __asm__("_dl_find_object") __attribute__((weak));

struct fn_search {
    uintptr_t address;
    struct fn_where *where;
};

FN_COLD_ int fn_look_at(struct dl_phdr_info *info, size_t size, void *data) {
    struct fn_search *search = (struct fn_search *)data;
    int i;
    (void)size;
    for (i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t start = (uintptr_t)info->dlpi_addr + (uintptr_t)info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && search->address - start < info->dlpi_phdr[i].p_memsz) {
            search->where->base = (uintptr_t)info->dlpi_addr;
            search->where->path = info->dlpi_name ? info->dlpi_name : "";
            return 1;
        }
    }
    return 0;
}

FN_COLD_ int fn_locate(uintptr_t address, struct fn_where *where) {
    struct fn_search search;
    if (&fn_find_object != NULL) {
        uint64_t found[32] = {0};
        const struct link_map *map;
        if (fn_find_object((void *)address, found) != 0) return 0;
        map = (const struct link_map *)(uintptr_t)found[3];
        where->base = (uintptr_t)map->l_addr;
        where->path = map->l_name ? map->l_name : "";
        return 1;
    }
    search.address = address;
    search.where = where;
    return dl_iterate_phdr(fn_look_at, &search);
}

/* ---- its table ------------------------------------------------------------ */

#if defined(__x86_64__)
enum { FN_SYS_READLINKAT_ = 267 };
#else
enum { FN_SYS_READLINKAT_ = 78 };
#endif
enum { FN_O_NONBLOCK_ = 04000, FN_TRIES_ = 20000 };

FN_COLD_ char *fn_append(char *out, const char *text) {
    while (*text) *out++ = *text++;
    *out = 0;
    return out;
}

FN_COLD_ char *fn_append_hex(char *out, uint64_t number) {
    int shift;
    for (shift = 60; shift >= 0; shift -= 4) *out++ = "0123456789abcdef"[(number >> shift) & 15];
    *out = 0;
    return out;
}

FN_COLD_ void fn_pause(void) {
    int64_t pause[2] = {0, 500000};
    ut_syscall_(UT_SYS_NANOSLEEP_, (long)pause, 0, 0, 0, 0, 0);
}

/* Asks the recorder for the table of a file; 0: nobody is there to ask. Opened
 * for reading, too, so that a recorder that is killed means no SIGPIPE. */
FN_COLD_ int fn_ask(const struct fn_file *file, const char *path) {
    struct fn_ask ask;
    char fifo[240];
    long there, fd, length = 0, written, tries;
    fn_append(fn_append(fifo, fn_dir), "/functions-asked");
    there = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)fifo, UT_O_WRONLY_ | FN_O_NONBLOCK_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (there < 0) return 0;
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)fifo, UT_O_RDWR_ | FN_O_NONBLOCK_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    ut_syscall_(UT_SYS_CLOSE_, there, 0, 0, 0, 0, 0);
    if (fd < 0) return 0;
    if (*path) {
        while (path[length] && length < (long)sizeof ask.path) length++;
        __builtin_memcpy(ask.path, path, (size_t)length);
    } else {
        length = ut_syscall_(FN_SYS_READLINKAT_, UT_AT_FDCWD_, (long)"/proc/self/exe", (long)ask.path, sizeof ask.path, 0, 0);
        if (length < 0) length = 0;
    }
    ask.magic = FN_ASK_MAGIC_;
    ask.bytes = (uint32_t)length;
    ask.pid = (int32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    ask.reserved = 0;
    ask.device = file->device;
    ask.inode = file->inode;
    for (tries = 0; tries < FN_TRIES_; tries++) { /* whole or not at all: less than PIPE_BUF */
        written = ut_syscall_(UT_SYS_WRITE_, fd, (long)&ask, (long)offsetof(struct fn_ask, path) + length, 0, 0, 0);
        if (written != -11 || !__atomic_load_n(&fn_control->alive, __ATOMIC_RELAXED)) break;
        fn_pause();
    }
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    return written > 0;
}

FN_COLD_ struct fn_table *fn_map(const char *table) {
    uint64_t status[32] = {0}, bytes, entries;
    struct fn_table *mapped;
    long fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)table, UT_O_RDWR_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0), at;
    if (fd < 0) return NULL;
    /* The size is the seventh word of struct stat on both architectures. */
    ut_syscall_(UT_SYS_NEWFSTATAT_, UT_AT_FDCWD_, (long)table, (long)status, 0, 0, 0);
    bytes = status[6];
    at = ut_syscall_(UT_SYS_MMAP_, 0, (long)bytes, UT_PROT_RW_, UT_MAP_SHARED_, fd, 0);
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    if (at < 0 && at > -4096) return NULL;
    mapped = (struct fn_table *)at;
    entries = mapped->entries;
    if (bytes < sizeof *mapped || mapped->magic != FN_TABLE_MAGIC_ || entries > (bytes - sizeof *mapped) / sizeof(struct fn_entry)) {
        ut_syscall_(UT_SYS_MUNMAP_, at, (long)bytes, 0, 0, 0, 0);
        return NULL;
    }
    return mapped;
}

/* Waits for an answer, ten seconds at most: symbols of large programs take time. */
FN_COLD_ struct fn_table *fn_get_table(const struct fn_file *file, const char *path) {
    char table[280];
    struct fn_table *mapped;
    int tries;
    fn_append_hex(fn_append(fn_append_hex(fn_append(fn_append(table, fn_dir), "/functions-"), file->device), "-"), file->inode);
    mapped = fn_map(table);
    if (mapped == NULL && fn_ask(file, path))
        for (tries = 0; mapped == NULL && tries < FN_TRIES_ && __atomic_load_n(&fn_control->alive, __ATOMIC_RELAXED); tries++) {
            fn_pause();
            mapped = fn_map(table);
        }
    if (mapped == NULL) __atomic_fetch_add(&fn_control->unanswered, 1, __ATOMIC_RELAXED);
    return mapped;
}

FN_COLD_ struct fn_table *fn_table_of(const char *path) {
    struct fn_file file = {0, 0, NULL, 1};
    uint64_t status[32] = {0};
    uint32_t i, used = __atomic_load_n(&fn_files_used, __ATOMIC_ACQUIRE);
    const char *found = *path ? path : "/proc/self/exe";
    if (ut_syscall_(UT_SYS_NEWFSTATAT_, UT_AT_FDCWD_, (long)found, (long)status, 0, 0, 0) == 0) {
        file.device = status[0];
        file.inode = status[1];
        for (i = 0; i < used && i < FN_MOST_FILES_; i++)
            if (__atomic_load_n(&fn_files[i].ready, __ATOMIC_ACQUIRE) && fn_files[i].device == file.device && fn_files[i].inode == file.inode)
                return fn_files[i].table;
        file.table = fn_get_table(&file, path);
    } else {
        __atomic_fetch_add(&fn_control->unanswered, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    i = __atomic_fetch_add(&fn_files_used, 1, __ATOMIC_RELAXED);
    if (i < FN_MOST_FILES_) { /* twice the same is no harm */
        fn_files[i].device = file.device;
        fn_files[i].inode = file.inode;
        fn_files[i].table = file.table;
        __atomic_store_n(&fn_files[i].ready, 1, __ATOMIC_RELEASE);
    }
    return file.table;
}

/* ---- an address that is new ----------------------------------------------- */

/* The event of an entry; the first process that calls the function gives it its
 * number, and all others of the session use that. */
FN_COLD_ uint32_t fn_event_of(struct fn_entry *entry) {
    uint32_t event = __atomic_load_n(&entry->event, __ATOMIC_RELAXED), number;
    if (event == 0) {
        number = __atomic_fetch_add(&fn_control->next_event, 1, __ATOMIC_RELAXED);
        if (number < FN_FIRST_ || number >= FN_BEYOND_EVENT_) number = FN_BEYOND_EVENT_;
        if (__atomic_compare_exchange_n(&entry->event, &event, number, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            event = number;
            if (number == FN_BEYOND_EVENT_) __atomic_fetch_add(&fn_control->beyond, 1, __ATOMIC_RELAXED);
        }
    }
    return event >= FN_FIRST_ && event < FN_BEYOND_EVENT_ ? event : FN_BEYOND_;
}

FN_COLD_ uint32_t fn_resolve(uintptr_t address) {
    struct fn_where where = {0, ""};
    struct fn_table *table;
    uint64_t low = 0, high, offset;
    if (!fn_locate(address, &where) || (table = fn_table_of(where.path)) == NULL) return FN_NONE_;
    offset = address - where.base;
    high = table->entries;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        struct fn_entry *entry = &table->entry[middle];
        if (entry->offset == offset) return fn_event_of(entry);
        if (entry->offset < offset) low = middle + 1;
        else high = middle;
    }
    return FN_NONE_;
}

FN_COLD_ uint32_t fn_learn(struct fn_cache *cache, uint64_t address) {
    const uint32_t event = fn_resolve((uintptr_t)address);
    fn_put(cache, address << 16 | event);
    /* A quarter full: nearly all are found at the first look. */
    if (__atomic_load_n(&fn_used, __ATOMIC_RELAXED) > (1ull << (64 - cache->shift)) / 4) fn_grow(cache);
    return event;
}

/* Not where it was looked for first. */
FN_APART_ uint32_t fn_find(struct fn_cache *cache, uint64_t address) {
    const uint64_t size = 1ull << (64 - cache->shift);
    uint64_t i, at = fn_place(address, cache->shift);
    for (i = 0; i < size; i++, at = (at + 1) & (size - 1)) {
        uint64_t word = __atomic_load_n(&cache->words[at], __ATOMIC_RELAXED);
        if (word == 0) break;
        if (word >> 16 == address) return (uint32_t)(word & 0xffff);
    }
    return fn_learn(cache, address);
}

/* ---- what the program calls ------------------------------------------------ */

/* The address as the cache has it: pointers may carry tags. */
static inline __attribute__((always_inline, no_instrument_function)) uint32_t fn_event(struct fn_cache *cache, void *function) {
    const uint64_t address = (uint64_t)(uintptr_t)function & 0xffffffffffffull;
    const uint64_t word = __atomic_load_n(&cache->words[fn_place(address, cache->shift)], __ATOMIC_RELAXED);
    const uint64_t difference = word ^ address << 16;
    return UT_LIKELY_(difference < 0x10000) ? (uint32_t)difference : fn_find(cache, address);
}

/* Apart, so that a call that the filter left out saves no registers. */
FN_APART_ void fn_begin(uint32_t event) {
    if (UT_UNLIKELY_(event == FN_BEYOND_)) __atomic_fetch_add(&fn_control->beyond_calls, 1, __ATOMIC_RELAXED);
    else ut_begin((uint16_t)event);
}

FN_APART_ void fn_end(uint32_t event) {
    if (UT_LIKELY_(event != FN_BEYOND_)) ut_end((uint16_t)event);
}

FN_EXPORT_ void __cyg_profile_func_enter(void *function, void *call_site);
FN_EXPORT_ void __cyg_profile_func_exit(void *function, void *call_site);

void __cyg_profile_func_enter(void *function, void *call_site) {
    struct fn_cache *cache = fn_cache;
    uint32_t event;
    (void)call_site;
    if (UT_UNLIKELY_(cache == NULL)) return;
    if ((event = fn_event(cache, function)) != FN_NONE_) fn_begin(event);
}

void __cyg_profile_func_exit(void *function, void *call_site) {
    struct fn_cache *cache = fn_cache;
    uint32_t event;
    (void)call_site;
    if (UT_UNLIKELY_(cache == NULL)) return;
    if ((event = fn_event(cache, function)) != FN_NONE_) fn_end(event);
}

/* After a library is closed another one may lie at its addresses. */
FN_EXPORT_ int dlclose(void *handle) {
    int (*next)(void *) = NULL;
    void *symbol = dlsym(RTLD_NEXT, "dlclose");
    int result;
    if (symbol == NULL) return -1;
    __builtin_memcpy(&next, &symbol, sizeof next);
    result = next(handle);
    if (fn_cache != NULL) {
        __atomic_fetch_add(&fn_clears, 1, __ATOMIC_SEQ_CST);
        fn_forget(__atomic_load_n(&fn_cache, __ATOMIC_SEQ_CST));
    }
    return result;
}

/* So that `undertick` knows a program that was linked with this. */
__attribute__((visibility("default"))) extern const char undertick_functions_version[];
const char undertick_functions_version[] = "1";

/* After that of undertick.h, before those of the program and of its libraries
 * (-z initfirst): before that of libc, too, which sets `environ`. */
__attribute__((constructor(102), no_instrument_function)) static void fn_attach(int count, char **arguments, char **environment) {
    const char *dir;
    struct fn_control *control;
    char path[240];
    long fd, at;
    size_t length = 0;
    (void)count;
    (void)arguments;
    if (environ == NULL) {
        environ = environment;
        ut_attach_(); /* had no environment to look at */
    }
    dir = ut_secure_getenv_("UNDERTICK_SESSION");
    if (fn_cache != NULL || dir == NULL || dir[0] != '/') return;
    while (dir[length]) length++;
    if (length >= sizeof fn_dir) return;
    fn_append(fn_dir, dir);
    fn_append(fn_append(path, fn_dir), "/functions");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_RDWR_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0) return; /* `record` without --functions */
    at = ut_syscall_(UT_SYS_MMAP_, 0, 4096, UT_PROT_RW_, UT_MAP_SHARED_, fd, 0);
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    if (at < 0 && at > -4096) return;
    control = (struct fn_control *)at;
    if (control->magic != FN_CONTROL_MAGIC_) {
        ut_syscall_(UT_SYS_MUNMAP_, at, 4096, 0, 0, 0, 0);
        return;
    }
    fn_control = control;
    __atomic_store_n(&fn_cache, (struct fn_cache *)(void *)&fn_first_cache, __ATOMIC_RELEASE);
}

#endif /* UNDERTICK_DISABLE */
