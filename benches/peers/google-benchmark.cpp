// Doses under Google Benchmark: alone in its loop, and in the middle of 2 us of other work
// with its manual timing, which is what it has for a section of a loop.
#include "dose.h"
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdint>

#define DOSES(n)                                                                     \
    static void alone_##n(benchmark::State &state) {                                 \
        uint64_t x = 1;                                                              \
        for (auto _ : state) { DOSE(n, x); }                                         \
        benchmark::DoNotOptimize(x);                                                 \
    }                                                                                \
    BENCHMARK(alone_##n);                                                            \
    static void within_##n(benchmark::State &state) {                                \
        uint64_t x = 1;                                                              \
        for (auto _ : state) {                                                       \
            DOSE(2000, x);                                                           \
            auto from = std::chrono::steady_clock::now();                            \
            DOSE(n, x);                                                              \
            auto to = std::chrono::steady_clock::now();                              \
            state.SetIterationTime(std::chrono::duration<double>(to - from).count()); \
        }                                                                            \
        benchmark::DoNotOptimize(x);                                                 \
    }                                                                                \
    BENCHMARK(within_##n)->UseManualTime()->Iterations(50000);

DOSES(5)
DOSES(20)
DOSES(50)
DOSES(200)
BENCHMARK_MAIN();
