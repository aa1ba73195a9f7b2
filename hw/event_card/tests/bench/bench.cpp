// Millions of random events through the event card, and every record of its
// stream compared with what was driven. Nothing that is expected comes from the
// card: the model below is written from README.md, and sees only the ports.
//
//   bench --events N --seed S [--policy drop|overwrite|back-pressure|mixed]
//         [--ready PERCENT] [--store PERCENT] [--answer PERCENT] [--resets]
//         [--tick N] [--full-rate] [--few-gaps]
//
// With --few-gaps the card was built so that its list of losses fills up. When it does cannot be
// known from outside, so which events are lost is taken from the stream; that they are told, in
// order, with the right count, is not. Policies are drop and overwrite then.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "Vevent_card.h"
#include "expected.hpp"
#include "verilated.h"

class Bench {
  public:
    Bench(const Options& options) : options_(options), random_{options.seed * 0x9e3779b97f4a7c15ull + 1} {}

    void run() {
        reset();
        while (written_in_all_ < options_.events) {
            if (options_.resets && random_.below(20000) == 0) {
                reset();
            }
            is_generating_ = true;
            cycle();
        }
        drain();
        const uint64_t told = streamed_ + gaps_;
        same("streamed + lost, by the stream", told, written_.size() + taken_off_);
        if (options_.few_gaps) read_now(LOST_LO, lost_count_ = gaps_);
        else read_now(HIGH_WATER, high_water_);
        lost_in_all_ += options_.few_gaps ? gaps_ : 0;
        std::printf("%" PRIu64 " events: %" PRIu64 " streamed, %" PRIu64 " lost, %" PRIu64
                    " of them overwritten, in %" PRIu64 " gaps; %" PRIu64 " cycles, %" PRIu64 " resets, %" PRIu64
                    " readings\n",
                    written_in_all_, streamed_in_all_, lost_in_all_, discarded_in_all_, gaps_told_, cycles_in_all,
                    resets_, readings_);
    }

    // One store each cycle, all masters together, while the stream takes one each cycle.
    void full_rate() {
        reset();
        const uint64_t first = cycle_;
        uint64_t refused = 0;
        while (written_in_all_ < options_.events) {
            is_generating_ = true;
            cycle();
            refused += !(aw_took_ && w_took_);
        }
        const uint64_t cycles = cycle_ - first;
        drain();
        same("events lost at one store a cycle", lost_in_all_, 0);
        same("cycles in which a store was refused", refused, 0);
        if (cycles > options_.events + 8) wrong("cycles for one store each", cycles, options_.events);
        std::printf("%" PRIu64 " events in %" PRIu64 " cycles, none refused, none lost\n", options_.events, cycles);
    }

  private:
    Options options_;
    Random random_;
    Vevent_card card_;
    uint64_t cycle_ = 0;  // since the reset
    Time time_;

    // Stores on their way, in order; the bus's side.
    std::deque<Store> stores_;
    size_t aw_ = 0, w_ = 0;  // the next whose address, whose data is given
    bool is_generating_ = false, aw_took_ = false, w_took_ = false;
    struct Answer { uint8_t master; bool is_error; };
    std::deque<Answer> answers_;

    // The card's registers.
    bool is_enabled_ = false, has_started_ = false;
    uint32_t mask_ = ~0u, policy_ = 0, stall_limit_ = 65535, stalled_ = 0, staged_ = 0;
    uint64_t level_ = 0, high_water_ = 0, level_before_ = 0;
    uint64_t written_count_ = 0, lost_count_ = 0;
    uint64_t clear_high_water_at_ = ~0ull;

    // Readings on their way.
    uint32_t latches_[MASTERS] = {};
    bool is_reading_ = false;
    uint32_t read_address_ = 0;
    uint8_t read_master_ = 0;
    struct Reading { uint32_t value; uint8_t master; };
    std::deque<Reading> expected_readings_;
    bool has_forced_read_ = false;

    // The stream.
    std::deque<Written> written_;
    uint64_t taken_off_ = 0;  // of `written_`, already compared
    uint64_t streamed_ = 0, gaps_ = 0, overwritten_told_ = 0, overwritten_ = 0;
    bool is_first_record_ = true;
    uint32_t ready_now_ = 60;
    uint64_t held_tdata_[2] = {};
    bool was_held_ = false;

    uint64_t written_in_all_ = 0, streamed_in_all_ = 0, lost_in_all_ = 0, discarded_in_all_ = 0;
    uint64_t gaps_told_ = 0, resets_ = 0, readings_ = 0;

    void reset() {
        card_.rst_n = 0;
        card_.s_axi_awvalid = card_.s_axi_wvalid = card_.s_axi_arvalid = 0;
        card_.s_axi_bready = card_.s_axi_rready = card_.m_axis_tready = 0;
        for (int i = 0; i < 3; i++) clock();
        card_.eval();
        same("tvalid after a reset", card_.m_axis_tvalid, 0);
        same("bvalid after a reset", card_.s_axi_bvalid, 0);
        same("rvalid after a reset", card_.s_axi_rvalid, 0);
        card_.rst_n = 1;
        cycle_ = 0;
        resets_++;
        time_ = Time{};
        stores_.clear();
        answers_.clear();
        written_.clear();
        expected_readings_.clear();
        aw_ = w_ = 0;
        is_reading_ = has_forced_read_ = is_enabled_ = has_started_ = was_held_ = false;
        is_first_record_ = true;
        mask_ = ~0u;
        policy_ = stalled_ = staged_ = 0;
        stall_limit_ = 65535;
        level_ = high_water_ = level_before_ = written_count_ = lost_count_ = 0;
        clear_high_water_at_ = ~0ull;
        taken_off_ = streamed_ = gaps_ = overwritten_told_ = overwritten_ = 0;
        std::memset(latches_, 0, sizeof latches_);
        is_generating_ = false;
        // Time starts a little before the lower word or all of it wraps.
        const uint64_t upper = random_.below(3) == 0 ? 0xffffffffull : random_.next() >> 32;
        if (options_.tick != 1) put(TICK, options_.tick);
        put(TIME_HI, uint32_t(upper));
        put(TIME_LO, 0xffffffffu - random_.below(3000));
        // Tick and time are fixed from the start on: these two must be refused.
        put(POLICY, uint32_t(options_.policy == 3 ? 0 : options_.policy));
        if (options_.policy == 2) put(STALL_LIMIT, random_.below(2) ? 0 : 1 + random_.below(40));
        put(CONTROL, 1);
        put(TICK, 7);
        put(TIME_LO, 7);
        put(POLICY, 3);
        put(0x48, 1);
        while (!stores_.empty()) cycle();
        for (int i = 0; i < 8; i++) cycle();
    }

    void put(uint32_t address, uint32_t data) {
        stores_.push_back({address, data, 15, uint8_t(random_.below(MASTERS)), random_.percent(50), false, false, 0});
    }

    void generate() {
        if (!options_.full_rate && random_.below(400) == 0) {
            // The writer of registers is one of the masters.
            switch (random_.below(options_.policy == 3 ? 8 : 6)) {
                case 0: return put(MASK, uint32_t(random_.next() >> 32));
                case 1: return put(MASK_SET, uint32_t(random_.next() >> 32));
                case 2: return put(MASK_CLEAR, uint32_t(random_.next() >> 32) & uint32_t(random_.next() >> 32));
                case 3: return put(MASK_SET, ~0u);
                case 4: return put(HIGH_WATER, 0);
                case 5: put(CONTROL, 0); return put(CONTROL, 1);
                case 6: return put(STALL_LIMIT, 1 + random_.below(60));
                default: return put(POLICY, random_.below(options_.few_gaps ? 2 : 3));
            }
        }
        const uint32_t kind = random_.below(7), event = random_.below(1u << EVENT_BITS);
        Store store{};
        store.address = (kind + 1) << (EVENT_BITS + 2) | event << 2 | random_.below(4);
        store.data = uint32_t(random_.next() >> 32);
        store.strobes = options_.full_rate || random_.below(50) ? 15 : uint8_t(random_.below(16));
        store.master = uint8_t(random_.below(MASTERS));
        store.is_privileged = random_.percent(30);
        stores_.push_back(store);
    }

    void clock() {
        card_.clk = 0;
        card_.eval();
        card_.clk = 1;
        card_.eval();
        cycles_in_all++;
    }

    void drive() {
        if (is_generating_ && stores_.size() < 8) generate();
        const bool is_full_rate = options_.full_rate;
        if (!card_.s_axi_awvalid && aw_ < stores_.size() && (is_full_rate || random_.percent(options_.store))) {
            const Store& store = stores_[aw_];
            card_.s_axi_awvalid = 1;
            card_.s_axi_awaddr = store.address;
            card_.s_axi_awid = store.master;
            // Only bit 0 counts.
            card_.s_axi_awprot = uint8_t(random_.below(4) << 1 | store.is_privileged);
        }
        if (!card_.s_axi_wvalid && w_ < stores_.size() && (is_full_rate || random_.percent(options_.store))) {
            card_.s_axi_wvalid = 1;
            card_.s_axi_wdata = stores_[w_].data;
            card_.s_axi_wstrb = stores_[w_].strobes;
        }
        card_.s_axi_bready = is_full_rate || random_.percent(options_.answer);
        card_.s_axi_rready = random_.percent(70);
        if (!is_reading_ && !has_forced_read_ && random_.percent(30)) {
            static const uint32_t readable[] = {TIME_LO, TIME_HI, TIME_LO, TIME_HI, WRITTEN_LO, WRITTEN_HI,
                                                MASK, POLICY, CONTROL, STALL_LIMIT, LOST_LO, LOST_HI, LEVEL};
            const uint32_t count = sizeof readable / sizeof *readable;
            is_reading_ = true;
            read_address_ = readable[random_.below(options_.few_gaps ? count - 3 : count)];
            read_master_ = uint8_t(random_.below(MASTERS));
        }
        card_.s_axi_arvalid = is_reading_;
        card_.s_axi_araddr = read_address_;
        card_.s_axi_arid = read_master_;
        // The reader of the stream pauses now and then for longer.
        if (random_.below(3000) == 0) ready_now_ = random_.below(3) == 0 ? 0 : options_.ready;
        if (ready_now_ == 0 && random_.below(1500) == 0) ready_now_ = options_.ready;
        card_.m_axis_tready = is_full_rate || random_.percent(ready_now_);
    }

    void cycle() {
        drive();
        card_.clk = 0;
        card_.eval();
        const uint64_t now = time_.shows(cycle_);
        const bool left = stream();
        const bool answer_was_waiting = card_.s_axi_bvalid && !card_.s_axi_bready;
        take_answer();
        read(now);
        decide(answer_was_waiting, left);
        aw_took_ = card_.s_axi_awvalid && card_.s_axi_awready;
        w_took_ = card_.s_axi_wvalid && card_.s_axi_wready;
        if (aw_took_) {
            stores_[aw_].aw_done = true;
            if (stores_[aw_].w_done || (w_took_ && w_ == aw_)) stores_[aw_].complete = cycle_;
            aw_++;
        }
        if (w_took_) {
            stores_[w_].w_done = true;
            if (stores_[w_].aw_done) stores_[w_].complete = cycle_;
            w_++;
        }
        card_.clk = 1;
        card_.eval();
        if (aw_took_) card_.s_axi_awvalid = 0;
        if (w_took_) card_.s_axi_wvalid = 0;
        cycle_++;
        cycles_in_all++;
    }

    // A response, which belongs to the oldest store that was done.
    void take_answer() {
        if (card_.s_axi_bvalid != !answers_.empty()) wrong("bvalid", card_.s_axi_bvalid, !answers_.empty());
        if (!card_.s_axi_bvalid || !card_.s_axi_bready) return;
        same("bid", card_.s_axi_bid, answers_.front().master);
        same("bresp", card_.s_axi_bresp, answers_.front().is_error ? 2 : 0);
        answers_.pop_front();
    }

    // The store that is due in this cycle, and what becomes of it.
    void decide(bool answer_was_waiting, bool left) {
        const bool is_due = !stores_.empty() && stores_[0].aw_done && stores_[0].w_done && !answer_was_waiting;
        bool is_error = false, waits = false;
        uint64_t level = level_ - left;
        const uint64_t before = level_;
        if (is_due) {
            const Store store = stores_[0];
            const uint32_t slot = store.address >> (EVENT_BITS + 2);
            if (slot == 0) {
                is_error = set(store);
            } else if (store.strobes && is_enabled_ && (mask_ >> (store.address >> (EVENT_BITS - 3) & 31) & 1)) {
                const bool is_full = level_ == DEPTH && !left && !options_.few_gaps;
                const bool too_long = stall_limit_ && stalled_ == stall_limit_;
                waits = is_full && policy_ == 2 && !too_long;
                if (!waits) {
                    const bool is_lost = is_full && policy_ != 1;
                    if (is_full && !is_lost) {
                        overwritten_++;
                        discarded_in_all_++;
                    } else if (!is_lost) {
                        level++;
                    }
                    record(store, slot - 1, is_lost);
                    if (is_full) {
                        lost_count_++;
                        lost_in_all_++;
                    }
                }
            }
            if (!waits) {
                answers_.push_back({store.master, is_error});
                stores_.pop_front();
                aw_--;
                w_--;
            }
        }
        stalled_ = waits ? stalled_ + 1 : 0;
        if (cycle_ == clear_high_water_at_) high_water_ = before;
        high_water_ = std::max(high_water_, before);
        level_ = options_.few_gaps ? 0 : level;
    }

    void record(const Store& store, uint32_t kind, bool is_lost) {
        uint32_t payload = 0;
        for (int i = 0; i < 4; i++)
            if (store.strobes >> i & 1) payload |= store.data & 0xffu << 8 * i;
        const uint16_t last = uint16_t(store.master | kind << 11 | (store.is_privileged ? 3 : 2) << 14);
        written_.push_back({time_.shows(store.complete), payload, uint16_t(store.address >> 2), last, is_lost});
        written_count_++;
        written_in_all_++;
    }

    // A store to a register; whether it is answered with an error.
    bool set(const Store& store) {
        const uint32_t data = store.data;
        if (store.strobes != 15) return true;
        switch (store.address & ~3u) {
            case CONTROL:
                is_enabled_ = data & 1;
                has_started_ |= is_enabled_;
                return false;
            case POLICY:
                if (data > 2) return true;
                policy_ = data;
                return false;
            case TICK:
                if (has_started_ || data == 0) return true;
                time_.tick = data;
                time_.tick_done = cycle_;
                return false;
            case MASK: mask_ = data; return false;
            case MASK_SET: mask_ |= data; return false;
            case MASK_CLEAR: mask_ &= ~data; return false;
            case STALL_LIMIT: stall_limit_ = data; return false;
            case HIGH_WATER: clear_high_water_at_ = cycle_ + 1; return false;
            case TIME_HI:
                if (has_started_) return true;
                staged_ = data;
                return false;
            case TIME_LO:
                if (has_started_) return true;
                time_.preset = uint64_t(staged_) << 32 | data;
                time_.preset_done = cycle_;
                return false;
            default: return true;
        }
    }

    void read(uint64_t now) {
        if (card_.s_axi_rvalid && expected_readings_.empty()) wrong("rvalid without a reading", 1, 0);
        if (card_.s_axi_rvalid && card_.s_axi_rready) {
            same("rid", card_.s_axi_rid, expected_readings_.front().master);
            same("rdata", card_.s_axi_rdata, expected_readings_.front().value);
            same("rresp", card_.s_axi_rresp, 0);
            expected_readings_.pop_front();
            readings_++;
        }
        if (!(card_.s_axi_arvalid && card_.s_axi_arready)) return;
        is_reading_ = false;
        uint32_t value = 0;
        uint32_t& latch = latches_[read_master_];
        const auto both = [&](uint64_t wide) {
            latch = uint32_t(wide >> 32);
            value = uint32_t(wide);
        };
        switch (read_address_) {
            case TIME_LO: both(now); break;
            case WRITTEN_LO: both(written_count_); break;
            case LOST_LO: both(lost_count_); break;
            case TIME_HI: case WRITTEN_HI: case LOST_HI: value = latch; break;
            case MASK: value = mask_; break;
            case POLICY: value = policy_; break;
            case CONTROL: value = is_enabled_; break;
            case STALL_LIMIT: value = stall_limit_; break;
            case LEVEL: value = uint32_t(level_); break;
            case HIGH_WATER: value = uint32_t(high_water_); break;
            default: wrong("a reading that the bench does not know", read_address_, 0);
        }
        expected_readings_.push_back({value, read_master_});
    }

    void read_now(uint32_t address, uint64_t expected) {
        while (is_reading_) cycle();
        has_forced_read_ = true;
        is_reading_ = true;
        read_address_ = address;
        while (is_reading_) cycle();
        same("a reading at the end", expected_readings_.back().value, expected);
        while (!expected_readings_.empty()) cycle();
        has_forced_read_ = false;
    }

    // A record of the stream; whether an event left.
    bool stream() {
        uint64_t value, rest;
        std::memcpy(&value, &card_.m_axis_tdata[0], 8);
        std::memcpy(&rest, &card_.m_axis_tdata[2], 8);
        if (was_held_) {
            same("tvalid that was not taken", card_.m_axis_tvalid, 1);
            same("record that was not taken", value, held_tdata_[0]);
            same("record that was not taken", rest, held_tdata_[1]);
        }
        was_held_ = card_.m_axis_tvalid && !card_.m_axis_tready;
        held_tdata_[0] = value;
        held_tdata_[1] = rest;
        if (!card_.m_axis_tvalid || !card_.m_axis_tready) return false;
        const uint32_t payload = uint32_t(rest);
        const uint16_t event = uint16_t(rest >> 32), last = uint16_t(rest >> 48);
        if (is_first_record_) {
            is_first_record_ = false;
            same("the card's own record", value, uint64_t(options_.tick) << 32 | CLOCK_HZ);
            same("the card's own record", rest, 4ull | 1ull << 32 | uint64_t(MASTERS | 7 << 11 | 2 << 14) << 48);
            return false;
        }
        if ((last >> 11 & 7) == 7) {
            same("payload of a gap", payload, 3);
            same("master of a gap", last & 2047, 2047);
            gap(value, event);
            return false;
        }
        if (written_.empty()) wrong("a record without a store", rest, 0);
        const Written& written = written_.front();
        if (written.is_lost) wrong("a record of a lost event", rest, 0);
        same("time", value, written.time);
        same("payload", payload, written.payload);
        same("event", event, written.event);
        same("master, kind and mode", last, written.last);
        written_.pop_front();
        taken_off_++;
        streamed_++;
        streamed_in_all_++;
        return true;
    }

    void gap(uint64_t count, uint16_t masters) {
        if (count == 0) wrong("an empty gap", 0, 1);
        uint16_t expected = 0;
        for (uint64_t i = 0; i < count; i++) {
            if (written_.empty()) wrong("a gap longer than what was written", count, i);
            if (!written_.front().is_lost && !options_.few_gaps) {
                overwritten_told_++;
                expected = 0xffff;
            }
            expected |= uint16_t(1u << (written_.front().last & 15));
            written_.pop_front();
        }
        taken_off_ += count;
        gaps_ += count;
        gaps_told_++;
        if (options_.few_gaps) same("masters of a gap", masters & expected, expected);
        else same("masters of a gap", masters, expected);
    }

    void drain() {
        is_generating_ = false;
        ready_now_ = 100;
        options_.ready = 100;
        while (!stores_.empty() || !answers_.empty()) cycle();
        for (uint64_t i = 0; i < 4 * DEPTH + 64; i++) {
            ready_now_ = 100;
            cycle();
        }
        same("events that neither the stream nor a gap told of", written_.size(), 0);
        same("told as overwritten", overwritten_told_, overwritten_);
        if (!options_.few_gaps) same("level", level_, 0);
    }
};

int main(int count, char** words) {
    const Options options = options_from(count, words);
    seed_used = options.seed;
    Bench bench(options);
    if (options.full_rate) bench.full_rate();
    else bench.run();
    return 0;
}
