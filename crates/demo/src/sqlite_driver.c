#define _POSIX_C_SOURCE 200809L
/* SQLite at work, with its stages timed in place through undertick.h. Stages
 * that follow each other share one clock reading (ut_next). */
#include "undertick.h"
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>

enum { INSERT = 1, LOOKUP = 2, PREPARE = 3, BIND = 4, STEP = 5, FINALIZE = 6, COMMIT = 7, ROWS = 8 };

static void name_events(void) {
    ut_name(INSERT, "insert");
    ut_name(LOOKUP, "lookup");
    ut_name(PREPARE, "prepare");
    ut_name(BIND, "bind");
    ut_name(STEP, "step");
    ut_name(FINALIZE, "finalize");
    ut_name(COMMIT, "commit");
    ut_name(ROWS, "rows inserted");
}

static sqlite3 *open_database(const char *path) {
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK) return NULL;
    sqlite3_busy_timeout(db, 10000);
    sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;", NULL, NULL, NULL);
    return db;
}

/* One statement, its four stages one after the other. */
static int run_statement(sqlite3 *db, const char *sql, uint64_t key, uint64_t value) {
    sqlite3_stmt *statement = NULL;
    int result;
    ut_begin(PREPARE);
    result = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (result != SQLITE_OK) {
        ut_end(PREPARE);
        return result;
    }
    ut_next(PREPARE, BIND);
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)key);
    if (value) sqlite3_bind_int64(statement, 2, (sqlite3_int64)value);
    ut_next(BIND, STEP);
    do result = sqlite3_step(statement);
    while (result == SQLITE_ROW);
    ut_next(STEP, FINALIZE);
    sqlite3_finalize(statement);
    ut_end(FINALIZE);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int seconds_are_over(const struct timespec *start, double seconds) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec) >= seconds;
}

/* The table before the clock starts: look-ups find something from the first. */
int undertick_demo_fill(const char *path, uint32_t rows) {
    sqlite3 *db = open_database(path);
    int result = SQLITE_CANTOPEN;
    char sql[256];
    snprintf(sql, sizeof sql,
             "CREATE TABLE item(key INTEGER PRIMARY KEY, value INTEGER);"
             "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %u)"
             "INSERT INTO item SELECT i, i * 7 FROM n;",
             rows);
    name_events();
    if (db) result = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
    return result;
}

int undertick_demo_insert(const char *path, uint32_t keys, uint32_t rows, double seconds) {
    sqlite3 *db = open_database(path);
    uint64_t state = 88172645463325252ull;
    struct timespec start;
    uint32_t r;
    int result = db ? SQLITE_OK : SQLITE_CANTOPEN;
    ut_thread_name("sqlite insert");
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (result == SQLITE_OK && !seconds_are_over(&start, seconds)) {
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        for (r = 0; r < rows && result == SQLITE_OK; r++) {
            ut_begin(INSERT);
            result = run_statement(db, "INSERT OR REPLACE INTO item VALUES(?, ?)", next_random(&state) % keys, next_random(&state) | 1);
            ut_end(INSERT);
        }
        ut_begin(COMMIT);
        if (result == SQLITE_OK) result = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        ut_end(COMMIT);
        ut_event(ROWS, rows);
    }
    sqlite3_close(db);
    return result;
}

int undertick_demo_lookup(const char *path, uint32_t keys, double seconds) {
    sqlite3 *db = open_database(path);
    uint64_t state = 1181783497276652981ull;
    struct timespec start;
    int result = db ? SQLITE_OK : SQLITE_CANTOPEN;
    ut_thread_name("sqlite lookup");
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (result == SQLITE_OK && !seconds_are_over(&start, seconds)) {
        ut_begin(LOOKUP);
        result = run_statement(db, "SELECT value FROM item WHERE key = ?", next_random(&state) % keys, 0);
        ut_end(LOOKUP);
    }
    sqlite3_close(db);
    return result;
}
