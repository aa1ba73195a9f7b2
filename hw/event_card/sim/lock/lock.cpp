// Eight masters contend for a test-and-set lock over one bus, and write begin and end of
// each lock and unlock to the event card. The card is the real one (Verilator); masters, bus
// and memory are simulated here.
//
//   lock SEED CYCLES STREAM             one run: the card's stream, and the truth as JSON on
//                                       standard output; STREAM "-": the truth alone
//   lock SEED CYCLES STREAM published   the same with the lock of the board of 1987
#include "../driven.hpp"

// What a lock takes, cycles.
struct Times {
    int masters;
    // From the store of a begin to the access to the lock, and from there to the store of the end.
    int before_lock, after_lock, before_release, after_release;
    // Between two attempts.
    int retry_least, retry_most;
    // While it is held: at least, and more on average; the same until it is wanted again.
    int held_least, held_more, outside_least, outside_more;
};
static constexpr Times SHORT = {MASTERS, 2, 2, 2, 2, 4, 16, 4, 40, 10, 900};

// NBSIR 87-3585, Section 4.2: six processes that want the lock all the time. A lock and an unlock that
// nobody else wants take 35 and 11 us of code beside a store of 6 us. How the lock's code is divided and
// for how long it is held is not published: both are fitted to the mean and the median of Table 3a.
static constexpr Times PUBLISHED = {6, 240, 110 + 60, 55, 55 + 60, 20, 40, 75, 0, 10, 0};

// Interrupts of a master, as Table 3b shows them: ten of its 3612 unlocks of 19 us are anomalies. A
// program's largest is printed; what its others take follows from its mean and median.
static constexpr int INTERRUPTS[] = {22480, 3100, 4360, 2900, 2900, 7070, 3320, 3320, 19740, 3640};
static constexpr double INTERRUPTS_PER_CYCLE = 10.0 / (3612 * 190);

enum class Step { Outside, BeginLock, TestAndSet, EndLock, BeginUnlock, Release, EndUnlock };

struct Master {
    Step step = Step::Outside;
    int delay = 0;  // cycles until it wants the bus
};

class Simulation : public Contest {
  public:
    Simulation(uint64_t seed, FILE* stream, bool is_published)
        : Contest(seed, stream), times_(is_published ? PUBLISHED : SHORT), is_published_(is_published) {
        for (auto& master : masters_) master.delay = random_.exponential(900);
        card_.reset();
    }

  private:
    Master masters_[MASTERS];
    const Times times_;
    const bool is_published_;

    void cycle() override {
        card_.idle();
        if (int number = bus(); number >= 0) done(masters_[number], number);
        for (auto& master : masters_) {
            if (master.delay > 0) master.delay--;
            if (is_published_ && random_.uniform() < INTERRUPTS_PER_CYCLE)
                master.delay += INTERRUPTS[random_.between(0, 9)];
        }
        card_.clock();
    }

    bool wants_bus(int number) const override {
        return number < times_.masters && masters_[number].delay == 0;
    }

    int access_cycles(int number) const override {
        switch (masters_[number].step) {
            case Step::TestAndSet: return 4;
            case Step::Release: return 2;
            default: return 1;
        }
    }

    void event(int number, Event event, Kind kind) {
        card_.store((kind + 1) << (EVENT_BITS + 2) | event << 2, 0, number);
        truth_.event(number, event, kind, card_.now, is_recording_);
    }

    // What a master wanted the bus for is done.
    void done(Master& master, int number) {
        switch (master.step) {
            case Step::Outside:
            case Step::BeginLock:
                event(number, LOCK, BEGIN);
                next(master, Step::TestAndSet, times_.before_lock);
                break;
            case Step::TestAndSet:
                if (is_locked_) {
                    next(master, Step::TestAndSet, random_.between(times_.retry_least, times_.retry_most));
                } else {
                    is_locked_ = true;
                    truth_.acquired += is_recording_;
                    next(master, Step::EndLock, times_.after_lock);
                }
                break;
            case Step::EndLock:
                event(number, LOCK, END);
                next(master, Step::BeginUnlock, held());
                break;
            case Step::BeginUnlock:
                event(number, UNLOCK, BEGIN);
                next(master, Step::Release, times_.before_release);
                break;
            case Step::Release:
                is_locked_ = false;
                next(master, Step::EndUnlock, times_.after_release);
                break;
            case Step::EndUnlock:
                event(number, UNLOCK, END);
                next(master, Step::BeginLock, times_.outside_least + random_.exponential(times_.outside_more));
                break;
        }
    }

    int held() {
        int cycles = times_.held_least + random_.exponential(times_.held_more);
        // An interrupt hits the holder of the lock now and then.
        if (!is_published_ && random_.uniform() < 0.002) cycles += random_.between(300, 900);
        return cycles;
    }

    static void next(Master& master, Step step, int delay) {
        master.step = step;
        master.delay = delay + 1;
    }
};

int main(int count, char** words) {
    bool is_published = count == 5 && !std::strcmp(words[4], "published");
    return simulate<Simulation>(is_published ? 4 : count, words, is_published);
}
