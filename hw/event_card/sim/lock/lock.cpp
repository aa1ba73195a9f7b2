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

class Simulation {
  public:
    Simulation(uint64_t seed, FILE* stream) : random_(seed), card_(random_, stream) {
        for (auto& master : masters_) master.delay = random_.exponential(900);
        card_.reset();
    }

    void run(uint64_t cycles) {
        for (int i = 0; i < WARM_UP; i++) cycle();
        card_.begin();
        is_recording_ = true;
        for (uint64_t i = 0; i < cycles; i++) cycle();
        is_recording_ = false;
        card_.end();
        truth_.json(cycles);
    }

  private:
    Random random_;
    Card card_;
    Master masters_[MASTERS];
    bool is_locked_ = false, is_recording_ = false;
    int owner_ = -1, busy_ = 0;
    Truth truth_;

    void cycle() {
        card_.idle();
        if (owner_ < 0) grant();
        if (owner_ >= 0 && --busy_ == 0) {
            done(masters_[owner_], owner_);
            owner_ = -1;
        }
        for (auto& master : masters_)
            if (master.delay > 0) master.delay--;
        card_.clock();
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
