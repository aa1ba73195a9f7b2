// What the simulations share: chance, the real card (Verilator) driven a cycle at a time, and
// what was truly how long, counted in cycles from the bus alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vevent_card.h"
#include "verilated.h"

// As the board of 1987: 10 MHz, a tick of one microsecond.
static constexpr double NS_PER_CYCLE = 100.0;
static constexpr uint32_t TICK = 10;
static constexpr int MASTERS = 8;
static constexpr int EVENT_BITS = 16;
static constexpr int WARM_UP = 20000;
enum Event : uint32_t { LOCK = 1, UNLOCK = 2 };
enum Kind : uint32_t { BEGIN = 1, END = 2 };

struct Random {
    uint64_t state;
    explicit Random(uint64_t seed) : state(seed * 0xd1342543de82ef95ull + 77) {}
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15ull;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ z >> 27) * 0x94d049bb133111ebull;
        return z ^ z >> 31;
    }
    double uniform() { return double(next() >> 11) / 9007199254740992.0; }
    int exponential(double mean) { return int(-mean * std::log(1.0 - uniform())); }
    int between(int lo, int hi) { return lo + int(uniform() * (hi - lo + 1)); }
};

// The card, its bus, and who reads its stream.
class Card {
  public:
    uint64_t now = 0;

    Card(Random& random, FILE* stream) : random_(random), stream_(stream) {}

    void reset() {
        card_.rst_n = 0;
        for (int i = 0; i < 4; i++) clock();
        card_.rst_n = 1;
        card_.s_axi_bready = 1;
        put(0x10, TICK);
        put(0x2c, 0);
    }

    void begin() { put(0x08, 1); }

    // And waits until all is in the stream.
    void end() {
        put(0x08, 0);
        for (int i = 0; i < 3000; i++) clock();
    }

    void idle() { card_.s_axi_awvalid = card_.s_axi_wvalid = 0; }

    // One store on the bus, in this cycle.
    void store(uint32_t address, uint32_t data, int master) {
        card_.s_axi_awvalid = card_.s_axi_wvalid = 1;
        card_.s_axi_awaddr = address;
        card_.s_axi_awid = uint8_t(master);
        card_.s_axi_awprot = 1;
        card_.s_axi_wdata = data;
        card_.s_axi_wstrb = 15;
    }

    void clock() {
        // The reader of the stream is away one cycle in four.
        card_.m_axis_tready = random_.next() % 4 != 0;
        card_.clk = 0;
        card_.eval();
        if (card_.m_axis_tvalid && card_.m_axis_tready && stream_)
            std::fwrite(&card_.m_axis_tdata[0], 16, 1, stream_);
        card_.clk = 1;
        card_.eval();
        now++;
    }

  private:
    Random& random_;
    FILE* stream_;
    Vevent_card card_;

    void put(uint32_t address, uint32_t data) {
        store(address, data, 0);
        clock();
        idle();
        for (int i = 0; i < 4; i++) clock();
    }
};

// True lengths of one kind of interval, cycles.
struct Lengths {
    std::vector<uint64_t> all;
    void json(const char* name) const {
        double sum = 0;
        uint64_t least = ~0ull, most = 0;
        for (uint64_t length : all) {
            sum += double(length);
            least = std::min(least, length);
            most = std::max(most, length);
        }
        uint64_t anomalies = 0;
        for (uint64_t length : all) anomalies += length > 10 * least;
        std::printf("\"%s\": {\"count\": %zu, \"mean_ns\": %.6f, \"min_ns\": %.1f, \"max_ns\": %.1f, \"anomalies\": %llu}",
                    name, all.size(), sum / double(all.size()) * NS_PER_CYCLE, double(least) * NS_PER_CYCLE,
                    double(most) * NS_PER_CYCLE, (unsigned long long)anomalies);
    }
};

// What was truly done while the card recorded.
class Truth {
  public:
    uint64_t acquired = 0;

    // A store to the card of a begin or an end; not counted if not `is_recorded`.
    void event(int master, uint32_t event, uint32_t kind, uint64_t now, bool is_recorded) {
        Open& open = open_[master];
        if (is_recorded && kind == END && open.is_seen)
            (event == LOCK ? lock_ : unlock_).all.push_back(now - open.began);
        open = {now, is_recorded && kind == BEGIN};
    }

    void json(uint64_t cycles) const {
        std::printf("{\"seconds\": %.9f, \"acquired\": %llu, ", double(cycles) * NS_PER_CYCLE * 1e-9,
                    (unsigned long long)acquired);
        lock_.json("lock");
        std::printf(", ");
        unlock_.json("unlock");
        std::printf("}\n");
    }

  private:
    struct Open {
        uint64_t began = 0;
        bool is_seen = false;
    };
    Open open_[MASTERS];
    Lengths lock_, unlock_;
};

// Eight masters, whatever they are, that share a bus, a lock and the card.
class Contest {
  public:
    virtual ~Contest() = default;

    void run(uint64_t cycles) {
        for (int i = 0; i < WARM_UP; i++) cycle();
        card_.begin();
        is_recording_ = true;
        for (uint64_t i = 0; i < cycles; i++) cycle();
        is_recording_ = false;
        card_.end();
        truth_.json(cycles);
    }

  protected:
    Random random_;
    Card card_;
    Truth truth_;
    bool is_locked_ = false, is_recording_ = false;

    Contest(uint64_t seed, FILE* stream) : random_(seed), card_(random_, stream) {}

    virtual void cycle() = 0;
    virtual bool wants_bus(int master) const = 0;
    // How long the master's access takes, cycles.
    virtual int access_cycles(int master) const = 0;

    // The bus goes to one of those that want it, by lot; who has done with it in this
    // cycle, or -1.
    int bus() {
        if (owner_ < 0) {
            int wanting[MASTERS], count = 0;
            for (int i = 0; i < MASTERS; i++)
                if (wants_bus(i)) wanting[count++] = i;
            if (count == 0) return -1;
            owner_ = wanting[random_.next() % uint64_t(count)];
            busy_ = access_cycles(owner_);
        }
        if (--busy_ > 0) return -1;
        int done = owner_;
        owner_ = -1;
        return done;
    }

  private:
    int owner_ = -1, busy_ = 0;
};

// SEED CYCLES STREAM: runs a simulation of so many cycles; STREAM "-": the truth alone.
template <class Simulation, class... Choice>
int simulate(int count, char** words, Choice... choice) {
    if (count != 4) {
        std::fprintf(stderr, "%s SEED CYCLES STREAM\n", words[0]);
        return 2;
    }
    FILE* stream = std::strcmp(words[3], "-") ? std::fopen(words[3], "wb") : nullptr;
    if (!stream && std::strcmp(words[3], "-")) {
        std::perror(words[3]);
        return 1;
    }
    Simulation simulation(std::strtoull(words[1], nullptr, 10), stream, choice...);
    simulation.run(std::strtoull(words[2], nullptr, 10));
    return stream && std::fclose(stream) ? 1 : 0;
}
