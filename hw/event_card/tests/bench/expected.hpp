// What the bench drives and expects: numbers of README.md, randomness, time.
#pragma once
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstdint>
#include <string>

#ifndef DEPTH_LOG2
#error "say -DDEPTH_LOG2=... as the card was built"
#endif

static constexpr uint64_t DEPTH = 1ull << DEPTH_LOG2;
static constexpr int MASTERS = 8;
static constexpr int EVENT_BITS = 16;
static constexpr uint32_t CLOCK_HZ = 100000000;

static uint64_t cycles_in_all = 0;
static uint64_t seed_used = 0;

[[noreturn]] static void wrong(const char* what, uint64_t got, uint64_t expected) {
    std::printf("FAILED: %s: %" PRIx64 " instead of %" PRIx64 " (seed %" PRIu64 ", cycle %" PRIu64 ")\n",
                what, got, expected, seed_used, cycles_in_all);
    std::exit(1);
}
static void same(const char* what, uint64_t got, uint64_t expected) {
    if (got != expected) wrong(what, got, expected);
}

struct Random {
    uint64_t state;
    uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state * 0x2545f4914f6cdd1dull;
    }
    uint32_t below(uint32_t n) { return uint32_t((next() >> 32) * n >> 32); }
    bool percent(uint32_t p) { return below(100) < p; }
};

struct Options {
    uint64_t events = 100000, seed = 1;
    int policy = 0;  // 3: changed all the time
    uint32_t ready = 60, store = 80, answer = 90, tick = 1;
    bool resets = false, full_rate = false, few_gaps = false;
};

// The options that the words of the command line give; ends the program where they give none.
inline Options options_from(int count, char** words) {
    Options options;
    for (int i = 1; i < count; i++) {
        const std::string word = words[i];
        const auto number = [&] { return i + 1 < count ? std::strtoull(words[++i], nullptr, 10) : 0; };
        if (word == "--events") options.events = number();
        else if (word == "--seed") options.seed = number();
        else if (word == "--ready") options.ready = uint32_t(number());
        else if (word == "--store") options.store = uint32_t(number());
        else if (word == "--answer") options.answer = uint32_t(number());
        else if (word == "--tick") options.tick = uint32_t(number());
        else if (word == "--resets") options.resets = true;
        else if (word == "--full-rate") options.full_rate = true;
        else if (word == "--few-gaps") options.few_gaps = true;
        else if (word == "--policy" && i + 1 < count) {
            const std::string policy = words[++i];
            options.policy = policy == "drop" ? 0 : policy == "overwrite" ? 1 : policy == "back-pressure" ? 2 : 3;
        } else {
            std::fprintf(stderr, "%s: see the head of bench.cpp\n", words[i]);
            std::exit(2);
        }
    }
    return options;
}

enum Register : uint32_t {
    CONTROL = 0x08, POLICY = 0x0c, TICK = 0x10, MASK = 0x18, MASK_SET = 0x1c, MASK_CLEAR = 0x20,
    STALL_LIMIT = 0x24, LEVEL = 0x28, HIGH_WATER = 0x2c, TIME_LO = 0x30, TIME_HI = 0x34,
    WRITTEN_LO = 0x38, WRITTEN_HI = 0x3c, LOST_LO = 0x40, LOST_HI = 0x44,
};

struct Store {
    uint32_t address, data;
    uint8_t strobes, master;
    bool is_privileged, aw_done, w_done;
    uint64_t complete;  // cycle of the later handshake
};

// An event that was written, and whether it was lost when it came.
struct Written {
    uint64_t time;
    uint32_t payload;
    uint16_t event, last;
    bool is_lost;
};

// What the time counter shows, by README.md.
struct Time {
    uint64_t tick = 1, tick_done = ~0ull, preset = 0, preset_done = ~0ull;
    uint64_t base(uint64_t cycle) const {
        const uint64_t stands = tick_done == ~0ull ? ~0ull : tick_done + 3;
        if (cycle <= stands) return cycle == 0 ? 0 : cycle - 1;
        const uint64_t first = stands + 1 + tick;
        return stands - 1 + (cycle < first ? 0 : 1 + (cycle - first) / tick);
    }
    uint64_t shows(uint64_t cycle) const {
        if (preset_done == ~0ull || cycle < preset_done + 3) return base(cycle);
        return preset + base(cycle) - base(preset_done + 2);
    }
};
