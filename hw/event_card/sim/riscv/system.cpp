// Eight RISC-V processors (PicoRV32, simulated by Verilator like the card) run program.c:
// compiled code contends for a test-and-set lock over one bus, and writes to the event card.
// Memory of their own, the bus and the lock are simulated here.
//
//   system SEED CYCLES STREAM    as lock/lock.cpp; the program's image is the file
//                                program.bin beside this one
#include <string>

#include "../driven.hpp"
#include "Vpicorv32.h"

static constexpr uint32_t OWN_BYTES = 0x10000;
static constexpr uint32_t CARD = 0x40000000, LOCK_WORD = 0x50000000, SEED = 0x60000000;
static std::string image_path;

struct Processor {
    Vpicorv32 core;
    std::vector<uint32_t> own = std::vector<uint32_t>(OWN_BYTES / 4);
    bool is_on_bus() const { return core.mem_valid && core.mem_addr >= OWN_BYTES; }
};

class System : public Contest {
  public:
    System(uint64_t seed, FILE* stream) : Contest(seed, stream), processors_(MASTERS) {
        FILE* image = std::fopen(image_path.c_str(), "rb");
        if (!image || std::fread(image_, 1, sizeof image_, image) == 0) {
            std::perror(image_path.c_str());
            std::exit(1);
        }
        std::fclose(image);
        for (auto& processor : processors_) {
            std::memcpy(processor.own.data(), image_, sizeof image_);
            processor.core.resetn = 0;
        }
        card_.reset();
        for (int i = 0; i < 4; i++) cycle();
        for (auto& processor : processors_) processor.core.resetn = 1;
    }

  private:
    std::vector<Processor> processors_;
    uint8_t image_[OWN_BYTES / 2] = {};

    void cycle() override {
        card_.idle();
        for (auto& processor : processors_) processor.core.mem_ready = 0;
        if (int number = bus(); number >= 0) answer(processors_[number].core, number);
        for (auto& processor : processors_) {
            if (processor.core.mem_valid && !processor.is_on_bus()) access(processor);
            processor.core.clk = 0;
            processor.core.eval();
        }
        card_.clock();
        for (auto& processor : processors_) {
            processor.core.clk = 1;
            processor.core.eval();
            if (processor.core.trap) {
                std::fprintf(stderr, "a processor trapped\n");
                std::exit(1);
            }
        }
    }

    // Memory of its own answers at once.
    static void access(Processor& processor) {
        Vpicorv32& core = processor.core;
        uint32_t& word = processor.own[core.mem_addr / 4];
        core.mem_rdata = word;
        for (int byte = 0; byte < 4; byte++)
            if (core.mem_wstrb >> byte & 1) {
                uint32_t mask = 0xffu << 8 * byte;
                word = (word & ~mask) | (core.mem_wdata & mask);
            }
        core.mem_ready = 1;
    }

    bool wants_bus(int number) const override { return processors_[number].is_on_bus(); }

    int access_cycles(int number) const override {
        const Vpicorv32& core = processors_[number].core;
        return core.mem_addr != LOCK_WORD ? 1 : core.mem_wstrb ? 2 : 4;
    }

    // What a processor wanted the bus for is done.
    void answer(Vpicorv32& core, int number) {
        uint32_t address = core.mem_addr;
        core.mem_ready = 1;
        core.mem_rdata = 0;
        if (address == LOCK_WORD && core.mem_wstrb) {
            is_locked_ = false;
        } else if (address == LOCK_WORD) {
            core.mem_rdata = is_locked_;
            truth_.acquired += is_recording_ && !is_locked_;
            is_locked_ = true;
        } else if (address == SEED) {
            core.mem_rdata = uint32_t(random_.next());
        } else if (address >= CARD && address < LOCK_WORD && core.mem_wstrb == 15) {
            card_.store(address - CARD, core.mem_wdata, number);
            uint32_t slot = address - CARD, kind = (slot >> (EVENT_BITS + 2)) - 1;
            truth_.event(number, slot >> 2 & 0xffff, kind, card_.now, is_recording_);
        } else {
            std::fprintf(stderr, "processor %d: nothing is at %08x\n", number, address);
            std::exit(1);
        }
    }
};

int main(int count, char** words) {
    std::string own = words[0];
    image_path = own.substr(0, own.rfind('/') + 1) + "program.bin";
    return simulate<System>(count, words);
}
