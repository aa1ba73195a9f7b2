// Eight masters contend for a test-and-set lock over one bus, and write begin and end of
// each lock and unlock to the event card. The card is the real one (Verilator); masters, bus
// and memory are simulated here.
//
//   lock SEED CYCLES STREAM      one run: the card's stream, and the truth as JSON on
//                                standard output; STREAM "-": the truth alone
#include "../driven.hpp"

enum class Step { Outside, BeginLock, TestAndSet, EndLock, BeginUnlock, Release, EndUnlock };

struct Master {
    Step step = Step::Outside;
    int delay = 0;  // cycles until it wants the bus
};

class Simulation : public Contest {
  public:
    Simulation(uint64_t seed, FILE* stream) : Contest(seed, stream) {
        for (auto& master : masters_) master.delay = random_.exponential(900);
        card_.reset();
    }

  private:
    Master masters_[MASTERS];

    void cycle() override {
        card_.idle();
        if (int number = bus(); number >= 0) done(masters_[number], number);
        for (auto& master : masters_)
            if (master.delay > 0) master.delay--;
        card_.clock();
    }

    bool wants_bus(int number) const override { return masters_[number].delay == 0; }

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
                next(master, Step::TestAndSet, 2);
                break;
            case Step::TestAndSet:
                if (is_locked_) {
                    next(master, Step::TestAndSet, random_.between(4, 16));
                } else {
                    is_locked_ = true;
                    truth_.acquired += is_recording_;
                    next(master, Step::EndLock, 2);
                }
                break;
            case Step::EndLock:
                event(number, LOCK, END);
                // Now and then an interrupt hits who holds the lock.
                next(master, Step::BeginUnlock,
                     4 + random_.exponential(40) + (random_.uniform() < 0.002 ? random_.between(300, 900) : 0));
                break;
            case Step::BeginUnlock:
                event(number, UNLOCK, BEGIN);
                next(master, Step::Release, 2);
                break;
            case Step::Release:
                is_locked_ = false;
                next(master, Step::EndUnlock, 2);
                break;
            case Step::EndUnlock:
                event(number, UNLOCK, END);
                next(master, Step::BeginLock, 10 + random_.exponential(900));
                break;
        }
    }

    static void next(Master& master, Step step, int delay) {
        master.step = step;
        master.delay = delay + 1;
    }
};

int main(int count, char** words) { return simulate<Simulation>(count, words); }
