// Eight masters contend for a test-and-set lock over one bus, and write begin and end of
// each lock and unlock to the event card. The card is the real one (Verilator); masters, bus
// and memory are simulated here, and what was really long how long is counted here, in
// cycles, from the bus alone.
//
//   lock SEED CYCLES STREAM      one run: the card's stream, and the truth as JSON on
//                                standard output; STREAM "-": the truth alone
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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

enum class Step { Outside, BeginLock, TestAndSet, EndLock, Hold, BeginUnlock, Release, EndUnlock };

struct Master {
    Step step = Step::Outside;
    int delay = 0;  // cycles until it wants the bus
    uint64_t began = 0;
    bool saw_begin = false;
};

// True lengths of one kind of interval, cycles.
struct Truth {
    std::vector<uint64_t> lengths;
    void json(const char* name, bool is_last) const {
        double sum = 0;
        uint64_t least = ~0ull, most = 0;
        for (uint64_t length : lengths) {
            sum += double(length);
            least = std::min(least, length);
            most = std::max(most, length);
        }
        uint64_t anomalies = 0;
        for (uint64_t length : lengths) anomalies += length > 10 * least;
        std::printf("\"%s\": {\"count\": %zu, \"mean_ns\": %.6f, \"min_ns\": %.1f, \"max_ns\": %.1f, \"anomalies\": %llu}%s",
                    name, lengths.size(), sum / double(lengths.size()) * NS_PER_CYCLE, double(least) * NS_PER_CYCLE,
                    double(most) * NS_PER_CYCLE, (unsigned long long)anomalies, is_last ? "" : ", ");
    }
};

class Simulation {
  public:
    Simulation(uint64_t seed, FILE* stream) : random_{seed * 0xd1342543de82ef95ull + 77}, stream_(stream) {
        for (auto& master : masters_) master.delay = random_.exponential(900);
        card_.rst_n = 0;
        for (int i = 0; i < 4; i++) clock();
        card_.rst_n = 1;
        card_.s_axi_bready = 1;
        put(0x10, TICK, 0);
        put(0x2c, 0, 0);
    }

    void run(uint64_t cycles) {
        for (int i = 0; i < WARM_UP; i++) cycle();
        put(0x08, 1, 0);
        is_recording_ = true;
        for (uint64_t i = 0; i < cycles; i++) cycle();
        is_recording_ = false;
        put(0x08, 0, 0);
        for (int i = 0; i < 3000; i++) clock();
        std::printf("{\"seconds\": %.9f, \"acquired\": %llu, ", double(cycles) * NS_PER_CYCLE * 1e-9,
                    (unsigned long long)acquired_);
        lock_.json("lock", false);
        unlock_.json("unlock", true);
        std::printf("}\n");
    }

  private:
    Random random_;
    FILE* stream_;
    Vevent_card card_;
    Master masters_[MASTERS];
    bool is_locked_ = false, is_recording_ = false;
    int owner_ = -1, busy_ = 0;
    uint64_t now_ = 0, acquired_ = 0;
    Truth lock_, unlock_;

    void clock() {
        // The reader of the stream is away one cycle in four.
        card_.m_axis_tready = random_.next() % 4 != 0;
        card_.clk = 0;
        card_.eval();
        if (card_.m_axis_tvalid && card_.m_axis_tready && stream_)
            std::fwrite(&card_.m_axis_tdata[0], 16, 1, stream_);
        card_.clk = 1;
        card_.eval();
        now_++;
    }

    // One store on the bus, in this cycle.
    void store(uint32_t address, uint32_t data, int master) {
        card_.s_axi_awvalid = card_.s_axi_wvalid = 1;
        card_.s_axi_awaddr = address;
        card_.s_axi_awid = uint8_t(master);
        card_.s_axi_awprot = 1;
        card_.s_axi_wdata = data;
        card_.s_axi_wstrb = 15;
    }

    void put(uint32_t address, uint32_t data, int master) {
        store(address, data, master);
        clock();
        card_.s_axi_awvalid = card_.s_axi_wvalid = 0;
        for (int i = 0; i < 4; i++) clock();
    }

    void cycle() {
        card_.s_axi_awvalid = card_.s_axi_wvalid = 0;
        if (owner_ < 0) grant();
        if (owner_ >= 0 && --busy_ == 0) {
            done(masters_[owner_], owner_);
            owner_ = -1;
        }
        for (auto& master : masters_)
            if (master.delay > 0) master.delay--;
        clock();
    }

    // The bus goes to one of those that want it, by lot.
    void grant() {
        int wanting[MASTERS], count = 0;
        for (int i = 0; i < MASTERS; i++)
            if (masters_[i].delay == 0) wanting[count++] = i;
        if (count == 0) return;
        owner_ = wanting[random_.next() % uint64_t(count)];
        switch (masters_[owner_].step) {
            case Step::TestAndSet: busy_ = 4; break;
            case Step::Release: busy_ = 2; break;
            default: busy_ = 1;
        }
    }

    void event(Master& master, int number, Event event, Kind kind) {
        store((kind + 1) << (EVENT_BITS + 2) | event << 2, 0, number);
        if (!is_recording_) {
            master.saw_begin = false;
        } else if (kind == BEGIN) {
            master.began = now_;
            master.saw_begin = true;
        } else if (master.saw_begin) {
            (event == LOCK ? lock_ : unlock_).lengths.push_back(now_ - master.began);
            master.saw_begin = false;
        }
    }

    // What a master wanted the bus for is done.
    void done(Master& master, int number) {
        switch (master.step) {
            case Step::Outside:
            case Step::BeginLock:
                event(master, number, LOCK, BEGIN);
                next(master, Step::TestAndSet, 2);
                break;
            case Step::TestAndSet:
                if (is_locked_) {
                    next(master, Step::TestAndSet, random_.between(4, 16));
                } else {
                    is_locked_ = true;
                    acquired_ += is_recording_;
                    next(master, Step::EndLock, 2);
                }
                break;
            case Step::EndLock:
                event(master, number, LOCK, END);
                // Now and then an interrupt hits who holds the lock.
                next(master, Step::BeginUnlock,
                     4 + random_.exponential(40) + (random_.uniform() < 0.002 ? random_.between(300, 900) : 0));
                break;
            case Step::Hold:
            case Step::BeginUnlock:
                event(master, number, UNLOCK, BEGIN);
                next(master, Step::Release, 2);
                break;
            case Step::Release:
                is_locked_ = false;
                next(master, Step::EndUnlock, 2);
                break;
            case Step::EndUnlock:
                event(master, number, UNLOCK, END);
                next(master, Step::BeginLock, 10 + random_.exponential(900));
                break;
        }
    }

    static void next(Master& master, Step step, int delay) {
        master.step = step;
        master.delay = delay + 1;
    }
};

int main(int count, char** words) {
    if (count != 4) {
        std::fprintf(stderr, "lock SEED CYCLES STREAM\n");
        return 2;
    }
    FILE* stream = std::strcmp(words[3], "-") ? std::fopen(words[3], "wb") : nullptr;
    if (!stream && std::strcmp(words[3], "-")) {
        std::perror(words[3]);
        return 1;
    }
    Simulation simulation(std::strtoull(words[1], nullptr, 10), stream);
    simulation.run(std::strtoull(words[2], nullptr, 10));
    return stream && std::fclose(stream) ? 1 : 0;
}
