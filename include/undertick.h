/* undertick.h - records what a program does, at about the price of reading the clock. C11 and
 * C++17, one header, no library to link.
 *
 *     #include "undertick.h"
 *     ...
 *     { UT_SCOPE("parse");  parse(); }
 *
 *     enum { COMMIT = 1 }; // or with numbers that you choose, below 16384
 *     ut_name(COMMIT, "commit");
 *     ut_begin(COMMIT);  commit();  ut_end(COMMIT);
 *
 *     $ undertick record -o my.ut -- ./program
 *     $ undertick report my.ut
 *
 * Without a session (the program is started by hand) each call costs one predictable branch, until
 * `undertick record --pid PID` attaches to the running program. Built with UNDERTICK_DISABLE it
 * leaves no code. With UNDERTICK_NO_ATTACH, or started with UNDERTICK_ATTACH=0, it records only
 * when started by `record`.
 *
 * Each thread has its own ring in shared memory. An event is one 16-byte record and needs no lock,
 * no system call and no allocation. Calls are safe in signal handlers, after fork, in threads that
 * end, and in several dlopen()ed libraries at once. docs/format.md describes the layout; the Rust
 * recorder writes the same bytes.
 *
 * Built with UNDERTICK_CARD=ADDRESS each call is one store to an event card (hw/event_card) that is
 * mapped there, on any machine, without a library or an operating system. ADDRESS may be a constant
 * or an expression, such as a mapped pointer.
 *
 * The header supports Linux on x86-64 and aarch64, with GCC or Clang. Elsewhere the calls do
 * nothing, and a warning at compile time reports that (define UNDERTICK_DISABLE to silence it); for
 * 32-bit Linux it is an error.
 *
 * Licence: MIT or Apache-2.0, as you prefer. */
#ifndef UNDERTICK_H
#define UNDERTICK_H

#if !defined(UNDERTICK_DISABLE) && !defined(UNDERTICK_CARD) && defined(__linux__) && defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ < 8
#error "undertick.h: 32-bit programs cannot be recorded: build for 64 bits, or define UNDERTICK_DISABLE, and the calls do nothing"
#endif

#include <stdint.h>

#if !defined(UNDERTICK_DISABLE) && !defined(UNDERTICK_CARD) && !(defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__GNUC__))
#warning "undertick.h: no recorder for this platform; events are not recorded"
#define UNDERTICK_DISABLE 1
#endif

/* This header gives no warnings, however strict the program's own options are. Its tests request
 * them. */
#if defined(__GNUC__) && !defined(UNDERTICK_OWN_WARNINGS)
#pragma GCC system_header
#endif

#ifdef UNDERTICK_DISABLE

/* The arguments are never evaluated, so that no code is left. They are named, so that a variable
 * that is used only here causes no warning. */
#define UT_NOTHING_(a, b) ((void)(0 && ((void)(a), (void)(b), 1)))
#define ut_event(event, payload) UT_NOTHING_(event, payload)
#define ut_event64(event, payload) UT_NOTHING_(event, payload)
#define ut_begin(event) UT_NOTHING_(event, 0)
#define ut_end(event) UT_NOTHING_(event, 0)
#define ut_begin_fast(event) UT_NOTHING_(event, 0)
#define ut_end_fast(event) UT_NOTHING_(event, 0)
#define ut_next(from, to) UT_NOTHING_(from, to)
#define ut_pair(event) UT_NOTHING_(event, 0)
#define ut_begin_ordered(event) UT_NOTHING_(event, 0)
#define ut_end_ordered(event) UT_NOTHING_(event, 0)
#define ut_begin_paired(event) UT_NOTHING_(event, 0)
#define ut_end_paired(event) UT_NOTHING_(event, 0)
#define ut_begin_sampled(event) UT_NOTHING_(event, 0)
#define ut_end_sampled(event) UT_NOTHING_(event, 0)
#define ut_sample_rate(event, one_in) UT_NOTHING_(event, one_in)
#define ut_sample_seed(seed) UT_NOTHING_(seed, 0)
#define ut_name(event, name) UT_NOTHING_(event, name)
#define ut_thread_name(name) UT_NOTHING_(name, 0)
#define ut_number(name) ((uint16_t)UT_NOTHING_NUMBER_(name))
#define UT_NOTHING_NUMBER_(name) (0 && ((void)(name), 1))
#define UT_SCOPE(name) UT_NOTHING_(name, 0)
#define ut_enabled() 0

#elif defined(UNDERTICK_CARD)

/* The address of a store encodes the kind and the event, and its data is the payload. The card adds
 * the time and the master. EVENT_BITS is a parameter of the card. */
#ifndef UNDERTICK_CARD_EVENT_BITS
#define UNDERTICK_CARD_EVENT_BITS 16
#endif
#define UT_CARD_SLOT_(kind, event) \
    ((uintptr_t)(UNDERTICK_CARD) + (((uintptr_t)(kind) + 1) << (UNDERTICK_CARD_EVENT_BITS + 2)) + ((uintptr_t)(event) << 2))
#define UT_CARD_STORE_(kind, event, payload) (*(volatile uint32_t *)UT_CARD_SLOT_(kind, event) = (uint32_t)(payload))

static inline void ut_event(uint16_t event, uint32_t payload) { UT_CARD_STORE_(0, event, payload); }
static inline void ut_begin(uint16_t event) { UT_CARD_STORE_(1, event, 0); }
static inline void ut_end(uint16_t event) { UT_CARD_STORE_(2, event, 0); }
/* The card reads the clock, so each kind of span costs one store. */
#define ut_begin_fast(event) ut_begin(event)
#define ut_end_fast(event) ut_end(event)
static inline void ut_next(uint16_t from, uint16_t to) { UT_CARD_STORE_(3, from, to); }
/* As the CPU sees it, the stores and loads of a span stay inside it. When the store reaches the
 * card depends on the bus. */
static inline void ut_begin_ordered(uint16_t event) {
    UT_CARD_STORE_(5, event, 0);
    __sync_synchronize();
}
static inline void ut_end_ordered(uint16_t event) {
    __sync_synchronize();
    UT_CARD_STORE_(6, event, 0);
}
/* Every sampled span is recorded and stands for one execution. */
static inline void ut_begin_sampled(uint16_t event) { UT_CARD_STORE_(1, event, 1); }
static inline void ut_end_sampled(uint16_t event) { UT_CARD_STORE_(2, event, 1); }
#define ut_begin_paired(event) ut_begin_ordered(event)
#define ut_end_paired(event) ut_end_ordered(event)
/* A payload of the card has 32 bits: a wider one does not compile. */
#define ut_event64(event, payload) ((void)sizeof(char[sizeof(payload) <= 4 ? 1 : -1]), ut_event((event), (uint32_t)(payload)))
/* A program reads no clock here. The option --events gives the names to undertick. */
#define UT_NOT_ON_THE_CARD_(a, b) ((void)(0 && ((void)(a), (void)(b), 1)))
#define ut_pair(event) UT_NOT_ON_THE_CARD_(event, 0)
#define ut_sample_rate(event, one_in) UT_NOT_ON_THE_CARD_(event, one_in)
#define ut_sample_seed(seed) UT_NOT_ON_THE_CARD_(seed, 0)
#define ut_name(event, name) UT_NOT_ON_THE_CARD_(event, name)
#define ut_thread_name(name) UT_NOT_ON_THE_CARD_(name, 0)
/* The card knows only numbers: asking for the number of a name is an error at compile time. */
#define ut_number(name) ((uint16_t)sizeof(char[-1]))
#define UT_SCOPE(name) ((void)sizeof(char[-1]))
#define ut_enabled() 1

#else

#include <pthread.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UT_ATOMIC_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define UT_ATOMIC_LOAD_(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define UT_RELAXED_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

#define UT_LIKELY_(x) __builtin_expect(!!(x), 1)
#define UT_UNLIKELY_(x) __builtin_expect(!!(x), 0)
#define UT_COMPILER_BARRIER_() __asm__ volatile("" ::: "memory")
/* There is one instance per executable or library. The linker merges it, and never shares it with
 * another one that may have been built with another version. */
#define UT_SHARED_ __attribute__((weak, visibility("hidden")))
/* Code inside measured spans is inlined, however often it is used: a call costs 2.4 ns, and the
 * subtracted cost was measured without it. */
#define UT_HOT_ static inline __attribute__((always_inline, no_instrument_function))
#define UT_COLD_ __attribute__((weak, visibility("hidden"), noinline, cold, no_instrument_function))
/* Not inlined, and not rare enough to be optimised for size. */
#define UT_APART_ __attribute__((weak, visibility("hidden"), noinline, no_instrument_function))
/* The recorder's functions are not functions of the program (-finstrument-functions). */
#define UT_INLINE_ static inline __attribute__((no_instrument_function))

/* ---- layout: docs/format.md ------------------------------------------- */

#ifndef UT_RECORDER_
#define UT_RECORDER_ 0u /* C or C++; see docs/format.md */
#endif
/* Libraries that record what the program's spans contain leave the mark of the scheduler to the
 * program's recorder: which of their own records came after a deschedule is not known. */
#define UT_IS_MARKED_ (UT_RECORDER_ == 0u)
#define UT_FLAG_ (UT_IS_MARKED_ ? 0u : (uint64_t)UT_DESCHEDULED_UNKNOWN_ << 14)
#define UT_VERSION_ 2u
#define UT_SEGMENT_BYTES_ ((uintptr_t)131072)
#define UT_SEGMENT_MASK_ (UT_SEGMENT_BYTES_ - 1)
#define UT_READS_ 8 /* of the clock, in one sample of the read cost */
#define UT_PIECE_BYTES_ 16384u /* bytes of a segment for which pages are taken at a time */
#define UT_PIECE_MASK_ (UT_PIECE_BYTES_ - 1)
#define UT_MAX_SEGMENTS_ 8192u /* of one ring */
#define UT_HEAD_BYTES_ ((uintptr_t)77824)
#define UT_MOST_HEADS_ 8192u
#define UT_MOST_SEGMENTS_ 524288u /* of all rings */
#define UT_CONTROL_MAGIC_ 0x31304c5254435455ull /* "UTCTRL01" */
#define UT_POOL_MAGIC_ 0x31304c4f4f505455ull    /* "UTPOOL01" */
#define UT_RING_MAGIC_ 0x3130474e49525455ull    /* "UTRING01" */
#define UT_DOOR_MAGIC_ 0x3130524f4f445455ull    /* "UTDOOR01" */
#define UT_DOOR_NAMES_ 65024u                   /* bytes of names that an attach page holds */
#define UT_CPU_UNKNOWN_ 0x7ffu
#define UT_RATES_ 128u       /* entries of the control page's table of rates */
#define UT_CELLS_ 256u       /* cells of a ring, if it has any */
#define UT_CELLS_AT_ 69632u  /* offset of the cells in the head */
#define UT_MOST_ONE_IN_ 65535u
#define UT_CONTROL_BYTES_ 12288
#define UT_SWITCHED_AT_ 4096u /* offset of the bits, one for each event, after the control page */
#define UT_UNORDERED_ 0x80000000u /* in the payload of a begin or end: its reading did not wait */
#define UT_SPANS_WAIT_ 1u         /* in a ring's head: the readings of other begins and ends waited */

enum {
    UT_KIND_INSTANT_ = 0, UT_KIND_BEGIN_ = 1, UT_KIND_END_ = 2, UT_KIND_NEXT_ = 3,
    UT_KIND_PAIR_ = 4, UT_KIND_BEGIN_ORDERED_ = 5, UT_KIND_END_ORDERED_ = 6, UT_KIND_CONTINUATION_ = 7
};
enum { UT_WIDE_ = 1, UT_PAD_ = 2, UT_GAP_ = 3 };
enum { UT_DESCHEDULED_ = 1, UT_DESCHEDULED_UNKNOWN_ = 2 };
enum { UT_CLOCK_COUNTER_ = 1, UT_CLOCK_MONOTONIC_RAW_ = 2, UT_CLOCK_MONOTONIC_ = 3 };
/* The lowest two bits of `on`. With UT_SOME_, the events whose bit is 0 are recorded. The bits
 * above hold the number of the session, which is 0 in a program that was started in one. */
enum { UT_OFF_ = 0, UT_ALL_ = 1, UT_SOME_ = 2, UT_MODE_ = 3 };
enum { UT_GROW_ = 0, UT_DROP_ = 1, UT_OVERWRITE_ = 2, UT_BLOCK_ = 3 };

struct ut_control_ {
    uint64_t magic;
    uint32_t version, segment_bytes, clock, overflow, ring_segments, budget_segments;
    volatile uint32_t on, collector_alive;
    uint32_t one_in; /* rate of sampled spans that are not in `rates`; 0: 16 */
    uint32_t heads;  /* number of heads of the pool */
    uint64_t reserved0[3];
    uint64_t lost_no_ring; /* offset 72: written by writers */
    uint32_t names_lost, reserved6;
    uint64_t reserved7[117];
    uint64_t rates[UT_RATES_]; /* offset 1024: written by all */
};

/* One of a pool's queues: the collector puts numbers in, and threads take them out. */
struct ut_queue_ {
    uint64_t taken, reserved0[7];
    uint64_t put, reserved1[7]; /* written by the collector */
};
enum { UT_HEADS_READY_, UT_HEADS_, UT_SEGMENTS_READY_, UT_SEGMENTS_, UT_QUEUES_ };

/* The file that contains all rings of a session. The number of heads and of segments determines the
 * offsets of the numbers in the queues, of the heads and of the segments: see ut_map_pool_. */
struct ut_pool_file_ {
    uint64_t magic;
    uint32_t version, next_ring, heads, segments;
    uint64_t reserved0[13];
    struct ut_queue_ queues[UT_QUEUES_]; /* offset 128 */
};

struct ut_read_cost_ {
    uint32_t samples, least_ticks;
    uint64_t ticks, ticks_squared; /* sums */
};

struct ut_ring_ {
    uint64_t magic;
    uint32_t version, segment_bytes, ring, max_segments;
    int32_t pid, tid;
    uint32_t writer, nested, state, pid_namespace;
    uint32_t span_readings, reserved2; /* UT_SPANS_WAIT_ */
    uint64_t reserved1;
    uint64_t head, dropped, oldest; /* offset 64: written by the writer */
    uint32_t reserved6, cells; /* cells: 0: none yet, UT_CELLS_: present, else there can be none */
    struct ut_read_cost_ read_cost;
    uint64_t reserved3;
    uint64_t tail; /* offset 128: written by the collector */
    uint32_t has_table, reserved4; /* has_table: all uses have their pages */
    uint64_t reserved5[494];
    uint64_t uses[UT_MAX_SEGMENTS_]; /* offset 4096: number of the segment, plus 1; 0: none */
};

/* What a ring knows of the sampled spans of one event. They have been executed
 * `last` + (b - l - `last` modulo 2^32) times, where l and b are the low and the high half of
 * `left`. Each begin counts l down, and the begin that makes it negative is recorded. The order of
 * stores keeps this true at whatever moment the program is killed. */
struct ut_cell_ {
    uint64_t left;
    uint32_t state;         /* event and flags: UT_CLAIMED_, ... */
    uint16_t one_in, timed; /* rate of the current gap, and of the last recorded span */
    uint64_t last;          /* executions up to the last recorded one */
    uint32_t open;          /* recorded spans by depth: bit 0 innermost; 0: none is open */
    uint32_t deeper;        /* levels for which `open` has no bit */
};
enum { UT_CLAIMED_ = 0x10000, UT_OPEN_ = 0x20000, UT_BUSY_ = 0x40000 };

struct ut_rseq_ { /* the kernel's struct rseq, limited to the fields needed here */
    uint32_t cpu_id_start, cpu_id;
    volatile uint64_t rseq_cs;
};

struct ut_name_ {
    uint16_t magic, what, event, bytes;
    int32_t pid, tid;
    char text[256];
};

/* The attach page, through which a recorder attaches to a program that was started without one: a
 * file of the program in no directory, which contains a control page and then this structure. */
struct ut_door_ {
    uint64_t magic;
    uint32_t version, serial; /* serial: number of the last session */
    int32_t holder;
    uint32_t names_used, names_lost, reserved0; /* names: written by the program */
    uint64_t reserved1[4];
    char dir[200]; /* offset 64: the session's directory; empty: no session */
    uint64_t reserved2[31];
    char names[UT_DOOR_NAMES_]; /* offset 512 */
};

#ifdef __cplusplus
static_assert(offsetof(ut_door_, dir) == 64 && offsetof(ut_door_, names) == 512 && sizeof(ut_door_) == 65536, "layout");
static_assert(offsetof(ut_control_, lost_no_ring) == 72 && offsetof(ut_control_, on) == 32, "layout");
static_assert(offsetof(ut_control_, rates) == 1024 && offsetof(ut_ring_, cells) == 92 && sizeof(ut_cell_) == 32, "layout");
static_assert(offsetof(ut_ring_, head) == 64 && offsetof(ut_ring_, tail) == 128 && offsetof(ut_ring_, uses) == 4096, "layout");
static_assert(offsetof(ut_rseq_, rseq_cs) == 8 && offsetof(ut_name_, text) == 16, "layout");
static_assert(offsetof(ut_pool_file_, queues) == 128 && sizeof(ut_queue_) == 128, "layout");
#else
_Static_assert(offsetof(struct ut_door_, dir) == 64 && offsetof(struct ut_door_, names) == 512 && sizeof(struct ut_door_) == 65536, "layout");
_Static_assert(offsetof(struct ut_control_, lost_no_ring) == 72 && offsetof(struct ut_control_, on) == 32, "layout");
_Static_assert(offsetof(struct ut_control_, rates) == 1024 && offsetof(struct ut_ring_, cells) == 92 && sizeof(struct ut_cell_) == 32, "layout");
_Static_assert(offsetof(struct ut_ring_, head) == 64 && offsetof(struct ut_ring_, tail) == 128 && offsetof(struct ut_ring_, uses) == 4096, "layout");
_Static_assert(offsetof(struct ut_rseq_, rseq_cs) == 8 && offsetof(struct ut_name_, text) == 16, "layout");
_Static_assert(offsetof(struct ut_pool_file_, queues) == 128 && sizeof(struct ut_queue_) == 128, "layout");
#endif

/* ---- state ------------------------------------------------------------ */

/* A session's pool as this process has it mapped. This structure lies before the mapping of the
 * file. */
struct ut_pool_ {
    struct ut_pool_file_ *file;
    uint8_t *written;            /* per segment: 1 if the collector has written its pages */
    uintptr_t heads, segments;   /* their first bytes */
    uint32_t head_count, segment_count;
    uint32_t serial;             /* number of the session */
    uint32_t spare_head;         /* a head that was taken but got no pages, plus 1; 0: none */
    uintptr_t bytes;             /* size of this and of the mapping */
    uintptr_t users;             /* number of rings of this process that lie in it */
    struct ut_pool_ *before;     /* pool of an earlier session */
};

/* The writing side of one ring. The next record is stored at `base` + `cursor`. A cursor runs from
 * one segment size to two, which means that the segment is full; 0: there is no segment. One store
 * ends an event: it moves the cursor and makes the state UT_READY_. Cursor and head therefore show
 * whether an event was published, at whatever instruction a signal handler jumped out of it. */
struct ut_writer_ {
    volatile uint32_t cursor;
    volatile uint32_t state; /* examined by a signal handler that interrupts */
    uint64_t to_position;    /* cursor + to_position = position in the stream */
    struct ut_ring_ *ring;
    uintptr_t base;          /* address of the segment being filled, less the segment size */
    uint64_t next_use, oldest, gap;
    uint64_t drops;          /* `dropped` before the event that is being dropped */
    uint32_t allocated, continuations, max_segments;
    uint32_t there;          /* bytes of the segment whose pages are present */
    uint32_t spare;          /* a segment that was taken but got no pages, plus 1; 0: none */
    struct ut_pool_ *pool;
};
/* Any other state: an event is being written, by a frame whose stack pointer has these low 32 bits
 * (a multiple of 8). */
enum { UT_READY_ = 0, UT_NO_RING_ = 1, UT_MAKING_RING_ = 2, UT_ENDED_ = 3 };
enum { UT_DROPPING_ = 8 }; /* a value of `cursor` */

struct ut_thread_ {
    struct ut_rseq_ *rseq;
    uint32_t on;               /* value of the switch while the joined session records all */
    uint32_t refused_in;       /* events until a session that could not be joined is tried again */
    struct ut_writer_ own;     /* the thread's ring */
    struct ut_writer_ nested;  /* the ring of handlers that interrupt a write */
    uint32_t retry_in;         /* events until a ring that could not be made is tried again */
    uint64_t again[3];         /* new readings of a slow path: timestamp, second reading, CPU */
    /* Address of the cells of `own`, less the address of `ut_no_cells_`. It is in a private page of
     * the thread that fork() fills with zeros, or it is `ut_no_offset_`. */
    uintptr_t *cells;
    uint64_t random;           /* state of the generator of gaps; 0: not seeded yet */
    uintptr_t *spare;          /* the page of `cells` while it is not used */
    struct ut_pool_ *held[2];  /* pools of rings that were given up, see ut_give_up_ */
    uint32_t interrupted;      /* number of points that found `own` being written */
    uint32_t ends;             /* number of times that the thread's destructor was called */
};

struct ut_process_ {
    /* Points at the collector's switch in a session, else at `zero`. */
    volatile uint32_t *on;
    /* Points at 1, on a page that fork() fills with zeros in the child. It is always 0 where fork()
     * does not: then each point takes the slow path, which asks for the number of the process. */
    volatile uint32_t *same_process;
    uint32_t by_pid;           /* process that owns these rings, or 0: the page tells */
    uint32_t clock;
    uint32_t zero;
    uint32_t pid_namespace;    /* inode number, low half; 0: not requested yet, or not known */
    struct ut_control_ *control;
    /* Value of a thread's rseq_cs while it was not descheduled. */
    uint64_t armed;
    pthread_key_t key;
    int has_key;
    int door_fd;
    long door_pid;             /* the process that made it */
    uint64_t door_inode;
    struct ut_door_ *door;     /* attach page of a program that was started without a session */
    uint64_t *place;           /* entry in the registry, or NULL: see ut_registry_ */
    uint64_t *names;           /* numbers of names of all instances, or NULL: see ut_number */
    char dir[200];             /* the session's directory in other programs */
};

/* The second of an instance's two private pages. It contains the mark of the scheduler, and the
 * instance's mappings, for the next instance that is loaded after this one is unloaded. */
enum { UT_PAGES_ = 8192, UT_OWN_RINGS_ = 256, UT_OWN_PAGES_ = 120 };
struct ut_mapped_ {
    uint64_t section[128];          /* critical section of the mark */
    uint64_t control, bytes;        /* the control page, bytes with those of an attach page */
    uint64_t rings[UT_OWN_RINGS_];  /* see ut_noted_; 0: free */
    uint64_t pages[UT_OWN_PAGES_];  /* pages of cells */
};

/* The first private page, which fork() fills with zeros in the child, where it also unmaps the
 * pool. */
struct ut_wiped_ {
    volatile uint32_t same_process;
    uint32_t at_pools;              /* number of threads that look for a pool, or unmap one */
    struct ut_pool_ *pool;          /* pool of the last session */
};

/* The registry, at an address that nothing else takes: the private pages of each instance of a
 * process (an executable, libraries). The lowest bit of an entry means that the instance was
 * unloaded. A program that repeatedly loads and unloads a library would otherwise have more
 * mappings each time. At its end an instance cannot unmap its memory, since this may be the end of
 * the program, with threads that still record. */
#define UT_REGISTRY_AT_ 0x200055540000ull
#define UT_REGISTRY_MAGIC_ 0x3230474552545455ull /* "UTTREG02" */
enum { UT_INSTANCES_ = 500 };
/* The table of the numbers of names: see ut_number. */
#define UT_NAMES_AT_ 0x200055550000ull
#define UT_NAMES_MAGIC_ 0x3130454d414e5455ull /* "UTNAME01" */
enum { UT_FIRST_NAME_ = 0x4000, UT_OTHER_NAMES_ = 0x7fff, UT_NAMES_ = UT_OTHER_NAMES_ - UT_FIRST_NAME_ };
struct ut_registry_ {
    uint64_t magic, pid; /* pid: a child has a copy, which says nothing about the child */
    uint64_t instances[UT_INSTANCES_];
};
#ifdef __cplusplus
static_assert(sizeof(ut_mapped_) <= 4096 && sizeof(ut_registry_) <= 4096, "a page each");
#else
_Static_assert(sizeof(struct ut_mapped_) <= 4096 && sizeof(struct ut_registry_) <= 4096, "a page each");
#endif

UT_SHARED_ struct ut_rseq_ ut_no_rseq_ = {0xffffffffu, 0xffffffffu, 0};
UT_SHARED_ struct ut_cell_ ut_no_cells_[UT_CELLS_] = {{0, 0, 0, 0, 0, 0, 0}};
UT_SHARED_ uintptr_t ut_no_offset_ = 0;
UT_SHARED_ struct ut_process_ ut_process = {&ut_process.zero, &ut_process.zero, 0, 0, 0, 0, NULL, 0, 0, 0, -1, 0, 0, NULL, NULL, NULL, {0}};
UT_SHARED_ __thread struct ut_thread_ ut_thread = {
    &ut_no_rseq_, UT_ALL_, 0, {0, UT_NO_RING_, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL}, {0, UT_NO_RING_, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL}, 0, {0, 0, 0}, &ut_no_offset_, 0, NULL, {NULL, NULL}, 0, 0};

/* ---- system calls ------------------------------------------------------ */

/* Makes a raw system call, so that errno is untouched and no feature macro of the program decides
 * what is declared. Results below 0 are negated error numbers. */
UT_INLINE_ long ut_syscall_(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return result;
#else
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#endif
}

#if defined(__x86_64__)
enum { UT_SYS_WRITE_ = 1, UT_SYS_CLOSE_ = 3, UT_SYS_MMAP_ = 9, UT_SYS_MPROTECT_ = 10, UT_SYS_MUNMAP_ = 11, UT_SYS_MADVISE_ = 28, UT_SYS_SIGPROCMASK_ = 14, UT_SYS_SIGALTSTACK_ = 131,
       UT_SYS_SIGPENDING_ = 127, UT_SYS_SIGTIMEDWAIT_ = 128, UT_SYS_PRLIMIT64_ = 302,
       UT_SYS_NANOSLEEP_ = 35, UT_SYS_FUTEX_ = 202, UT_SYS_GETPID_ = 39, UT_SYS_FLOCK_ = 73, UT_SYS_FTRUNCATE_ = 77, UT_SYS_MUNLOCK_ = 150, UT_SYS_GETTID_ = 186,
       UT_SYS_OPENAT_ = 257, UT_SYS_FALLOCATE_ = 285, UT_SYS_NEWFSTATAT_ = 262, UT_SYS_FCNTL_ = 72, UT_SYS_GETEUID_ = 107,
       UT_SYS_MEMFD_CREATE_ = 319, UT_STAT_UID_ = 7, UT_O_NOFOLLOW_ = 0400000 };
#define UT_RSEQ_SIGNATURE_ 0x53053053u
#else
enum { UT_SYS_WRITE_ = 64, UT_SYS_CLOSE_ = 57, UT_SYS_MMAP_ = 222, UT_SYS_MPROTECT_ = 226, UT_SYS_MUNMAP_ = 215, UT_SYS_MADVISE_ = 233, UT_SYS_SIGPROCMASK_ = 135, UT_SYS_SIGALTSTACK_ = 132,
       UT_SYS_SIGPENDING_ = 136, UT_SYS_SIGTIMEDWAIT_ = 137, UT_SYS_PRLIMIT64_ = 261,
       UT_SYS_NANOSLEEP_ = 101, UT_SYS_FUTEX_ = 98, UT_SYS_GETPID_ = 172, UT_SYS_FLOCK_ = 32, UT_SYS_FTRUNCATE_ = 46, UT_SYS_MUNLOCK_ = 229, UT_SYS_GETTID_ = 178,
       UT_SYS_OPENAT_ = 56, UT_SYS_FALLOCATE_ = 47, UT_SYS_NEWFSTATAT_ = 79, UT_SYS_FCNTL_ = 25, UT_SYS_GETEUID_ = 175,
       UT_SYS_MEMFD_CREATE_ = 279, UT_STAT_UID_ = 6, UT_O_NOFOLLOW_ = 0100000 };
#define UT_RSEQ_SIGNATURE_ 0xd428bc00u
#endif
enum { UT_O_RDWR_ = 2, UT_O_WRONLY_ = 1, UT_O_APPEND_ = 02000, UT_O_CLOEXEC_ = 02000000,
       UT_AT_FDCWD_ = -100, UT_PROT_RW_ = 3, UT_MAP_SHARED_ = 1, UT_MAP_PRIVATE_ = 2, UT_MAP_FIXED_ = 16, UT_MAP_ANONYMOUS_ = 32,
       UT_MAP_NORESERVE_ = 0x4000, UT_MAP_FIXED_NOREPLACE_ = 0x100000, UT_MADV_DONTFORK_ = 10, UT_MADV_WIPEONFORK_ = 18, UT_MADV_POPULATE_WRITE_ = 23, UT_EEXIST_ = 17, UT_MADV_REMOVE_ = 9,
       UT_MADV_NONE_ = 0x7ead, /* an advice that no kernel knows */
       UT_AT_SYMLINK_NOFOLLOW_ = 0x100, UT_AT_EMPTY_PATH_ = 0x1000, UT_F_DUPFD_CLOEXEC_ = 1030, UT_F_ADD_SEALS_ = 1033,
       UT_SEAL_SIZE_ = 7, /* no more sealing, shrinking or growing */
       UT_MFD_ = 3,       /* closed on exec, sealable */
       UT_MFD_NOEXEC_ = 8, UT_AT_PAGESZ_ = 6, UT_AT_SECURE_ = 23, UT_RLIMIT_FSIZE_ = 1, UT_STAT_SIZE_ = 6 /* in words of 8 bytes */ };

#ifdef __has_feature
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
/* The sanitizer must see this call: the next thread's memory may have the same address. */
extern int ut_munmap_(long address, long bytes) __asm__("munmap");
UT_INLINE_ void ut_unmap_(long address, long bytes) { ut_munmap_(address, bytes); }
/* The sanitizer does not see the collector, through which memory of the pool passes from one thread
 * to another. */
extern void ut_tsan_release_(void *address) __asm__("__tsan_release");
extern void ut_tsan_acquire_(void *address) __asm__("__tsan_acquire");
#define UT_LEAVES_(pool) ut_tsan_release_(pool)
#define UT_GETS_(pool) ut_tsan_acquire_(pool)
#else
UT_INLINE_ void ut_unmap_(long address, long bytes) { ut_syscall_(UT_SYS_MUNMAP_, address, bytes, 0, 0, 0, 0); }
#define UT_LEAVES_(pool) ((void)(pool))
#define UT_GETS_(pool) ((void)(pool))
#endif

/* Declared by its assembler name, because <time.h> declares it only under some macros. */
extern int ut_clock_gettime_(int clock, int64_t *seconds_nanoseconds) __asm__("clock_gettime");
extern char *ut_secure_getenv_(const char *name) __asm__("secure_getenv");
extern unsigned long ut_getauxval_(unsigned long type) __asm__("getauxval");
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* ---- clock -------------------------------------------------------------- */

UT_COLD_ uint64_t ut_slow_clock_(void) {
    int64_t t[2] = {0, 0};
    ut_clock_gettime_(UT_ATOMIC_LOAD_(&ut_process.clock) == UT_CLOCK_MONOTONIC_ ? 1 : 4, t);
    return (uint64_t)t[0] * 1000000000u + (uint64_t)t[1];
}

/* Reads the counter without waiting; only for a counter. */
UT_HOT_ uint64_t ut_counter_(void) {
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return ((uint64_t)high << 32) | low;
#else
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
#endif
}

/* Lets nothing after it start before everything before it has been executed. */
UT_HOT_ void ut_fence_(void) {
#if defined(__x86_64__)
    __asm__ volatile("lfence" ::: "memory");
#else
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Reads the counter after everything before it has been executed; only for a counter. `cpu` is the
 * CPU of the reading where the same instruction gives it (Linux keeps it in the low 12 bits). */
UT_HOT_ uint64_t ut_counter_after_(uint32_t *cpu) {
#if defined(__x86_64__)
    uint32_t low, high, aux;
    __asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(aux)::"memory");
    *cpu = aux & 0xfff;
    return ((uint64_t)high << 32) | low;
#else
    uint64_t value;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
    *cpu = ut_thread.rseq->cpu_id;
    return value;
#endif
}

/* Reads the counter twice with nothing between, in one piece of code, so that a pair costs the same
 * with every compiler. Returns the first reading. */
UT_HOT_ uint64_t ut_counter_pair_(uint64_t *second) {
    uint64_t first;
#if defined(__x86_64__)
    uint64_t low, high, aux;
    __asm__ volatile("rdtscp\n\tshl $32, %%rdx\n\tor %%rdx, %%rax\n\tmov %%rax, %0\n\tlfence\n\trdtscp"
                     : "=&r"(first), "=&a"(low), "=&d"(high), "=&c"(aux)::"memory", "cc");
    *second = high << 32 | low;
#else
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb\n\tmrs %1, cntvct_el0" : "=&r"(first), "=&r"(*second)::"memory");
#endif
    return first;
}

/* ---- slow paths ----------------------------------------------------------- */

UT_INLINE_ void ut_path_(char *out, const char *name) {
    const struct ut_door_ *door = ut_process.door;
    const volatile char *from = door != NULL ? door->dir : ut_process.dir;
    const volatile char *end = from + sizeof ut_process.dir - 1;
    char c;
    if (*from == 0) { /* the session has just ended: no file has this name */
        *out = 0;
        return;
    }
    while (from < end && (c = *from++) != 0) *out++ = c;
    *out++ = '/';
    while (*name) *out++ = *name++;
    *out = 0;
}

/* Returns the maximum file size of this process, bytes. A program that exceeds it gets a signal
 * that ends it, so it is never exceeded. */
UT_COLD_ uint64_t ut_file_limit_(void) {
    uint64_t limit[2] = {0, 0};
    if (ut_syscall_(UT_SYS_PRLIMIT64_, 0, UT_RLIMIT_FSIZE_, 0, (long)limit, 0, 0) != 0) return ~0ull;
    return limit[0];
}

/* Returns the mappings of this instance; NULL before it has any. */
UT_INLINE_ struct ut_mapped_ *ut_mapped_here_(void) {
    return ut_process.armed == 0 ? NULL : (struct ut_mapped_ *)(uintptr_t)ut_process.armed;
}

/* Replaces the first entry that holds `from` by `to`: this notes a mapping, or forgets it. If there
 * is no such entry, the mapping is not noted. */
UT_COLD_ void ut_note_(uint64_t *table, int entries, uint64_t from, uint64_t to) {
    int i;
    for (i = 0; i < entries; i++) {
        uint64_t found = from;
        if (__atomic_compare_exchange_n(&table[i], &found, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
    }
}
UT_COLD_ void ut_unmap_cells_(uintptr_t *page) {
    struct ut_mapped_ *mapped = ut_mapped_here_();
    if (mapped != NULL) ut_note_(mapped->pages, UT_OWN_PAGES_, (uint64_t)(uintptr_t)page, 0);
    ut_unmap_((long)page, 4096);
}

/* Allocates the pages of these bytes of the pool; where there are none it fails, instead of a
 * SIGBUS. Returns whether they are present. */
UT_COLD_ int ut_populate_(const struct ut_pool_ *pool, uintptr_t at, uintptr_t bytes) {
    const uintptr_t from = at & ~(uintptr_t)(ut_getauxval_(UT_AT_PAGESZ_) - 1);
    char path[240];
    long fd, done = ut_syscall_(UT_SYS_MADVISE_, (long)from, (long)(at + bytes - from), UT_MADV_POPULATE_WRITE_, 0, 0, 0);
    if (done != -22) return done == 0;
    ut_path_(path, "pool"); /* for kernels before 5.14 */
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_RDWR_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0) return 0;
    done = ut_syscall_(UT_SYS_FALLOCATE_, fd, 0, (long)(from - (uintptr_t)pool->file), (long)(at + bytes - from), 0, 0);
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    return done == 0;
}

/* Returns the pid namespace, so that the collector knows whether it may query the kernel by our
 * process and thread numbers. The inode number is the second word of struct stat. */
UT_COLD_ uint32_t ut_pid_namespace_(void) {
    uint64_t status[32] = {0};
    uint32_t known = UT_ATOMIC_LOAD_(&ut_process.pid_namespace);
    if (known == 0 && ut_syscall_(UT_SYS_NEWFSTATAT_, UT_AT_FDCWD_, (long)"/proc/self/ns/pid", (long)status, 0, 0, 0) == 0) {
        known = (uint32_t)status[1];
        UT_RELAXED_STORE_(&ut_process.pid_namespace, known);
    }
    return known;
}

UT_INLINE_ struct ut_wiped_ *ut_wiped_here_(void) { return (struct ut_wiped_ *)(uintptr_t)ut_process.same_process; }

/* Maps the pool of the session; NULL on failure. It reserves address space, unlocks it (a program
 * under mlockall must not lock all of it), and maps the file. */
UT_COLD_ struct ut_pool_ *ut_map_pool_(uint32_t serial) {
    const struct ut_control_ *control = ut_process.control;
    const uint32_t heads = *(const volatile uint32_t *)&control->heads, segments = *(const volatile uint32_t *)&control->budget_segments;
    const uintptr_t written_at = 4096 + 8 * ((uintptr_t)heads + segments);
    const uintptr_t heads_at = (written_at + segments + UT_SEGMENT_MASK_) & ~UT_SEGMENT_MASK_;
    const uintptr_t segments_at = (heads_at + heads * UT_HEAD_BYTES_ + UT_SEGMENT_MASK_) & ~UT_SEGMENT_MASK_;
    const uintptr_t bytes = segments_at + segments * UT_SEGMENT_BYTES_;
    char path[240];
    uint64_t status[32] = {0};
    struct ut_pool_ *pool;
    long fd, reserved = -1, area, start = -1;
    if (heads == 0 || heads > UT_MOST_HEADS_ || segments == 0 || segments > UT_MOST_SEGMENTS_) return NULL;
    ut_path_(path, "pool");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_RDWR_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0) return NULL;
    if (ut_syscall_(UT_SYS_NEWFSTATAT_, fd, (long)"", (long)status, UT_AT_EMPTY_PATH_, 0, 0) == 0 && status[UT_STAT_SIZE_] >= bytes)
        reserved = ut_syscall_(UT_SYS_MMAP_, 0, (long)(2 * UT_SEGMENT_BYTES_ + bytes), 0, UT_MAP_PRIVATE_ | UT_MAP_ANONYMOUS_ | UT_MAP_NORESERVE_, -1, 0);
    /* The area starts at a multiple of the segment size: the 64 KiB that a load maps are aligned
     * pages. */
    area = (long)(((uintptr_t)reserved + UT_SEGMENT_MASK_) & ~UT_SEGMENT_MASK_);
    if (reserved >= 0 || reserved < -4095) {
        if (area > reserved) ut_unmap_(reserved, area - reserved);
        if (reserved + (long)UT_SEGMENT_BYTES_ > area) ut_unmap_(area + (long)(UT_SEGMENT_BYTES_ + bytes), reserved + (long)UT_SEGMENT_BYTES_ - area);
        start = area + (long)UT_SEGMENT_BYTES_;
        if (ut_syscall_(UT_SYS_MMAP_, start, (long)bytes, 0, UT_MAP_SHARED_ | UT_MAP_FIXED_ | UT_MAP_NORESERVE_, fd, 0) != start ||
            ut_syscall_(UT_SYS_MPROTECT_, area, 4096, UT_PROT_RW_, 0, 0, 0) != 0) {
            ut_unmap_(area, (long)(UT_SEGMENT_BYTES_ + bytes));
            reserved = -1;
        }
    }
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    if (reserved < 0 && reserved > -4096) return NULL;
    ut_syscall_(UT_SYS_MUNLOCK_, area, (long)(UT_SEGMENT_BYTES_ + bytes), 0, 0, 0, 0);
    ut_syscall_(UT_SYS_MPROTECT_, start, (long)bytes, UT_PROT_RW_, 0, 0, 0);
    ut_syscall_(UT_SYS_MADVISE_, area, (long)(UT_SEGMENT_BYTES_ + bytes), UT_MADV_DONTFORK_, 0, 0, 0);
    pool = (struct ut_pool_ *)area;
    pool->file = (struct ut_pool_file_ *)start;
    pool->written = (uint8_t *)start + written_at;
    pool->heads = (uintptr_t)start + heads_at;
    pool->segments = (uintptr_t)start + segments_at;
    pool->head_count = heads;
    pool->segment_count = segments;
    pool->serial = serial;
    pool->bytes = UT_SEGMENT_BYTES_ + bytes;
    if (__atomic_load_n(&pool->file->magic, __ATOMIC_ACQUIRE) == UT_POOL_MAGIC_ && pool->file->version == UT_VERSION_ && pool->file->heads == heads &&
        pool->file->segments == segments)
        return pool;
    ut_unmap_(area, (long)pool->bytes);
    return NULL;
}

/* Ends this thread's work on pools, for which it was counted in `at_pools`. A thread that is alone
 * there unmaps the pools of earlier sessions without a ring of the process; a thread that arrives
 * later finds the last one. If no thread was alone, the last one to leave checks again. */
UT_COLD_ void ut_tidy_pools_(struct ut_wiped_ *here) {
    for (;;) {
        const int is_alone = __atomic_load_n(&here->at_pools, __ATOMIC_SEQ_CST) == 1;
        struct ut_pool_ *pool = is_alone ? __atomic_load_n(&here->pool, __ATOMIC_SEQ_CST) : NULL, *before;
        while (pool != NULL && (before = pool->before) != NULL) {
            if (__atomic_load_n(&before->users, __ATOMIC_SEQ_CST) != 0) {
                pool = before;
                continue;
            }
            pool->before = before->before;
            ut_unmap_((long)before, (long)before->bytes);
        }
        if (__atomic_fetch_sub(&here->at_pools, 1, __ATOMIC_SEQ_CST) != 1 || is_alone) return;
        __atomic_fetch_add(&here->at_pools, 1, __ATOMIC_SEQ_CST);
    }
}

/* Counts a ring that has left that pool. NULL: it was in none. */
UT_COLD_ void ut_leave_pool_(struct ut_pool_ *pool) {
    struct ut_wiped_ *here = ut_wiped_here_();
    if (pool == NULL) return;
    __atomic_fetch_add(&here->at_pools, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&pool->users, 1, __ATOMIC_SEQ_CST);
    ut_tidy_pools_(here);
}

/* Returns the pool of the session that the thread has joined, for one more ring; the first thread
 * that needs it maps it. */
UT_COLD_ struct ut_pool_ *ut_join_pool_(void) {
    struct ut_wiped_ *here = ut_wiped_here_();
    const uint32_t serial = ut_thread.on >> 2;
    struct ut_pool_ *pool, *mapped = NULL;
    __atomic_fetch_add(&here->at_pools, 1, __ATOMIC_SEQ_CST);
    pool = __atomic_load_n(&here->pool, __ATOMIC_SEQ_CST);
    while (pool == NULL || pool->serial != serial) {
        if (mapped == NULL) mapped = ut_map_pool_(serial);
        if (mapped == NULL) break;
        mapped->before = pool;
        if (__atomic_compare_exchange_n(&here->pool, &pool, mapped, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            pool = mapped;
            mapped = NULL;
        }
    }
    if (pool != NULL && pool->serial == serial) __atomic_fetch_add(&pool->users, 1, __ATOMIC_SEQ_CST);
    else pool = NULL;
    if (mapped != NULL) ut_unmap_((long)mapped, (long)mapped->bytes); /* another thread was faster */
    ut_tidy_pools_(here);
    return pool;
}

/* Takes the first number out of a queue of the pool, without waiting. Returns 0, and leaves
 * `number` as it was, if the queue has none. */
UT_COLD_ int ut_take_(const struct ut_pool_ *pool, int which, uint32_t *number) {
    struct ut_queue_ *queue = &pool->file->queues[which];
    const uint32_t room = which <= UT_HEADS_ ? pool->head_count : pool->segment_count;
    const uint32_t *numbers = (const uint32_t *)((uintptr_t)pool->file + 4096);
    uint64_t taken = __atomic_load_n(&queue->taken, __ATOMIC_ACQUIRE);
    if (which > UT_HEADS_READY_) numbers += pool->head_count;
    if (which > UT_HEADS_) numbers += pool->head_count;
    if (which > UT_SEGMENTS_READY_) numbers += pool->segment_count;
    /* Partner: `put` of the collector. */
    while (taken < __atomic_load_n(&queue->put, __ATOMIC_ACQUIRE)) {
        const uint32_t found = __atomic_load_n(&numbers[taken % room], __ATOMIC_RELAXED);
        if (!__atomic_compare_exchange_n(&queue->taken, &taken, taken + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) continue;
        UT_GETS_(pool->file);
        if (found >= room) return 0; /* other processes write there, too */
        *number = found;
        return 1;
    }
    return 0;
}

/* Takes a head of the pool, for a ring; NULL: there is none. */
UT_COLD_ struct ut_ring_ *ut_take_head_(struct ut_pool_ *pool) {
    uint32_t number = __atomic_exchange_n(&pool->spare_head, 0, __ATOMIC_RELAXED) - 1;
    uintptr_t at;
    if (number == 0xffffffffu && ut_take_(pool, UT_HEADS_READY_, &number)) return (struct ut_ring_ *)(pool->heads + number * UT_HEAD_BYTES_);
    if (number == 0xffffffffu && !ut_take_(pool, UT_HEADS_, &number)) return NULL;
    at = pool->heads + number * UT_HEAD_BYTES_;
    if (ut_populate_(pool, at, 8192)) return (struct ut_ring_ *)at;
    __atomic_store_n(&pool->spare_head, number + 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Returns the note of a ring: its address, and 12 bits of its number, as the head may belong to
 * another ring later. */
UT_COLD_ uint64_t ut_noted_(const struct ut_ring_ *ring) { return (uint64_t)(uintptr_t)ring | (ring->ring & 4095); }

/* Makes a ring from a free head. */
UT_COLD_ int ut_make_ring_(struct ut_writer_ *w, int nested) {
    struct ut_control_ *control = ut_process.control;
    struct ut_pool_ *pool = ut_join_pool_();
    struct ut_ring_ *ring = pool == NULL ? NULL : ut_take_head_(pool);
    uint32_t segments;
    if (ring == NULL) {
        ut_leave_pool_(pool);
        return 0;
    }
    segments = control->overflow == UT_GROW_ ? pool->segment_count : control->ring_segments;
    if (segments > UT_MAX_SEGMENTS_) segments = UT_MAX_SEGMENTS_;
    if (segments == 0) segments = 1;
    ring->version = UT_VERSION_;
    ring->segment_bytes = (uint32_t)UT_SEGMENT_BYTES_;
    ring->ring = __atomic_fetch_add(&pool->file->next_ring, 1, __ATOMIC_RELAXED);
    ring->max_segments = segments;
    ring->pid = (int32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    ring->tid = (int32_t)ut_syscall_(UT_SYS_GETTID_, 0, 0, 0, 0, 0, 0);
    ring->pid_namespace = ut_pid_namespace_();
    ring->writer = UT_RECORDER_;
    ring->nested = (uint32_t)nested;
    ring->span_readings = UT_SPANS_WAIT_;
    ring->state = 1;
    UT_ATOMIC_STORE_(&ring->magic, UT_RING_MAGIC_);
    w->ring = ring;
    w->pool = pool;
    w->next_use = w->oldest = w->gap = 0;
    w->allocated = w->continuations = 0;
    w->max_segments = segments;
    w->there = w->spare = 0;
    w->cursor = 0;
    ut_note_(ut_mapped_here_()->rings, UT_OWN_RINGS_, 0, ut_noted_(ring));
    return 1;
}

/* Closes a complete ring that is no longer written to: its head and segments now belong to the
 * collector. */
UT_COLD_ void ut_close_ring_(const struct ut_pool_ *pool, struct ut_ring_ *ring, int is_joined) {
    ut_note_(ut_mapped_here_()->rings, UT_OWN_RINGS_, ut_noted_(ring), 0);
    UT_LEAVES_(pool->file);
    if (is_joined) UT_ATOMIC_STORE_(&ring->state, 2u);
}

/* The signals that are blocked while a ring is made or given up. Those of faults and of forbidden
 * system calls cannot wait. */
#define UT_HELD_SIGNALS_ (~(1ull << 3 | 1ull << 4 | 1ull << 6 | 1ull << 7 | 1ull << 10 | 1ull << 30))
enum { UT_SIG_BLOCK_ = 0, UT_SIG_SETMASK_ = 2 };
UT_COLD_ int ut_hold_signals_(uint64_t *before) {
    uint64_t held = UT_HELD_SIGNALS_;
    return ut_syscall_(UT_SYS_SIGPROCMASK_, UT_SIG_BLOCK_, (long)&held, (long)before, 8, 0, 0) == 0;
}
UT_COLD_ void ut_let_signals_(const uint64_t *before) {
    ut_syscall_(UT_SYS_SIGPROCMASK_, UT_SIG_SETMASK_, (long)before, 0, 8, 0, 0);
}

UT_COLD_ void ut_count_lost_(void) { __atomic_fetch_add(&ut_process.control->lost_no_ring, 1, __ATOMIC_RELAXED); }

/* Marks the ring as being written by the frame that executes this. It is one store, of the stack
 * pointer instead of a constant, which shows later whether that frame still exists. */
UT_HOT_ void ut_enter_(struct ut_writer_ *w) {
#if defined(__x86_64__)
    __asm__ volatile("movl %%esp, %0" : "=m"(w->state));
#else
    uint32_t here;
    __asm__ volatile("mov %w0, wsp" : "=r"(here));
    w->state = here;
#endif
}

/* Ends an event: the next one goes to `cursor`. */
UT_HOT_ void ut_ready_(struct ut_writer_ *w, uint64_t cursor) {
    typedef volatile uint64_t both __attribute__((may_alias));
    UT_COMPILER_BARRIER_();
    *(both *)(void *)w = cursor; /* state: UT_READY_ */
}

UT_INLINE_ int ut_is_writing_(uint32_t state) { return state > UT_ENDED_; }

/* Returns whether a jump left the frame that is writing to a ring; `here` is the stack pointer of
 * the caller. A handler that interrupted the write lies below the frame that it interrupts, or on a
 * signal stack, about which the kernel is asked. The order of addresses does not show what a jump
 * has left on a signal stack: this is checked every 16th time. */
UT_COLD_ int ut_is_left_(struct ut_thread_ *t, uint32_t state, uint32_t here) {
    const int is_below = (int32_t)(here - state) < 0;
    uint64_t stack[3] = {0, 0, 0}; /* address, flags, bytes */
    if (!ut_is_writing_(state) || (is_below && ++t->interrupted % 16 != 0)) return 0;
    if (ut_syscall_(UT_SYS_SIGALTSTACK_, 0, (long)stack, 0, 0, 0, 0) != 0 || ((uint32_t)stack[1] & 1)) return 0;
    return !is_below || ((uint32_t)stack[1] == 0 && (uint64_t)(state - (uint32_t)stack[0]) <= stack[2]);
}

/* Returns whether the event that a ring's writer was in when a jump left it has been counted or
 * published. */
UT_COLD_ int ut_is_accounted_(const struct ut_writer_ *w) {
    const uint32_t cursor = w->cursor;
    struct ut_ring_ *ring = w->ring;
    if (cursor == UT_DROPPING_) {
        __atomic_store_n(&ring->dropped, w->drops + 1, __ATOMIC_RELAXED);
        return 1;
    }
    if (cursor == 0 || cursor >= 2 * UT_SEGMENT_BYTES_ || ring->head == cursor + w->to_position) return 0;
    /* Was a gap or a pad published, and not yet the event after it? */
    return (((uint64_t *)(w->base + cursor))[1] >> 59 & 7) != UT_KIND_CONTINUATION_;
}

/* Returns whether the known rings belong to this process, and not to its parent. */
UT_INLINE_ int ut_is_same_process_(void) {
    return *ut_process.same_process || (ut_process.by_pid != 0 && ut_process.by_pid == (uint32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0));
}

/* Forgets the parent's rings in a child: they are not inherited. */
UT_INLINE_ void ut_forget_(struct ut_thread_ *t) {
    t->own.state = UT_NO_RING_;
    t->nested.state = UT_NO_RING_;
    t->own.ring = t->nested.ring = NULL;
    t->held[0] = t->held[1] = NULL;
    t->retry_in = 0;
    UT_RELAXED_STORE_(&ut_process.pid_namespace, 0);
    if (ut_process.by_pid != 0) { /* no page was wiped */
        ut_wiped_here_()->pool = NULL;
        ut_wiped_here_()->at_pools = 0;
        ut_process.by_pid = (uint32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    } else *ut_process.same_process = 1;
}

/* Detaches the cells of the thread's ring from the fast path. Their page stays mapped, because a
 * span may be looking for its cell at this moment. */
UT_INLINE_ void ut_lay_cells_aside_(struct ut_thread_ *t) {
    if (t->cells == &ut_no_offset_) return;
    UT_RELAXED_STORE_(t->cells, (uintptr_t)0);
    t->spare = t->cells;
    t->cells = &ut_no_offset_;
}

/* Returns whether the session that the thread has joined is still running: after its end a ring has
 * no memory, and a store would allocate some. */
UT_INLINE_ int ut_is_joined_(const struct ut_thread_ *t) { return ut_process.door == NULL || (*ut_process.on ^ t->on) <= UT_MODE_; }

/* Closes a ring that the thread no longer writes to, and which is complete. The ring keeps the pool
 * mapped until the next ring is given up: the caller may be a handler that interrupted the thread
 * just after it had seen that it has a ring. */
UT_COLD_ void ut_give_up_(struct ut_thread_ *t, int i) {
    struct ut_writer_ *w = i == 0 ? &t->own : &t->nested;
    const uint32_t was = __atomic_exchange_n(&w->state, (uint32_t)UT_MAKING_RING_, __ATOMIC_RELAXED);
    struct ut_ring_ *ring = w->ring;
    UT_COMPILER_BARRIER_();
    if (ut_is_writing_(was) && !ut_is_accounted_(w)) ut_count_lost_();
    if (i == 0) ut_lay_cells_aside_(t);
    if (ring != NULL) {
        w->ring = NULL;
        w->cursor = 0;
        UT_COMPILER_BARRIER_();
        ut_close_ring_(w->pool, ring, ut_is_joined_(t));
        ut_leave_pool_(t->held[i]);
        t->held[i] = w->pool;
    }
    UT_COMPILER_BARRIER_();
    w->state = UT_NO_RING_;
}

/* Ends a thread: its rings are complete. Later destructors may record, so it asks to be called
 * again, as often as destructors are (PTHREAD_DESTRUCTOR_ITERATIONS); events after the last time
 * are counted as lost. A handler may run at any instruction: nothing is unmapped that it could
 * still find. */
#ifdef __SANITIZE_THREAD__
enum { UT_DESTRUCTOR_ROUNDS_ = 3 }; /* in the last round the sanitizer forgets the thread */
#else
enum { UT_DESTRUCTOR_ROUNDS_ = 4 };
#endif
UT_COLD_ void ut_thread_end_(void *thread) {
    struct ut_thread_ *t = (struct ut_thread_ *)thread;
    const int is_last = ++t->ends >= UT_DESTRUCTOR_ROUNDS_;
    uintptr_t *page;
    int i;
    if (!ut_is_same_process_()) ut_forget_(t);
    for (i = 0; i < 2; i++) {
        struct ut_writer_ *w = i == 0 ? &t->own : &t->nested;
        const uint32_t was = __atomic_exchange_n(&w->state, (uint32_t)UT_ENDED_, __ATOMIC_RELAXED);
        UT_COMPILER_BARRIER_();
        if (ut_is_writing_(was) && !ut_is_accounted_(w)) ut_count_lost_();
    }
    ut_lay_cells_aside_(t);
    page = t->spare;
    t->spare = NULL;
    UT_COMPILER_BARRIER_();
    if (page != NULL) ut_unmap_cells_(page);
    for (i = 0; i < 2; i++) {
        struct ut_writer_ *w = i == 0 ? &t->own : &t->nested;
        struct ut_ring_ *ring = w->ring;
        w->ring = NULL;
        UT_COMPILER_BARRIER_();
        ut_leave_pool_(t->held[i]);
        t->held[i] = NULL;
        if (ring == NULL) continue;
        ut_close_ring_(w->pool, ring, ut_is_joined_(t));
        ut_leave_pool_(w->pool);
    }
    UT_COMPILER_BARRIER_();
    if (is_last || !UT_ATOMIC_LOAD_(&ut_process.has_key) || pthread_setspecific(ut_process.key, t) != 0) return;
    t->nested.state = UT_NO_RING_;
    t->own.state = UT_NO_RING_;
}

/* Gives up the thread's rings of a session that is over; returns 0 if one of them is being written.
 * `here`: see ut_is_left_. */
UT_COLD_ int ut_leave_(uint32_t here) {
    struct ut_thread_ *t = &ut_thread;
    uint64_t before = 0;
    int i, held, may = 1;
    if (!ut_is_same_process_()) ut_forget_(t);
    held = ut_hold_signals_(&before);
    for (i = 0; i < 2; i++) {
        const uint32_t state = (i == 0 ? &t->own : &t->nested)->state;
        may &= state == UT_READY_ || state == UT_NO_RING_ || ut_is_left_(t, state, here);
    }
    for (i = 0; may && i < 2; i++) {
        struct ut_writer_ *w = i == 0 ? &t->own : &t->nested;
        struct ut_ring_ *ring = w->ring;
        if (w->state == UT_NO_RING_) continue;
        ut_give_up_(t, i);
        /* The search for a cell took pages of a pool that has none any more. */
        if (ring != NULL) ut_syscall_(UT_SYS_MADVISE_, (long)ring, (long)UT_HEAD_BYTES_, UT_MADV_REMOVE_, 0, 0, 0);
    }
    if (held) ut_let_signals_(&before);
    return may;
}

/* Returns whether a session had attached and is over. */
UT_INLINE_ int ut_is_over_(void) {
    return ut_process.door != NULL && *(volatile char *)ut_process.door->dir == 0;
}

/* Checks for a recorder, for a thread that waits for it. A recorder holds a lock, which the kernel
 * releases when the recorder is killed. */
UT_COLD_ void ut_look_for_recorder_(struct ut_control_ *control) {
    char path[240];
    long fd;
    ut_path_(path, "control");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_RDWR_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0) return;
    if (ut_syscall_(UT_SYS_FLOCK_, fd, 2 | 4, 0, 0, 0, 0) == 0) control->collector_alive = 0; /* exclusive, at once */
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
}

/* Returns the ticks of UT_READS_ successive readings, as spans read the clock. The second round
 * counts, when their code is no longer cold. */
UT_COLD_ uint32_t ut_time_reads_(void) {
    const int is_counter = UT_ATOMIC_LOAD_(&ut_process.clock) == UT_CLOCK_COUNTER_;
    uint64_t from = 0, to = 0;
    uint32_t cpu = 0;
    int round, i;
    for (round = 0; round < 2; round++) {
        if (is_counter) {
            from = ut_counter_after_(&cpu);
            (void)ut_counter_after_(&cpu), (void)ut_counter_after_(&cpu), (void)ut_counter_after_(&cpu), (void)ut_counter_after_(&cpu);
            (void)ut_counter_after_(&cpu), (void)ut_counter_after_(&cpu), (void)ut_counter_after_(&cpu);
            to = ut_counter_after_(&cpu);
        } else {
            from = ut_slow_clock_();
            for (i = 0; i < UT_READS_; i++) to = ut_slow_clock_();
        }
    }
    return to - from > UINT32_MAX ? UINT32_MAX : (uint32_t)(to - from);
}

/* Takes a sample of the read cost here and now: neighbours and the core's frequency change it while
 * a program runs. A sample that was interrupted, three times the smallest, does not count. */
UT_COLD_ void ut_sample_read_cost_(struct ut_read_cost_ *cost) {
    uint32_t ticks = ut_time_reads_();
    if (cost->samples == 0) { /* there is no earlier sample to compare with */
        const uint32_t again = ut_time_reads_();
        if (again < ticks) ticks = again;
        cost->least_ticks = ticks;
    }
    if (ticks < cost->least_ticks / 3) { /* all earlier samples were interrupted */
        cost->samples = 0;
        cost->ticks = cost->ticks_squared = 0;
    }
    if (ticks < cost->least_ticks) cost->least_ticks = ticks;
    if (ticks / 3 > cost->least_ticks) return;
    cost->ticks += ticks;
    cost->ticks_squared += (uint64_t)ticks * ticks;
    cost->samples++;
}

/* Gets more pages of a segment before the first store to them, with an error instead of a SIGBUS.
 * `from` bytes are present; returns how many are present then, `from` if there are no more. Where
 * the collector has written the pages no system call is made, for which a sandbox may kill. One
 * load is then enough: at a load the kernel maps the 64 KiB around it, at a store one page.
 * Otherwise it gets so few that no thread waits for long: 16 KiB take some 10 us, a segment up to
 * 70. It gets all pages of a ring's first segment, because a thread that enters a sandbox may not
 * request them there. */
UT_COLD_ uint32_t ut_get_pages_(const struct ut_writer_ *w, uint32_t segment, uint32_t from) {
    const uint32_t half = (uint32_t)UT_SEGMENT_BYTES_ / 2;
    const uintptr_t at = w->pool->segments + segment * UT_SEGMENT_BYTES_ + from;
    const uint32_t bytes = w->allocated == 0 ? (uint32_t)UT_SEGMENT_BYTES_ : UT_PIECE_BYTES_;
    if (__atomic_load_n(&w->pool->written[segment], __ATOMIC_ACQUIRE)) {
        (void)*(const volatile uint64_t *)at;
        return (from | (half - 1)) + 1;
    }
    return ut_populate_(w->pool, at, bytes) ? from + bytes : from;
}

/* Returns whether the table of uses has a page for the next use. */
UT_COLD_ int ut_has_entry_(const struct ut_writer_ *w) {
    const uint32_t index = (uint32_t)(w->next_use % w->max_segments);
    if (index % 512 != 0 || index == 0 || __atomic_load_n(&w->ring->has_table, __ATOMIC_ACQUIRE)) return 1;
    return ut_populate_(w->pool, (uintptr_t)&w->ring->uses[index], sizeof w->ring->uses[0]);
}

UT_INLINE_ uint64_t *ut_next_entry_(const struct ut_writer_ *w) { return &w->ring->uses[w->next_use % w->max_segments]; }

/* Takes a segment of the pool, and gets its first pages; returns 0 if there is none. The segment is
 * noted at once as the next use's, so that its owner is known. */
UT_COLD_ int ut_take_segment_(struct ut_writer_ *w, uint32_t *segment) {
    *segment = w->spare - 1;
    if (w->spare == 0 && !ut_take_(w->pool, UT_SEGMENTS_READY_, segment) && !ut_take_(w->pool, UT_SEGMENTS_, segment)) return 0;
    __atomic_store_n(ut_next_entry_(w), *segment + (uint64_t)1, __ATOMIC_RELAXED);
    w->there = ut_get_pages_(w, *segment, 0);
    w->spare = w->there > 0 ? 0 : *segment + 1;
    w->allocated += w->there > 0;
    return w->there > 0;
}

/* Takes back the oldest segment of the ring, which is drained or overwritten. */
UT_INLINE_ uint32_t ut_take_back_(struct ut_writer_ *w) {
    w->there = (uint32_t)UT_SEGMENT_BYTES_;
    return (uint32_t)w->ring->uses[w->oldest++ % w->max_segments] - 1;
}

/* Finds a segment for the next use, and sets the number of its bytes that are present; returns 0 if
 * there is none. */
UT_COLD_ int ut_find_segment_(struct ut_writer_ *w, uint32_t *segment) {
    struct ut_control_ *control = ut_process.control;
    struct ut_ring_ *ring = w->ring;
    uint32_t waits = 0;
    if (!ut_has_entry_(w)) return 0;
    for (;;) {
        /* Partner: Reader::publish in the collector. */
        const uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
        const int drained = w->oldest < w->next_use && tail >= (w->oldest + 1) * UT_SEGMENT_BYTES_;
        /* Drained segments are not reused before the ring has its first size: a segment that was
         * drained just now is still in the collector's cache, and taking its lines back from there
         * costs more than the event. */
        if (drained && w->allocated >= control->ring_segments) break;
        if (w->allocated < w->max_segments && ut_take_segment_(w, segment)) return 1;
        if (drained) break;
        if (control->overflow == UT_OVERWRITE_ && w->oldest < w->next_use) {
            *segment = ut_take_back_(w);
            __atomic_store_n(&ring->oldest, w->oldest, __ATOMIC_RELAXED);
            __atomic_thread_fence(__ATOMIC_RELEASE); /* partner: Reader::is_whole */
            return 1;
        }
        if (control->overflow != UT_BLOCK_ || !control->collector_alive || w->allocated == 0) return 0;
        {
            int64_t pause[2] = {0, 50000};
            ut_syscall_(UT_SYS_NANOSLEEP_, (long)pause, 0, 0, 0, 0, 0);
            if (++waits % 200 == 0) ut_look_for_recorder_(control);
        }
    }
    *segment = ut_take_back_(w);
    return 1;
}

/* Counts an event as dropped; the next one tries again to get the room after `cursor`. */
UT_COLD_ uint32_t ut_drop_(struct ut_writer_ *w, uint32_t cursor) {
    w->gap++;
    w->drops = w->ring->dropped;
    UT_COMPILER_BARRIER_();
    w->cursor = UT_DROPPING_;
    __atomic_store_n(&w->ring->dropped, w->drops + 1, __ATOMIC_RELAXED);
    ut_ready_(w, cursor);
    return 0;
}

/* Finds room for the next records, in the next piece of the segment or in another segment. Returns
 * its cursor, or 0: the event was dropped and counted. */
UT_COLD_ uint32_t ut_find_room_(struct ut_writer_ *w) {
    struct ut_ring_ *ring = w->ring;
    uint32_t cursor = w->cursor, segment = 0;
    const uint32_t place = cursor & (uint32_t)UT_SEGMENT_MASK_;
    if (UT_UNLIKELY_(ring == NULL)) { /* a handler has given it up, and got no other */
        ut_count_lost_();
        w->state = UT_NO_RING_;
        return 0;
    }
    if (place != 0) {
        if (place >= w->there) w->there = ut_get_pages_(w, (uint32_t)((w->base + UT_SEGMENT_BYTES_ - w->pool->segments) / UT_SEGMENT_BYTES_), place);
        if (place >= w->there) return ut_drop_(w, cursor);
    } else {
        if (!ut_find_segment_(w, &segment)) return ut_drop_(w, 0);
        if (segment >= w->pool->segment_count) segment = w->pool->segment_count - 1; /* the page is shared: stay in the mapping */
        __atomic_store_n(ut_next_entry_(w), (segment + (uint64_t)1) | ((uint64_t)w->continuations << 32), __ATOMIC_RELAXED);
        cursor = (uint32_t)UT_SEGMENT_BYTES_;
        w->cursor = 0; /* while it does not match the other fields */
        UT_COMPILER_BARRIER_();
        w->base = w->pool->segments + segment * UT_SEGMENT_BYTES_ - UT_SEGMENT_BYTES_;
        w->to_position = w->next_use * UT_SEGMENT_BYTES_ - cursor;
        w->next_use++;
        UT_COMPILER_BARRIER_();
        w->cursor = cursor;
    }
    if (w->gap) {
        uint64_t *record = (uint64_t *)(w->base + cursor);
        record[0] = w->gap;
        record[1] = UT_GAP_ | ((uint64_t)(UT_CPU_UNKNOWN_ | UT_KIND_CONTINUATION_ << 11) << 48);
        w->gap = 0;
        w->continuations++;
        cursor += 16;
        UT_ATOMIC_STORE_(&ring->head, cursor + w->to_position);
        w->cursor = cursor;
    }
    /* A sample is taken at each segment, and in a ring's first segment at each piece. */
    if (place == 0 || w->next_use <= 1) ut_sample_read_cost_(&ring->read_cost);
    return cursor;
}

/* Sets the scheduler's mark for the calling thread. */
UT_COLD_ void ut_arm_(struct ut_thread_ *t) {
    uintptr_t self;
    if (!UT_IS_MARKED_ || &__rseq_offset == NULL || &__rseq_size == NULL || __rseq_size == 0 || !ut_process.armed) return;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(self));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(self));
#endif
    t->rseq = (struct ut_rseq_ *)(self + (uintptr_t)__rseq_offset);
    if ((int32_t)t->rseq->cpu_id < 0) t->rseq = &ut_no_rseq_;
    else t->rseq->rseq_cs = ut_process.armed;
}

/* Makes the ring to write to when no existing one can be used; `left`: a jump left it in the middle
 * of a write. Returns it in state UT_READY_, or NULL. */
UT_COLD_ struct ut_writer_ *ut_new_ring_(struct ut_thread_ *t, int nested, int left) {
    struct ut_writer_ *w = nested ? &t->nested : &t->own;
    uint64_t before = 0;
    int made = 0, held;
    if (!left && t->retry_in > 0) { /* it has just failed */
        t->retry_in--;
        return NULL;
    }
    /* A handler that runs here could not record, and could jump out. */
    held = ut_hold_signals_(&before);
    if (left) ut_give_up_(t, nested);
    if (w->state == UT_NO_RING_) {
        w->state = UT_MAKING_RING_;
        if (!nested) ut_arm_(t);
        made = ut_make_ring_(w, nested);
        if (!made) t->retry_in = 4096;
        else if (UT_ATOMIC_LOAD_(&ut_process.has_key)) pthread_setspecific(ut_process.key, t);
        UT_COMPILER_BARRIER_();
        w->state = made ? UT_READY_ : UT_NO_RING_;
    } else made = w->state == UT_READY_; /* a handler was faster */
    if (held) ut_let_signals_(&before);
    return made ? w : NULL;
}

/* Returns the ring to use, in the state of being written by the frame whose stack pointer is
 * `here`. NULL: the event was counted as lost. */
UT_COLD_ struct ut_writer_ *ut_choose_from_(uint32_t here) {
    struct ut_thread_ *t = &ut_thread;
    int i;
    if (!ut_is_same_process_()) ut_forget_(t); /* after fork: the child needs new rings */
    for (i = 0; i < 2; i++) {
        struct ut_writer_ *w = i == 0 ? &t->own : &t->nested;
        const uint32_t state = w->state;
        const int left = ut_is_left_(t, state, here);
        if (state == UT_ENDED_) break;
        if (state == UT_MAKING_RING_ || (ut_is_writing_(state) && !left)) continue;
        if (state != UT_READY_ && (w = ut_new_ring_(t, i, left)) == NULL) break;
        w->state = here;
        return w;
    }
    ut_count_lost_();
    return NULL;
}

/* Returns the ring to use, as ut_choose_from_, for the frame of the caller: at the first event of a
 * thread or of a forked child, in a handler that interrupted a write, and at the first event after
 * a jump out of such a handler. */
UT_COLD_ struct ut_writer_ *ut_choose_(void) { return ut_choose_from_((uint32_t)(uintptr_t)__builtin_dwarf_cfa()); }

/* How a record reads the clock. Where it takes two readings, the payload is their difference. */
enum {
    UT_PLAIN_READ_,       /* does not wait */
    UT_WAITING_READ_,     /* waits for everything before it; for spans */
    UT_WAITING_PAIR_,     /* two waiting readings, the first one the timestamp */
    UT_ORDERED_BEGIN_,    /* serialised, and the last step */
    UT_PAIRED_BEGIN_,     /* two serialised readings, the second one the timestamp */
    UT_ORDERED_END_,      /* serialised, and the first step */
    UT_PAIRED_END_        /* two serialised readings, the first one the timestamp */
};

UT_COLD_ uint64_t ut_slow_readings_(int how, uint64_t *second) {
    uint64_t first = ut_slow_clock_();
    if (how != UT_WAITING_PAIR_ && how != UT_PAIRED_BEGIN_ && how != UT_PAIRED_END_) return first;
    *second = ut_slow_clock_();
    if (how != UT_PAIRED_BEGIN_) return first;
    {
        uint64_t last = *second;
        *second = first;
        return last;
    }
}

/* Reads the clock; returns the timestamp, and for plain and waiting readings the CPU. Code after
 * the last reading of a begin may start early: at ordered ones the caller places ut_fence_, after
 * it has stored the record. */
UT_HOT_ uint64_t ut_read_as_(int how, uint64_t *second, uint32_t *cpu) {
    uint64_t ts;
    if (UT_UNLIKELY_(UT_ATOMIC_LOAD_(&ut_process.clock) != UT_CLOCK_COUNTER_)) {
        uint64_t other = 0;
        ts = ut_slow_readings_(how, &other);
        *second = other;
        *cpu = ut_thread.rseq->cpu_id;
        return ts;
    }
    if (how == UT_WAITING_READ_) return ut_counter_after_(cpu);
    if (how == UT_WAITING_PAIR_) {
        ts = ut_counter_after_(cpu);
        *second = ut_counter_after_(cpu);
        return ts;
    }
    if (how == UT_PLAIN_READ_) {
        *cpu = ut_thread.rseq->cpu_id;
        return ut_counter_();
    }
    if (how == UT_PAIRED_BEGIN_) {
        *second = ut_counter_pair_(&ts);
        return ts;
    }
    if (how == UT_PAIRED_END_) return ut_counter_pair_(second);
    {
        uint32_t here;
        return ut_counter_after_(&here);
    }
}

/* Handles a mark that is not ours any more: the kernel cleared it, or other code uses rseq_cs. Sets
 * it again and reads the clock again (ut_thread.again), so that the reading lies after what the
 * flag describes. Returns the flags. */
UT_COLD_ uint32_t ut_rearm_(struct ut_rseq_ *rseq, uint64_t ts, uint64_t second, int how) {
    struct ut_thread_ *t = &ut_thread;
    uint32_t flags = 0, cpu = rseq->cpu_id;
    int tries;
    if (rseq == &ut_no_rseq_) flags = UT_DESCHEDULED_UNKNOWN_;
    for (tries = 0; tries < 16 && rseq != &ut_no_rseq_; tries++) {
        uint64_t seen = rseq->rseq_cs;
        if (seen == ut_process.armed) break;
        if (seen == 0) flags = UT_DESCHEDULED_;
        else if (flags == 0) flags = UT_DESCHEDULED_UNKNOWN_;
        rseq->rseq_cs = ut_process.armed;
        UT_COMPILER_BARRIER_();
        ts = ut_read_as_(how, &second, &cpu);
        UT_COMPILER_BARRIER_();
    }
    t->again[0] = ts;
    t->again[1] = second;
    t->again[2] = cpu;
    return flags;
}

UT_HOT_ int ut_bit_is_set_(uint32_t event) {
    return ((const volatile uint8_t *)ut_process.control)[UT_SWITCHED_AT_ + event / 8] >> (event & 7) & 1;
}

/* Returns whether the session that attached belongs to this user or to root: the attach page is
 * shared with children that may have fewer rights. */
UT_COLD_ int ut_may_join_(void) {
    char path[240];
    uint64_t status[32] = {0};
    uint32_t user;
    ut_path_(path, "names");
    if (path[0] != '/' || ut_syscall_(UT_SYS_NEWFSTATAT_, UT_AT_FDCWD_, (long)path, (long)status, UT_AT_SYMLINK_NOFOLLOW_, 0, 0) != 0) return 0;
    user = (uint32_t)(status[UT_STAT_UID_ / 2] >> (32 * (UT_STAT_UID_ % 2)));
    return user == 0 || user == (uint32_t)ut_syscall_(UT_SYS_GETEUID_, 0, 0, 0, 0, 0, 0);
}

/* Handles the thread's first point in a session that attached: gives up the rings of the previous
 * session. Returns whether the event is not to be recorded. */
UT_COLD_ int ut_join_(uint32_t event) {
    struct ut_thread_ *t = &ut_thread;
    const uint32_t on = *ut_process.on;
    if (on == UT_OFF_) return 1;
    if ((on ^ t->on) > UT_MODE_) {
        if (t->refused_in > 0) {
            t->refused_in--;
            ut_count_lost_();
            return 1;
        }
        /* A handler that interrupts a write to a ring of the previous session cannot join; neither
         * can any thread while the session is being changed. */
        if (!ut_leave_((uint32_t)(uintptr_t)__builtin_dwarf_cfa()) || !ut_may_join_()) {
            if (t->own.state == UT_NO_RING_) t->refused_in = 4096;
            ut_count_lost_();
            return 1;
        }
        t->retry_in = 0;
        __atomic_store_n(&ut_process.clock, UT_ATOMIC_LOAD_(&ut_process.control->clock), __ATOMIC_RELAXED);
        UT_COMPILER_BARRIER_();
        t->on = (on & ~(uint32_t)UT_MODE_) | UT_ALL_;
    }
    return (on & UT_MODE_) != UT_ALL_ && ut_bit_is_set_(event);
}

/* Returns whether a point is not to be recorded, where `on` differs from the thread's `on`. */
UT_HOT_ int ut_is_switched_off_(uint32_t on, uint32_t event) {
    if (on == UT_OFF_) return 1;
    if (UT_UNLIKELY_((on ^ ut_thread.on) > UT_MODE_)) return ut_join_(event);
    return ut_bit_is_set_(event);
}
UT_HOT_ int ut_is_off_(uint32_t event) {
    const uint32_t on = *ut_process.on;
    return UT_UNLIKELY_(on != ut_thread.on) && ut_is_switched_off_(on, event);
}

/* As ut_is_off_, in the middle of a write: a session that is new to the thread does not count. */
UT_HOT_ int ut_is_off_here_(uint32_t event) {
    const uint32_t on = *ut_process.on;
    return UT_UNLIKELY_(on != ut_thread.on) && (on == UT_OFF_ || (on ^ ut_thread.on) > UT_MODE_ || ut_bit_is_set_(event));
}

/* Handles an end whose clock was read before it was known that recording is off, or that this is
 * the first event of a forked child. Returns the ring to use, with the clock read again, or
 * NULL. */
UT_COLD_ struct ut_writer_ *ut_choose_late_(uint32_t event, int how) {
    struct ut_thread_ *t = &ut_thread;
    struct ut_writer_ *w = &t->own;
    /* A handler that ran after fork() may have left another state. */
    if (ut_is_writing_(w->state)) w->state = UT_READY_;
    if (ut_is_off_(event)) return NULL;
    w = ut_choose_();
    if (w != NULL) {
        uint64_t second = 0;
        uint32_t cpu = UT_CPU_UNKNOWN_;
        UT_COMPILER_BARRIER_();
        t->again[0] = ut_read_as_(how, &second, &cpu);
        t->again[1] = second;
    }
    return w;
}

/* Maps the control page of the session in which the program was started; NULL: there is none. */
UT_COLD_ struct ut_control_ *ut_open_session_(void) {
    const char *dir = ut_secure_getenv_("UNDERTICK_SESSION");
    char path[240];
    struct ut_control_ *control;
    long fd, at;
    int length = 0;
    if (dir == NULL || dir[0] != '/') return NULL;
    while (dir[length]) length++;
    if (length >= (int)sizeof ut_process.dir) return NULL;
    while (length >= 0) {
        ut_process.dir[length] = dir[length];
        length--;
    }
    ut_path_(path, "control");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_RDWR_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0) return NULL;
    at = ut_syscall_(UT_SYS_MMAP_, 0, UT_CONTROL_BYTES_, UT_PROT_RW_, UT_MAP_SHARED_, fd, 0);
    ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
    if (at < 0 && at > -4096) return NULL;
    control = (struct ut_control_ *)at;
    if (control->magic == UT_CONTROL_MAGIC_ && control->version == UT_VERSION_ && control->segment_bytes == UT_SEGMENT_BYTES_) return control;
    ut_unmap_(at, UT_CONTROL_BYTES_);
    return NULL;
}

/* Makes the attach page for `undertick record --pid`; NULL if the program is to have none, or on
 * failure. */
UT_COLD_ struct ut_control_ *ut_make_door_(void) {
    struct ut_door_ *door;
    uint64_t status[32] = {0};
    long fd, high, at;
#ifdef UNDERTICK_NO_ATTACH
    return NULL;
#endif
    {
        const char *wish = ut_secure_getenv_("UNDERTICK_ATTACH");
        if (wish != NULL && wish[0] == '0' && wish[1] == 0) return NULL;
    }
    if (ut_file_limit_() < UT_CONTROL_BYTES_ + sizeof *door) return NULL;
    fd = ut_syscall_(UT_SYS_MEMFD_CREATE_, (long)"undertick-door", UT_MFD_ | UT_MFD_NOEXEC_, 0, 0, 0, 0);
    if (fd < 0) fd = ut_syscall_(UT_SYS_MEMFD_CREATE_, (long)"undertick-door", UT_MFD_, 0, 0, 0, 0);
    if (fd < 0) return NULL;
    /* The program's own descriptors keep their usual numbers. */
    high = ut_syscall_(UT_SYS_FCNTL_, fd, UT_F_DUPFD_CLOEXEC_, 200, 0, 0, 0);
    if (high >= 0) {
        ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
        fd = high;
    }
    if (ut_syscall_(UT_SYS_FTRUNCATE_, fd, UT_CONTROL_BYTES_ + (long)sizeof *door, 0, 0, 0, 0) < 0 ||
        ut_syscall_(UT_SYS_FCNTL_, fd, UT_F_ADD_SEALS_, UT_SEAL_SIZE_, 0, 0, 0) < 0 ||
        ut_syscall_(UT_SYS_NEWFSTATAT_, fd, (long)"", (long)status, UT_AT_EMPTY_PATH_, 0, 0) < 0) {
        ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
        return NULL;
    }
    at = ut_syscall_(UT_SYS_MMAP_, 0, UT_CONTROL_BYTES_ + (long)sizeof *door, UT_PROT_RW_, UT_MAP_SHARED_, fd, 0);
    if (at < 0 && at > -4096) {
        ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
        return NULL;
    }
    door = (struct ut_door_ *)(at + UT_CONTROL_BYTES_);
    ut_process.door = door;
    ut_process.door_fd = (int)fd;
    ut_process.door_pid = ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    ut_process.door_inode = status[1];
    door->version = UT_VERSION_;
    return (struct ut_control_ *)at;
}

/* Returns whether a child can be distinguished from its parent, by a page that is wiped, or else by
 * its number. Some emulators (qemu-user) accept every advice and do nothing: one that no kernel
 * knows shows it. */
UT_COLD_ int ut_fork_is_told_(long page) {
    if (ut_syscall_(UT_SYS_MADVISE_, page, 4096, UT_MADV_WIPEONFORK_, 0, 0, 0) < 0) return 0;
    if (ut_syscall_(UT_SYS_MADVISE_, page, 4096, UT_MADV_NONE_, 0, 0, 0) >= 0)
        ut_process.by_pid = (uint32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    return 1;
}

/* Returns whether a mapping at this address can be read. The kernel checks it: a FUTEX_WAIT there
 * that ends at once. */
UT_COLD_ int ut_is_readable_(long address) {
    int64_t at_once[2] = {0, 0};
    const long done = ut_syscall_(UT_SYS_FUTEX_, address, 128, 0, (long)at_once, 0, 0);
    return done == -11 || done == -110;
}

/* Returns the registry of this process; NULL: it cannot have one (little address space, another
 * mapping there, a sanitizer that uses the address). */
UT_COLD_ struct ut_registry_ *ut_find_registry_(void) {
#if defined(__SANITIZE_THREAD__) || defined(UT_NO_REGISTRY_)
    return NULL;
#else
    struct ut_registry_ *registry = (struct ut_registry_ *)(uintptr_t)UT_REGISTRY_AT_;
    const uint64_t pid = (uint64_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    long at = ut_syscall_(UT_SYS_MMAP_, (long)UT_REGISTRY_AT_, 4096, UT_PROT_RW_, UT_MAP_PRIVATE_ | UT_MAP_ANONYMOUS_ | UT_MAP_FIXED_NOREPLACE_, -1, 0);
    int i;
    if (at == (long)UT_REGISTRY_AT_) {
        registry->pid = pid;
        registry->magic = UT_REGISTRY_MAGIC_;
        return registry;
    }
    if (at >= 0 || at < -4095) ut_unmap_(at, 4096); /* kernels before 4.17: somewhere else */
    if (at != -UT_EEXIST_ || !ut_is_readable_((long)UT_REGISTRY_AT_) || registry->magic != UT_REGISTRY_MAGIC_) return NULL;
    if (registry->pid != pid) {
        for (i = 0; i < UT_INSTANCES_; i++) registry->instances[i] = 0;
        registry->pid = pid;
    }
    return registry;
#endif
}

/* Returns the hashes of the names of this process, by number; the first instance that needs them
 * maps them. NULL for the same reasons as the registry. */
UT_COLD_ uint64_t *ut_find_names_(void) {
#if defined(__SANITIZE_THREAD__) || defined(UT_NO_REGISTRY_)
    return NULL;
#else
    uint64_t *names = (uint64_t *)(uintptr_t)UT_NAMES_AT_, magic = 0;
    const long bytes = (UT_NAMES_ + 1) * (long)sizeof *names;
    const long at = ut_syscall_(UT_SYS_MMAP_, (long)UT_NAMES_AT_, bytes, UT_PROT_RW_, UT_MAP_PRIVATE_ | UT_MAP_ANONYMOUS_ | UT_MAP_FIXED_NOREPLACE_, -1, 0);
    if (at != (long)UT_NAMES_AT_) {
        if (at >= 0 || at < -4095) ut_unmap_(at, bytes); /* kernels before 4.17: somewhere else */
        if (at != -UT_EEXIST_ || !ut_is_readable_((long)UT_NAMES_AT_)) return NULL;
    }
    if (__atomic_compare_exchange_n(&names[UT_NAMES_], &magic, UT_NAMES_MAGIC_, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) magic = UT_NAMES_MAGIC_;
    return magic == UT_NAMES_MAGIC_ ? names : NULL;
#endif
}

/* Unmaps the memory that an unloaded instance has left: none of its code runs any more. Rings of a
 * session that is still running are complete. */
UT_COLD_ void ut_clear_(struct ut_mapped_ *left) {
    const struct ut_control_ *control = (const struct ut_control_ *)(uintptr_t)left->control;
    struct ut_wiped_ *wiped = (struct ut_wiped_ *)((uintptr_t)left - 4096);
    struct ut_pool_ *pool;
    int i;
    for (i = 0; i < UT_OWN_RINGS_; i++) {
        struct ut_ring_ *ring = (struct ut_ring_ *)(uintptr_t)(left->rings[i] & ~(uint64_t)4095);
        if (ring != NULL && control != NULL && control->on != UT_OFF_ && ut_noted_(ring) == left->rings[i]) UT_ATOMIC_STORE_(&ring->state, 2u);
        left->rings[i] = 0;
    }
    while ((pool = wiped->pool) != NULL) {
        wiped->pool = pool->before;
        ut_unmap_((long)pool, (long)pool->bytes);
    }
    wiped->at_pools = 0;
    for (i = 0; i < UT_OWN_PAGES_; i++) {
        if (left->pages[i] != 0) ut_unmap_((long)left->pages[i], 4096);
        left->pages[i] = 0;
    }
    if (control != NULL) ut_unmap_((long)left->control, (long)left->bytes);
    left->control = 0;
}

/* Returns two private pages for this instance: those of one that was unloaded, or new ones; 0:
 * there are none. A thread's rseq_cs may point to the second one for ever, so they stay mapped. */
UT_COLD_ long ut_take_pages_(int *are_new) {
    struct ut_registry_ *registry = ut_find_registry_();
    long page;
    int i;
    *are_new = 0;
    for (i = 0; registry != NULL && i < UT_INSTANCES_; i++) {
        uint64_t found = __atomic_load_n(&registry->instances[i], __ATOMIC_ACQUIRE);
        if ((found & 1) == 0 || !__atomic_compare_exchange_n(&registry->instances[i], &found, found & ~1ull, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
        page = (long)(found & ~1ull);
        ut_process.place = &registry->instances[i];
        ut_clear_((struct ut_mapped_ *)(page + 4096));
        return page;
    }
    *are_new = 1;
    page = ut_syscall_(UT_SYS_MMAP_, 0, UT_PAGES_, UT_PROT_RW_, UT_MAP_PRIVATE_ | UT_MAP_ANONYMOUS_, -1, 0);
    if (page < 0 && page > -4096) return 0;
    for (i = 0; registry != NULL && i < UT_INSTANCES_; i++) {
        uint64_t found = 0;
        if (!__atomic_compare_exchange_n(&registry->instances[i], &found, (uint64_t)page, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
        ut_process.place = &registry->instances[i];
        break;
    }
    return page;
}

/* Runs before the program's own constructors of ordinary priority. */
__attribute__((weak, visibility("hidden"), constructor(101), no_instrument_function)) void ut_attach_(void) {
    struct ut_control_ *control;
    struct ut_mapped_ *mapped;
    long page;
    int are_new;
    if (ut_process.control != NULL || ut_getauxval_(UT_AT_SECURE_) != 0) return;
    page = ut_take_pages_(&are_new);
    if (page == 0) return;
    if (!ut_fork_is_told_(page) ||
        ((control = ut_open_session_()) == NULL && (control = ut_make_door_()) == NULL)) {
        if (ut_process.place != NULL) UT_ATOMIC_STORE_(ut_process.place, are_new ? 0 : (uint64_t)page | 1);
        ut_process.place = NULL;
        if (are_new) ut_unmap_(page, UT_PAGES_);
        return;
    }
    ut_process.names = ut_find_names_();
    mapped = (struct ut_mapped_ *)(page + 4096);
    mapped->control = (uint64_t)(uintptr_t)control;
    mapped->bytes = UT_CONTROL_BYTES_ + (ut_process.door != NULL ? sizeof *ut_process.door : 0);
    {
        /* A critical section that is never executed, on a page that no dlclose() takes away and
         * that fork() copies. The kernel checks the signature before `abort`, clears rseq_cs and
         * goes on. */
        uint64_t *section = mapped->section;
        section[0] = 0;                            /* version, flags */
        section[1] = (uint64_t)(page + 4096 + 256); /* start */
        section[2] = 8;                            /* length */
        section[3] = (uint64_t)(page + 4096 + 512); /* abort */
        *(uint32_t *)(page + 4096 + 512 - 4) = UT_RSEQ_SIGNATURE_;
        ut_process.armed = (uint64_t)(uintptr_t)section;
        if (!UT_IS_MARKED_) ut_no_rseq_.rseq_cs = ut_process.armed;
    }
    ut_process.has_key = pthread_key_create(&ut_process.key, ut_thread_end_) == 0;
    ut_process.clock = control->clock;
    ut_process.control = control;
    ut_process.same_process = (volatile uint32_t *)page;
    *ut_process.same_process = ut_process.by_pid == 0;
    UT_COMPILER_BARRIER_();
    ut_process.on = &control->on;
    if (ut_process.door != NULL) UT_ATOMIC_STORE_(&ut_process.door->magic, UT_DOOR_MAGIC_);
}

/* Runs when the library is unloaded, or the program ends. The mappings stay: other threads may
 * still record. The next instance that is loaded unmaps them. */
__attribute__((weak, visibility("hidden"), destructor(101), no_instrument_function)) void ut_close_door_(void) {
    uint64_t status[32] = {0};
    if (ut_process.has_key) {
        UT_RELAXED_STORE_(&ut_process.has_key, 0);
        pthread_key_delete(ut_process.key);
    }
    /* It stays open if the program has closed it and uses its number for something else. */
    if (ut_process.door != NULL && ut_syscall_(UT_SYS_NEWFSTATAT_, ut_process.door_fd, (long)"", (long)status, UT_AT_EMPTY_PATH_, 0, 0) == 0 &&
        status[1] == ut_process.door_inode)
        ut_syscall_(UT_SYS_CLOSE_, ut_process.door_fd, 0, 0, 0, 0, 0);
    /* If no session is attached, its memory is freed and `on` reads 0. Not in a child, which shares
     * it. */
    if (ut_is_over_() && ut_process.door_pid == ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0)) {
        UT_ATOMIC_STORE_(&ut_process.door->magic, 0u);
        ut_syscall_(UT_SYS_MADVISE_, (long)ut_process.control, UT_CONTROL_BYTES_ + (long)sizeof *ut_process.door, UT_MADV_REMOVE_, 0, 0, 0);
    }
    if (ut_process.place != NULL) {
        struct ut_registry_ *registry = (struct ut_registry_ *)(uintptr_t)UT_REGISTRY_AT_;
        const uint64_t pages = (uint64_t)(uintptr_t)ut_process.same_process;
        /* Not in a child: the entry inherited from its parent is not about the child. */
        if (registry->pid == (uint64_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0) && *ut_process.place == pages)
            UT_ATOMIC_STORE_(ut_process.place, pages | 1);
    }
}

/* ---- the fast path ---------------------------------------------------------- */

/* Reads the clock and writes the record. The order matters. A reading of an event, a next or a pair
 * lies between two checks of the mark (the one here and that of the previous record), so that a
 * record's flag describes exactly the time since the previous record.
 *
 * Almost nothing of the recorder lies inside a span: its code and data may be cold, and would show
 * as 20 to 50 ns. At the begin the clock is read as the last step before the store. A serialised
 * reading is for spans so short that even this shows. A fence after the stores makes the span start
 * from one and the same state, whatever the code around it. Without the fence, its cost differs
 * between programs by three cycles instead of one, and changes twice as much as a pair of readings
 * when another thread shares the core. At the end the clock is read before any other check, even
 * whether to record. The begin's check of the mark precedes its reading: a deschedule between the
 * two is flagged by the next record, a few nanoseconds too late, never too early. */
UT_HOT_ void ut_record_(uint32_t kind, uint32_t event, uint32_t payload, int how) {
    const int fenced = how == UT_ORDERED_BEGIN_ || how == UT_PAIRED_BEGIN_;
    const int last = fenced || (how == UT_WAITING_READ_ && kind == UT_KIND_BEGIN_);
    const int first = how == UT_ORDERED_END_ || how == UT_PAIRED_END_ || (how == UT_WAITING_READ_ && kind == UT_KIND_END_);
    struct ut_writer_ *w = &ut_thread.own;
    struct ut_rseq_ *rseq;
    uintptr_t slot;
    uint64_t ts = 0, second = 0, tail = UT_FLAG_, cursor, position, *head;
    uint32_t cpu = UT_CPU_UNKNOWN_;
    /* Points that are switched off must not read the clock: the difference is their cost. */
    if (first && UT_LIKELY_(w->state == UT_READY_) && (how != UT_WAITING_READ_ || !ut_is_off_here_(event))) {
        ut_enter_(w);
        UT_COMPILER_BARRIER_(); /* a handler that interrupts from here on uses `nested` */
        ts = ut_read_as_(how, &second, &cpu);
        UT_COMPILER_BARRIER_();
        if (UT_UNLIKELY_(ut_is_off_here_(event) || !*ut_process.same_process || !ut_is_writing_(w->state))) {
            if ((w = ut_choose_late_(event, how)) == NULL) return;
            ts = ut_thread.again[0];
            second = ut_thread.again[1];
        }
    } else {
        /* While recording this path has no jump, because each would be measured. */
        const uint32_t on = *ut_process.on;
        if (__builtin_expect(on == UT_OFF_, !fenced)) return; /* before the thread's own memory is read */
        if (UT_UNLIKELY_(on != ut_thread.on) && ut_is_switched_off_(on, event)) return;
        if (UT_LIKELY_(!first && w->state == UT_READY_ && *ut_process.same_process)) ut_enter_(w);
        else if ((w = ut_choose_()) == NULL) return;
        UT_COMPILER_BARRIER_();
        if (first) ts = ut_read_as_(how, &second, &cpu);
    }
    cursor = w->cursor;
    if (UT_UNLIKELY_((cursor & UT_PIECE_MASK_) == 0) && (cursor = ut_find_room_(w)) == 0) return;
    rseq = ut_thread.rseq;
    if (!first && !last) ts = ut_read_as_(how, &second, &cpu);
    if (UT_UNLIKELY_(rseq->rseq_cs != ut_process.armed)) {
        tail = (uint64_t)ut_rearm_(rseq, ts, second, how) << 14;
        ts = ut_thread.again[0];
        second = ut_thread.again[1];
        cpu = (uint32_t)ut_thread.again[2];
    }
    if (first || last) cpu = rseq->cpu_id;
    tail |= (cpu < UT_CPU_UNKNOWN_ ? cpu : UT_CPU_UNKNOWN_) | kind << 11;
    slot = w->base + cursor;
    head = &w->ring->head;
    cursor += 16;
    position = cursor + w->to_position;
    if (last) {
        ((volatile uint64_t *)slot)[1] = (uint64_t)payload | (uint64_t)event << 32 | tail << 48;
        UT_COMPILER_BARRIER_();
        ts = ut_read_as_(how, &second, &cpu);
        ((volatile uint64_t *)slot)[0] = ts;
        if (how == UT_PAIRED_BEGIN_) ((volatile uint32_t *)slot)[2] = (uint32_t)(ts - second);
        UT_ATOMIC_STORE_(head, position);
    } else {
        if (how == UT_WAITING_PAIR_ || how == UT_PAIRED_END_) payload = (uint32_t)(second - ts);
        ((volatile uint64_t *)slot)[0] = ts;
        ((volatile uint64_t *)slot)[1] = (uint64_t)payload | (uint64_t)event << 32 | tail << 48;
        UT_ATOMIC_STORE_(head, position);
    }
    ut_ready_(w, cursor);
    if (fenced) ut_fence_();
}

/** Records a point in time, with a payload of the program's choice. */
UT_HOT_ void ut_event(uint16_t event, uint32_t payload) { ut_record_(UT_KIND_INSTANT_, event, payload, UT_PLAIN_READ_); }
/** Begins a span. Spans of one event may nest. The clock is read when all earlier instructions have
 * been executed: loads that are still under way belong to the code before the span. */
UT_HOT_ void ut_begin(uint16_t event) { ut_record_(UT_KIND_BEGIN_, event, 0, UT_WAITING_READ_); }
/** Ends the innermost open span of this event, when all its instructions have been executed. */
UT_HOT_ void ut_end(uint16_t event) { ut_record_(UT_KIND_END_, event, 0, UT_WAITING_READ_); }
/** Ends span `from` and begins span `to`, with one clock reading, as in ut_end. */
UT_HOT_ void ut_next(uint16_t from, uint16_t to) { ut_record_(UT_KIND_NEXT_, from, to, UT_WAITING_READ_); }
/** Reads the clock twice with nothing between: the cost of measuring, in place. */
UT_HOT_ void ut_pair(uint16_t event) { ut_record_(UT_KIND_PAIR_, event, 0, UT_WAITING_PAIR_); }
/** As ut_begin, but the reading waits for nothing: work from before the span may still be under
 * way, and is counted in it on some CPUs. It is for spans whose work must overlap with the code
 * around them. Outputs say "edges not ordered". */
UT_HOT_ void ut_begin_fast(uint16_t event) { ut_record_(UT_KIND_BEGIN_, event, UT_UNORDERED_, UT_PLAIN_READ_); }
/** As ut_end, for ut_begin_fast: work that is still under way, such as loads that miss the caches,
 * is not in the span, however long it takes. */
UT_HOT_ void ut_end_fast(uint16_t event) { ut_record_(UT_KIND_END_, event, UT_UNORDERED_, UT_PLAIN_READ_); }
/** As ut_begin, with a serialised reading: for spans below about 200 ns. */
UT_HOT_ void ut_begin_ordered(uint16_t event) { ut_record_(UT_KIND_BEGIN_ORDERED_, event, 0, UT_ORDERED_BEGIN_); }
/** As ut_end, with a serialised reading. */
UT_HOT_ void ut_end_ordered(uint16_t event) { ut_record_(UT_KIND_END_ORDERED_, event, 0, UT_ORDERED_END_); }

/** As ut_begin_ordered, after a pair of readings: the cost of a reading right before the span is
 * recorded with it (`report --compensate pairs`). */
UT_HOT_ void ut_begin_paired(uint16_t event) { ut_record_(UT_KIND_BEGIN_ORDERED_, event, 0, UT_PAIRED_BEGIN_); }
/** As ut_end_ordered, with a pair of readings after it. */
UT_HOT_ void ut_end_paired(uint16_t event) { ut_record_(UT_KIND_END_ORDERED_, event, 0, UT_PAIRED_END_); }

/** As ut_event with 64 bits: it takes two records. */
UT_COLD_ void ut_event64_slow_(uint16_t event, uint64_t payload) {
    struct ut_thread_ *t = &ut_thread;
    struct ut_writer_ *w = &t->own;
    uint32_t cursor, cpu;
    uint64_t ts, second = 0, tail = UT_FLAG_, *record;
    if (w->state == UT_READY_ && *ut_process.same_process) ut_enter_(w);
    else if ((w = ut_choose_()) == NULL) return;
    UT_COMPILER_BARRIER_();
    cursor = w->cursor;
    if ((cursor & UT_PIECE_MASK_) == 0 && (cursor = ut_find_room_(w)) == 0) return;
    if (((cursor + 16) & UT_PIECE_MASK_) == 0) { /* both halves must lie in the same piece */
        record = (uint64_t *)(w->base + cursor);
        record[0] = 0;
        record[1] = UT_PAD_ | (uint64_t)event << 32 | (uint64_t)(UT_CPU_UNKNOWN_ | UT_KIND_CONTINUATION_ << 11) << 48;
        w->continuations++;
        UT_ATOMIC_STORE_(&w->ring->head, cursor + 16 + w->to_position);
        w->cursor = cursor + 16;
        if ((cursor = ut_find_room_(w)) == 0) return;
    }
    ts = ut_read_as_(UT_PLAIN_READ_, &second, &cpu);
    if (t->rseq->rseq_cs != ut_process.armed) {
        tail = (uint64_t)ut_rearm_(t->rseq, ts, second, UT_PLAIN_READ_) << 14;
        ts = t->again[0];
        cpu = (uint32_t)t->again[2];
    }
    tail |= cpu < UT_CPU_UNKNOWN_ ? cpu : UT_CPU_UNKNOWN_;
    record = (uint64_t *)(w->base + cursor);
    record[0] = ts;
    record[1] = (payload & 0xffffffffu) | (uint64_t)event << 32 | tail << 48;
    record[2] = payload;
    record[3] = UT_WIDE_ | (uint64_t)event << 32 | (uint64_t)(UT_CPU_UNKNOWN_ | UT_KIND_CONTINUATION_ << 11) << 48;
    w->continuations++;
    UT_ATOMIC_STORE_(&w->ring->head, cursor + 32 + w->to_position);
    ut_ready_(w, cursor + 32u);
}
UT_HOT_ void ut_event64(uint16_t event, uint64_t payload) {
    const uint32_t on = *ut_process.on;
    if (UT_LIKELY_(on == UT_OFF_)) return;
    if (UT_UNLIKELY_(on != ut_thread.on) && ut_is_switched_off_(on, event)) return;
    ut_event64_slow_(event, payload);
}

/* ---- sampled spans ---------------------------------------------------------- */

/* Each begin decrements the count `left` of the event's cell in one instruction, so that a signal
 * handler runs before or after it. The begin that finds it at 0 is recorded; its payload says how
 * many executions it stands for. Gaps between recorded spans are uniform on 1 .. 2r - 1, the first
 * one as if drawing had begun long ago. Each execution is then recorded with probability 1/r, in
 * threads of any length. The cells lie in the ring's head, so that the executions since the last
 * recorded one are known even of a killed program. While a recorded span is open, begins and ends
 * of its event take the slow path, which tracks the recorded spans. */

/* Counts one execution; returns a value below 0 if it is to be recorded. */
UT_HOT_ int ut_count_down_(struct ut_cell_ *cell) {
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
    int below;
    __asm__ volatile("subl $1, %0" : "+m"(cell->left), "=@ccs"(below));
    return -below;
#elif defined(__x86_64__)
    uint8_t below;
    __asm__ volatile("subl $1, %0\n\tsets %1" : "+m"(cell->left), "=q"(below)::"cc");
    return -(int)below;
#else
    typedef int32_t half __attribute__((may_alias));
    half *left = (half *)(void *)&cell->left;
    return (int)__atomic_sub_fetch(left, 1, __ATOMIC_RELAXED);
#endif
}

UT_INLINE_ int32_t ut_low_half_(const struct ut_cell_ *cell) {
    int32_t half;
    __builtin_memcpy(&half, &cell->left, 4);
    return half;
}

UT_INLINE_ uint32_t ut_high_half_(const struct ut_cell_ *cell) {
    uint32_t half;
    __builtin_memcpy(&half, (const char *)&cell->left + 4, 4);
    return half;
}

UT_COLD_ uint64_t ut_first_seed_(void) {
    uint64_t x = UT_ATOMIC_LOAD_(&ut_process.clock) == UT_CLOCK_COUNTER_ ? ut_counter_() : ut_slow_clock_();
    x ^= (uint64_t)ut_syscall_(UT_SYS_GETTID_, 0, 0, 0, 0, 0, 0) << 32 ^ (uint64_t)(uintptr_t)&ut_thread;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
    return x ^ x >> 29;
}

/* Returns 32 random bits: the upper half of Knuth's linear congruential generator. */
UT_INLINE_ uint32_t ut_random_(void) {
    uint64_t x = ut_thread.random;
    if (UT_UNLIKELY_(x == 0)) x = ut_first_seed_();
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    ut_thread.random = x;
    return (uint32_t)(x >> 32);
}

/* Returns a number of 1 .. n, all equally likely. */
UT_INLINE_ uint32_t ut_random_to_(uint32_t n) { return 1 + (uint32_t)((uint64_t)ut_random_() * n >> 32); }

/* Returns the first gap of a cell, or under a rate: the smaller of two different numbers of 1 ..
 * 2r, which is the remainder of a gap at a random time. */
UT_COLD_ uint32_t ut_first_gap_(uint32_t one_in) {
    uint32_t a = ut_random_to_(2 * one_in), b = ut_random_to_(2 * one_in - 1);
    b += b >= a;
    return a < b ? a : b;
}

/* Returns the sampling rate of an event: one in this many executions is recorded. */
UT_COLD_ uint32_t ut_find_rate_(uint16_t event) {
    struct ut_control_ *control = ut_process.control;
    uint32_t i, one_in = 0;
    for (i = 0; i < UT_RATES_; i++) {
        uint64_t entry = __atomic_load_n(&control->rates[(event + i) % UT_RATES_], __ATOMIC_RELAXED);
        if (entry == 0) break;
        if ((uint16_t)(entry >> 32) == event) {
            one_in = (uint32_t)entry & 0xffff;
            break;
        }
    }
    if (one_in == 0) one_in = *(volatile uint32_t *)&control->one_in & 0xffff;
    return one_in == 0 ? 16 : one_in;
}
UT_HOT_ uint32_t ut_one_in_(uint16_t event) {
    struct ut_control_ *control = ut_process.control;
    if (UT_LIKELY_(UT_ATOMIC_LOAD_(&control->rates[event % UT_RATES_]) == 0 && UT_ATOMIC_LOAD_(&control->one_in) == 0)) return 16;
    return ut_find_rate_(event);
}

/* Starts a new gap by one store, so that the count is right before and after. */
UT_HOT_ void ut_next_gap_(struct ut_cell_ *cell, uint16_t event, uint64_t executions) {
    const uint32_t one_in = ut_one_in_(event), before = cell->one_in;
    uint32_t gap;
    cell->timed = (uint16_t)before;
    if (UT_LIKELY_(one_in == before)) gap = ut_random_to_(2 * one_in - 1);
    else { /* no gap before, or the rate has changed: as if drawing had begun long ago */
        gap = ut_first_gap_(one_in);
        cell->one_in = (uint16_t)one_in;
    }
    *(volatile uint64_t *)&cell->left = (uint64_t)((uint32_t)executions + gap - 1) << 32 | (gap - 1);
    UT_COMPILER_BARRIER_();
    *(volatile uint64_t *)&cell->last = executions;
}

/* Makes the fast path find the cells of the thread's ring; if this fails, all spans take the slow
 * path. */
UT_COLD_ void ut_find_cells_(struct ut_cell_ *cells) {
    struct ut_thread_ *t = &ut_thread;
    if (ut_process.by_pid != 0) return;
    if (t->spare != NULL) {
        t->cells = t->spare;
        t->spare = NULL;
    }
    if (t->cells == &ut_no_offset_) {
        long page = ut_syscall_(UT_SYS_MMAP_, 0, 4096, UT_PROT_RW_, UT_MAP_PRIVATE_ | UT_MAP_ANONYMOUS_, -1, 0);
        if (page < 0 && page > -4096) return;
        if (ut_syscall_(UT_SYS_MADVISE_, page, 4096, UT_MADV_WIPEONFORK_, 0, 0, 0) < 0) {
            ut_unmap_(page, 4096);
            return;
        }
        t->cells = (uintptr_t *)page;
        ut_note_(ut_mapped_here_()->pages, UT_OWN_PAGES_, 0, (uint64_t)page);
    }
    UT_RELAXED_STORE_(t->cells, (uintptr_t)cells - (uintptr_t)ut_no_cells_);
}

/* Returns the cell that the fast path examines. */
UT_HOT_ struct ut_cell_ *ut_near_cell_(uint16_t event) {
    return (struct ut_cell_ *)(void *)((char *)ut_no_cells_ + UT_ATOMIC_LOAD_(ut_thread.cells)) + event % UT_CELLS_;
}

/* Returns the event's cell in a ring; NULL: there is none, and every span is recorded. */
UT_COLD_ struct ut_cell_ *ut_make_cell_(struct ut_writer_ *w, uint16_t event) {
    struct ut_cell_ *cells = (struct ut_cell_ *)(void *)((char *)w->ring + UT_CELLS_AT_), *cell;
    if (w->ring->cells != UT_CELLS_) {
        /* Pages are taken before the first store, as for segments. */
        if (w->ring->cells != 0 ||
            !ut_populate_(w->pool, (uintptr_t)cells, UT_CELLS_ * sizeof *cells)) {
            w->ring->cells = 0xffffffffu;
            return NULL;
        }
        UT_COMPILER_BARRIER_();
        w->ring->cells = UT_CELLS_;
    }
    if (w == &ut_thread.own && *ut_thread.cells == 0) ut_find_cells_(cells);
    cell = &cells[event % UT_CELLS_];
    if (cell->state == 0) {
        ut_next_gap_(cell, event, 0);
        UT_COMPILER_BARRIER_();
        *(volatile uint32_t *)&cell->state = event | UT_CLAIMED_ | UT_BUSY_;
    }
    return (uint16_t)cell->state == event ? cell : NULL;
}

/* Returns the event's cell in a ring that is being written, so that handlers use another one; NULL:
 * there is none, and every span is recorded. */
UT_INLINE_ struct ut_cell_ *ut_cell_of_(struct ut_writer_ *w, uint16_t event) {
    struct ut_cell_ *cell;
    if (UT_UNLIKELY_(w->ring->cells != UT_CELLS_)) return ut_make_cell_(w, event);
    cell = (struct ut_cell_ *)(void *)((char *)w->ring + UT_CELLS_AT_) + event % UT_CELLS_;
    if (UT_LIKELY_((uint16_t)cell->state == event && cell->state != 0)) return cell;
    return ut_make_cell_(w, event);
}

/* Begins one execution, which may already be `counted`. Returns how many executions it stands for
 * if it is to be recorded, or 0. */
UT_INLINE_ uint32_t ut_begun_(struct ut_cell_ *cell, uint16_t event, int counted, int on) {
    volatile uint32_t *state = &cell->state;
    uint32_t open = cell->open, n = 0;
    *state = event | UT_CLAIMED_ | UT_BUSY_; /* from here on no handler counts here */
    UT_COMPILER_BARRIER_();
    if (UT_UNLIKELY_(!counted)) ut_count_down_(cell);
    if (UT_UNLIKELY_(ut_low_half_(cell) >= 0 || open >> 31)) {
        if (open >> 31) cell->deeper++;
        else open <<= 1;
    } else {
        n = ut_high_half_(cell) - (uint32_t)ut_low_half_(cell) - (uint32_t)cell->last;
        ut_next_gap_(cell, event, cell->last + n);
        n = on ? n : 0;
        open = open << 1 | (uint32_t)on;
    }
    cell->open = open;
    UT_COMPILER_BARRIER_();
    *state = event | UT_CLAIMED_ | (open ? (uint32_t)UT_OPEN_ : 0);
    return n;
}

/* Begins a sampled span. Executions are counted even while recording is switched off. */
UT_COLD_ void ut_begin_sampled_slow_(uint16_t event, int counted) {
    const uint32_t joined = ut_thread.on, here = (uint32_t)(uintptr_t)__builtin_dwarf_cfa();
    const int on = !ut_is_off_(event);
    struct ut_writer_ *w = &ut_thread.own;
    struct ut_cell_ *cell;
    uint32_t n = 1;
    if (UT_UNLIKELY_(ut_thread.on != joined)) counted = 0; /* counted in the previous session */
    if (UT_LIKELY_(w->state == UT_READY_ && ut_is_same_process_())) ut_enter_(w);
    else if (counted || !on) { /* counted by a handler that interrupts a write: the next one is recorded */
        if (on && ut_is_left_(&ut_thread, w->state, here) && (w = ut_choose_from_(here)) != NULL) w->state = UT_READY_;
        return;
    } else if ((w = ut_choose_from_(here)) == NULL) return;
    UT_COMPILER_BARRIER_();
    cell = ut_cell_of_(w, event);
    if (UT_LIKELY_(cell != NULL)) n = ut_begun_(cell, event, counted, on);
    UT_COMPILER_BARRIER_();
    w->state = UT_READY_;
    if (n != 0) ut_record_(UT_KIND_BEGIN_, event, n, UT_WAITING_READ_);
}

/* As the unordered part of ut_record_, into the thread's ring that is being written. */
UT_HOT_ void ut_put_(struct ut_writer_ *w, uint32_t kind, uint32_t event, uint32_t payload) {
    struct ut_rseq_ *rseq = ut_thread.rseq;
    uintptr_t slot;
    uint64_t ts, second = 0, tail = 0, cursor = w->cursor;
    uint32_t cpu;
    if (UT_UNLIKELY_((cursor & UT_PIECE_MASK_) == 0) && (cursor = ut_find_room_(w)) == 0) return;
    ts = ut_read_as_(UT_WAITING_READ_, &second, &cpu);
    if (UT_UNLIKELY_(rseq->rseq_cs != ut_process.armed)) {
        tail = (uint64_t)ut_rearm_(rseq, ts, second, UT_WAITING_READ_) << 14;
        ts = ut_thread.again[0];
        cpu = (uint32_t)ut_thread.again[2];
    }
    tail |= (cpu < UT_CPU_UNKNOWN_ ? cpu : UT_CPU_UNKNOWN_) | kind << 11;
    slot = w->base + cursor;
    cursor += 16;
    ((volatile uint64_t *)slot)[0] = ts;
    ((volatile uint64_t *)slot)[1] = (uint64_t)payload | (uint64_t)event << 32 | tail << 48;
    UT_ATOMIC_STORE_(&w->ring->head, cursor + w->to_position);
    ut_ready_(w, cursor);
}

/* The common case of ut_begin_sampled_slow_: the execution is counted, and no recorded span of the
 * event is open. */
UT_APART_ void ut_begin_due_(struct ut_cell_ *cell, uint16_t event) {
    struct ut_writer_ *w = &ut_thread.own;
    int32_t left;
    uint32_t n;
    if (UT_UNLIKELY_(w->state != UT_READY_ || *ut_process.on != ut_thread.on)) {
        ut_begin_sampled_slow_(event, 1);
        return;
    }
    ut_enter_(w);
    *(volatile uint32_t *)&cell->state = event | UT_CLAIMED_ | UT_BUSY_;
    UT_COMPILER_BARRIER_();
    left = ut_low_half_(cell);
    if (UT_UNLIKELY_(left >= 0)) { /* a handler ran and was recorded for both */
        *(volatile uint32_t *)&cell->state = event | UT_CLAIMED_;
        w->state = UT_READY_;
        return;
    }
    n = ut_high_half_(cell) - (uint32_t)left - (uint32_t)cell->last;
    ut_next_gap_(cell, event, cell->last + n);
    cell->open = 1;
    UT_COMPILER_BARRIER_();
    *(volatile uint32_t *)&cell->state = event | UT_CLAIMED_ | UT_OPEN_;
    ut_put_(w, UT_KIND_BEGIN_, event, n);
}

UT_COLD_ void ut_end_sampled_slow_(uint16_t event) {
    struct ut_writer_ *w = &ut_thread.own;
    struct ut_cell_ *cell;
    const uint32_t running = *ut_process.on;
    if (UT_UNLIKELY_(!ut_is_same_process_())) return; /* nothing of this process is open */
    if (UT_UNLIKELY_(running != UT_OFF_ && (running ^ ut_thread.on) > UT_MODE_)) return; /* the session has none */
    if (UT_UNLIKELY_(w->state != UT_READY_)) w = &ut_thread.nested; /* as the begin did */
    if (UT_UNLIKELY_(w->state != UT_READY_ || w->ring->cells == 0)) return; /* nothing has begun */
    cell = (struct ut_cell_ *)(void *)((char *)w->ring + UT_CELLS_AT_) + event % UT_CELLS_;
    if (UT_UNLIKELY_(w->ring->cells != UT_CELLS_ || ((uint16_t)cell->state != event && cell->state != 0))) {
        ut_record_(UT_KIND_END_, event, 1, UT_WAITING_READ_); /* no cell: every span is recorded */
        return;
    }
    if (UT_UNLIKELY_(cell->deeper > 0)) {
        cell->deeper--;
        return;
    }
    if (UT_LIKELY_(cell->open & 1)) ut_record_(UT_KIND_END_, event, cell->timed, UT_WAITING_READ_);
    /* A handler that interrupts leaves `open` as it found it. */
    cell->open >>= 1;
    if (cell->open == 0 && cell->state != 0) *(volatile uint32_t *)&cell->state = event | UT_CLAIMED_;
}

/* The common case of an end: one recorded span of the event is open, and none inside it. */
UT_APART_ void ut_end_due_(struct ut_cell_ *cell, uint16_t event) {
    struct ut_writer_ *w = &ut_thread.own;
    if (UT_UNLIKELY_(w->state != UT_READY_ || *ut_process.on != ut_thread.on || cell->state != ((uint32_t)event | UT_CLAIMED_ | UT_OPEN_) || cell->open != 1)) {
        if (*ut_process.on != 0 || (cell->state & UT_OPEN_)) ut_end_sampled_slow_(event);
        return;
    }
    ut_enter_(w);
    UT_COMPILER_BARRIER_();
    ut_put_(w, UT_KIND_END_, event, cell->timed);
    /* A handler that interrupts leaves `open` as it found it. */
    cell->open = 0;
    UT_COMPILER_BARRIER_();
    *(volatile uint32_t *)&cell->state = event | UT_CLAIMED_;
}

/* Begins a span outside the common case: a recorded span is open, the cell belongs to another
 * event, or there is none (yet). */
UT_COLD_ void ut_begin_otherwise_(const struct ut_cell_ *cell, uint16_t event) {
    if (*ut_process.on != 0 || (cell->state & UT_OPEN_)) ut_begin_sampled_slow_(event, 0);
    /* The rings are given up only after the collector has read all of them. */
    else if (ut_is_over_() && !ut_process.control->collector_alive) ut_leave_((uint32_t)(uintptr_t)__builtin_dwarf_cfa());
}

/** As ut_begin, but records only one in n executions of the event's span, at random, and counts all
 * of them. The span ends with ut_end_sampled. */
UT_HOT_ void ut_begin_sampled(uint16_t event) {
    struct ut_cell_ *cell = ut_near_cell_(event);
    if (UT_LIKELY_(cell->state == ((uint32_t)event | UT_CLAIMED_))) {
        if (UT_UNLIKELY_(ut_count_down_(cell) < 0)) ut_begin_due_(cell, event);
    } else if (ut_thread.cells != &ut_no_offset_ || *ut_process.on != 0) ut_begin_otherwise_(cell, event);
}

/** As ut_end, for ut_begin_sampled. */
UT_HOT_ void ut_end_sampled(uint16_t event) {
    struct ut_cell_ *cell = ut_near_cell_(event);
    if (UT_LIKELY_(cell->state == ((uint32_t)event | UT_CLAIMED_))) return;
    if (ut_thread.cells != &ut_no_offset_ || *ut_process.on != 0) ut_end_due_(cell, event);
}

/* Changes an entry of the table of rates; an entry that `undertick record` made stays. */
UT_COLD_ void ut_set_rate_(uint16_t event, uint32_t one_in) {
    uint64_t *rates = ut_process.control->rates;
    uint64_t wanted = 1ull << 63 | (uint64_t)event << 32 | (one_in < UT_MOST_ONE_IN_ ? one_in : UT_MOST_ONE_IN_);
    uint32_t i;
    for (i = 0; i < UT_RATES_; i++) {
        uint64_t *entry = &rates[(event + i) % UT_RATES_], found = __atomic_load_n(entry, __ATOMIC_RELAXED);
        while (found == 0 || (uint16_t)(found >> 32) == event) {
            if (found >> 62 & 1) return;
            if (__atomic_compare_exchange_n(entry, &found, wanted, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
        }
    }
}

/** Sets the rate of an event's sampled spans: one in `one_in` executions is recorded, in this
 * process and all others of the session, from the next recorded one on. At most 65535; 0 restores
 * the session's default (16 unless `record --sample` sets another one). */
UT_INLINE_ void ut_sample_rate(uint16_t event, uint32_t one_in) {
    if (ut_process.control) ut_set_rate_(event, one_in);
}

/** Makes the random choice of the calling thread's sampled spans repeatable. */
UT_INLINE_ void ut_sample_seed(uint64_t seed) { ut_thread.random = seed ? seed : 1; }

/** Returns whether events are being recorded (all of them, or some for a while). */
UT_INLINE_ int ut_enabled(void) { return *ut_process.on != UT_OFF_; }

/* Returns whether the attach page already has this name, as the last one of its event or thread. */
UT_INLINE_ int ut_is_known_(const struct ut_door_ *door, const struct ut_name_ *name) {
    uint32_t used = __atomic_load_n(&door->names_used, __ATOMIC_ACQUIRE), at = 0;
    int known = 0;
    if (used > UT_DOOR_NAMES_) used = UT_DOOR_NAMES_;
    while (at + sizeof *name <= used + sizeof name->text) {
        const struct ut_name_ *one = (const struct ut_name_ *)(const void *)(door->names + at);
        uint32_t i = 0;
        const uint32_t bytes = UT_ATOMIC_LOAD_(&one->bytes);
        at += (16u + bytes + 7u) & ~7u;
        if (__atomic_load_n(&one->magic, __ATOMIC_ACQUIRE) != name->magic || UT_ATOMIC_LOAD_(&one->what) != name->what) continue;
        if (UT_ATOMIC_LOAD_(&one->event) != name->event || UT_ATOMIC_LOAD_(&one->pid) != name->pid) continue;
        if (name->what == 2 && UT_ATOMIC_LOAD_(&one->tid) != name->tid) continue;
        known = bytes == name->bytes && at <= used;
        while (known && i < name->bytes) {
            known = UT_ATOMIC_LOAD_(&one->text[i]) == name->text[i];
            i++;
        }
    }
    return known;
}

/* Stores a name for the sessions that will attach, in the form of the log of names: 16 bytes, the
 * text, and up to 7 more. */
UT_COLD_ void ut_keep_name_(struct ut_door_ *door, const struct ut_name_ *name) {
    const uint32_t bytes = (16u + name->bytes + 7u) & ~7u;
    uint32_t at = __atomic_load_n(&door->names_used, __ATOMIC_RELAXED), i;
    struct ut_name_ *kept;
    if (ut_is_known_(door, name)) return;
    do {
        if (at > UT_DOOR_NAMES_ || at + bytes > UT_DOOR_NAMES_) {
            __atomic_fetch_add(&door->names_lost, 1, __ATOMIC_RELAXED);
            return;
        }
    } while (!__atomic_compare_exchange_n(&door->names_used, &at, at + bytes, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    kept = (struct ut_name_ *)(void *)(door->names + at);
    UT_RELAXED_STORE_(&kept->bytes, name->bytes); /* so that others find the entry after it */
    UT_RELAXED_STORE_(&kept->what, name->what);
    UT_RELAXED_STORE_(&kept->event, name->event);
    UT_RELAXED_STORE_(&kept->pid, name->pid);
    UT_RELAXED_STORE_(&kept->tid, name->tid);
    for (i = 0; i < name->bytes; i++) UT_RELAXED_STORE_(&kept->text[i], name->text[i]);
    UT_ATOMIC_STORE_(&kept->magic, name->magic);
}

/* Appends to the log of names, to which other processes also append; returns whether the record is
 * in it. Beyond the limit of file sizes a write ends the program, so none is tried. If another
 * process was faster, the signal is taken back. */
UT_COLD_ int ut_write_name_(int fd, const struct ut_name_ *name) {
    const uint64_t limit = ut_file_limit_(), mine = 1ull << 24; /* SIGXFSZ */
    const long bytes = 16 + (long)name->bytes;
    uint64_t before = 0, pending = 0, status[32] = {0}, now[2] = {0, 0};
    int is_kept;
    if (limit == ~0ull) return ut_syscall_(UT_SYS_WRITE_, fd, (long)name, bytes, 0, 0, 0) == bytes;
    if (ut_syscall_(UT_SYS_NEWFSTATAT_, fd, (long)"", (long)status, UT_AT_EMPTY_PATH_, 0, 0) != 0 || status[UT_STAT_SIZE_] + (uint64_t)bytes > limit ||
        ut_syscall_(UT_SYS_SIGPROCMASK_, UT_SIG_BLOCK_, (long)&mine, (long)&before, 8, 0, 0) != 0)
        return 0;
    ut_syscall_(UT_SYS_SIGPENDING_, (long)&pending, 8, 0, 0, 0, 0);
    is_kept = ut_syscall_(UT_SYS_WRITE_, fd, (long)name, bytes, 0, 0, 0) == bytes;
    if (!(pending & mine)) ut_syscall_(UT_SYS_SIGTIMEDWAIT_, (long)&mine, 0, (long)now, 8, 0, 0);
    ut_let_signals_(&before);
    return is_kept;
}

UT_COLD_ void ut_append_name_(uint16_t what, uint16_t event, const char *text) {
    struct ut_name_ record;
    char path[240];
    long fd;
    int length = 0;
    while (text[length] && length < 255) {
        record.text[length] = text[length];
        length++;
    }
    record.magic = 0x4e55; /* "UN" */
    record.what = what;
    record.event = event;
    record.bytes = (uint16_t)length;
    record.pid = (int32_t)ut_syscall_(UT_SYS_GETPID_, 0, 0, 0, 0, 0, 0);
    record.tid = (int32_t)ut_syscall_(UT_SYS_GETTID_, 0, 0, 0, 0, 0, 0);
    if (ut_process.door != NULL) {
        ut_keep_name_(ut_process.door, &record);
        return;
    }
    ut_path_(path, "names");
    fd = ut_syscall_(UT_SYS_OPENAT_, UT_AT_FDCWD_, (long)path, UT_O_WRONLY_ | UT_O_APPEND_ | UT_O_CLOEXEC_ | UT_O_NOFOLLOW_, 0, 0, 0);
    if (fd < 0 || !ut_write_name_((int)fd, &record)) __atomic_fetch_add(&ut_process.control->names_lost, 1, __ATOMIC_RELAXED);
    if (fd >= 0) ut_syscall_(UT_SYS_CLOSE_, fd, 0, 0, 0, 0, 0);
}

/** Names an event in the trace; once per process is enough, at any time. */
UT_INLINE_ void ut_name(uint16_t event, const char *name) {
    if (ut_process.control) ut_append_name_(1, event, name);
}
/** Names the calling thread in the trace. */
UT_INLINE_ void ut_thread_name(const char *name) {
    if (ut_process.control) ut_append_name_(2, 0, name);
}

/* As ut_number. `tells`: the name is written to the trace even if it was before, because another
 * instance may have been unloaded with the names that it gave. */
UT_COLD_ uint16_t ut_number_of_(const char *name, int tells) {
    static uint8_t are_told; /* whether "(other names)" is in the trace */
    uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
    uint64_t *names = ut_process.names;
    const char *at;
    uint32_t i;
    if (ut_process.control == NULL) return UT_OTHER_NAMES_;
    for (at = name; *at != 0; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3ull;
    if (hash == 0) hash = 1;
    for (i = 0; names != NULL && i < UT_NAMES_; i++) {
        const uint32_t place = (uint32_t)((hash + i) % UT_NAMES_);
        uint64_t found = 0;
        if (__atomic_compare_exchange_n(&names[place], &found, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) tells = 1;
        else if (found != hash) continue;
        if (tells) ut_append_name_(1, (uint16_t)(UT_FIRST_NAME_ + place), name);
        return (uint16_t)(UT_FIRST_NAME_ + place);
    }
    if (!__atomic_exchange_n(&are_told, 1, __ATOMIC_RELAXED)) ut_append_name_(1, UT_OTHER_NAMES_, "(other names)");
    return UT_OTHER_NAMES_;
}

/** Returns the event number of a name, for a process of many libraries. It is one of 16384 to
 * 32766, the same each time for the same name; 32767, "(other names)", if there is none left. Call
 * it once and store the number. */
UT_INLINE_ uint16_t ut_number(const char *name) { return ut_number_of_(name, 0); }

UT_COLD_ uint16_t ut_new_scope_(uint16_t *number, const char *name) {
    const uint16_t given = ut_number_of_(name, 1);
    UT_RELAXED_STORE_(number, given);
    return given;
}
UT_HOT_ uint16_t ut_begin_scope_(uint16_t *number, const char *name) {
    uint16_t event = UT_ATOMIC_LOAD_(number);
    if (UT_UNLIKELY_(event == 0)) event = ut_new_scope_(number, name);
    ut_begin(event);
    return event;
}
UT_HOT_ void ut_end_scope_(const uint16_t *event) { ut_end(*event); }

/** UT_SCOPE("parse"); is a span until the end of the block, however the block is left (except by
 * longjmp or the end of the thread). A number is made for the name, and stored. */
#define UT_SCOPE(name) UT_SCOPE_AT_(name, __COUNTER__)
#define UT_SCOPE_AT_(name, place) UT_SCOPE_OF_(name, place)
#define UT_SCOPE_OF_(name, place) \
    static uint16_t ut_number_##place##_; \
    const uint16_t ut_scope_##place##_ __attribute__((cleanup(ut_end_scope_), unused)) = ut_begin_scope_(&ut_number_##place##_, name)

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* UNDERTICK_DISABLE */

#ifdef __cplusplus
namespace undertick {
/** A span as long as the object lives. */
class span {
  public:
    explicit span(uint16_t event) noexcept : event_(event) { ut_begin(event); }
    ~span() { ut_end(event_); }
    span(const span &) = delete;
    span &operator=(const span &) = delete;

  private:
    [[maybe_unused]] uint16_t event_;
};

/** A span as `span`, by ut_begin_fast and ut_end_fast. */
class fast_span {
  public:
    explicit fast_span(uint16_t event) noexcept : event_(event) { ut_begin_fast(event); }
    ~fast_span() { ut_end_fast(event_); }
    fast_span(const fast_span &) = delete;
    fast_span &operator=(const fast_span &) = delete;

  private:
    [[maybe_unused]] uint16_t event_;
};

/** A sampled span as long as the object lives. */
class sampled_span {
  public:
    explicit sampled_span(uint16_t event) noexcept : event_(event) { ut_begin_sampled(event); }
    ~sampled_span() { ut_end_sampled(event_); }
    sampled_span(const sampled_span &) = delete;
    sampled_span &operator=(const sampled_span &) = delete;

  private:
    [[maybe_unused]] uint16_t event_;
};
} // namespace undertick
#endif
#endif /* UNDERTICK_H */
