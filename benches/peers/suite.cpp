// Twenty benchmarks as people write them, of 10 ns to 50 us. With -DPER_CENT=3 the one called
// BM_changed has 3 % more dependent instructions; nothing else differs.
#include "dose.h"
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#ifndef PER_CENT
#define PER_CENT 0
#endif

static void BM_changed(benchmark::State &state) {
    uint64_t x = 1;
    for (auto _ : state) {
        for (int i = 0; i < 100 + PER_CENT; i++) DOSE(5, x);
    }
    benchmark::DoNotOptimize(x);
}
BENCHMARK(BM_changed);

static uint32_t next(uint32_t &x) { return x = x * 1664525u + 1013904223u; }

static void BM_sort(benchmark::State &state) {
    std::vector<uint32_t> all(state.range(0));
    uint32_t x = 1;
    for (auto _ : state) {
        for (auto &one : all) one = next(x);
        std::sort(all.begin(), all.end());
        benchmark::DoNotOptimize(all.data());
    }
}
BENCHMARK(BM_sort)->Arg(8)->Arg(64)->Arg(512)->Arg(1024);

static void BM_copy(benchmark::State &state) {
    const std::string text(state.range(0), 'x');
    for (auto _ : state) {
        std::string copy(text);
        benchmark::DoNotOptimize(copy.data());
    }
}
BENCHMARK(BM_copy)->Arg(16)->Arg(256)->Arg(4096)->Arg(65536);

template <typename Map> static void BM_look_up(benchmark::State &state) {
    Map map;
    uint32_t x = 1;
    for (int64_t i = 0; i < state.range(0); i++) map[next(x) % 1000003] = x;
    for (auto _ : state) benchmark::DoNotOptimize(map.find(next(x) % 1000003));
}
BENCHMARK_TEMPLATE(BM_look_up, std::map<uint32_t, uint32_t>)->Arg(100)->Arg(10000);
BENCHMARK_TEMPLATE(BM_look_up, std::unordered_map<uint32_t, uint32_t>)->Arg(100)->Arg(10000);

static void BM_sum(benchmark::State &state) {
    std::vector<double> all(state.range(0), 1.5);
    for (auto _ : state) {
        double sum = 0;
        for (double one : all) sum += one;
        benchmark::DoNotOptimize(sum);
    }
}
BENCHMARK(BM_sum)->Arg(100)->Arg(1000)->Arg(10000);

static void BM_allocate(benchmark::State &state) {
    for (auto _ : state) {
        std::vector<char> all(state.range(0));
        benchmark::DoNotOptimize(all.data());
    }
}
BENCHMARK(BM_allocate)->Arg(64)->Arg(8192);

static void BM_find(benchmark::State &state) {
    std::string text(2000, 'a');
    text += "needle";
    for (auto _ : state) benchmark::DoNotOptimize(text.find("needle"));
}
BENCHMARK(BM_find);

static void BM_number(benchmark::State &state) {
    uint32_t x = 1;
    for (auto _ : state) benchmark::DoNotOptimize(std::to_string(next(x)));
}
BENCHMARK(BM_number);
BENCHMARK_MAIN();
