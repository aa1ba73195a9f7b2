// Coroutines on two threads, each resumed in turn; prints what they did.
#include "undertick_coroutine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using steady = std::chrono::steady_clock;
static long long now() { return std::chrono::nanoseconds(steady::now().time_since_epoch()).count(); }

struct detached {
    struct promise_type {
        detached get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
};

// Handles that wait for a thread.
class pool {
public:
    void push(std::coroutine_handle<> handle, undertick::task *of) {
        if (of != nullptr) of->woken();
        std::lock_guard<std::mutex> held(lock_);
        ready_.push_back(handle);
        changed_.notify_one();
    }
    void stop() {
        std::lock_guard<std::mutex> held(lock_);
        is_over_ = true;
        changed_.notify_all();
    }
    void run() {
        for (;;) {
            std::unique_lock<std::mutex> held(lock_);
            changed_.wait(held, [&] { return !ready_.empty() || is_over_; });
            if (ready_.empty()) return;
            auto next = ready_.front();
            ready_.pop_front();
            held.unlock();
            next.resume();
        }
    }

private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::coroutine_handle<>> ready_;
    bool is_over_ = false;
};

static pool threads;
static std::atomic<long long> inside{0}, polls{0};
static std::atomic<int> left{0};

// Suspends, and is resumed by any thread of the pool. Some are awaitables with an operator.
struct again {
    undertick::task *of;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> handle) { threads.push(handle, of); }
    int await_resume() { return 7; }
};
struct by_operator {
    undertick::task *of;
    again operator co_await() const { return again{of}; }
};
struct at_once {
    bool await_ready() { return true; }
    void await_suspend(std::coroutine_handle<>) {}
    int await_resume() { return 1; }
};
struct not_at_all {
    bool await_ready() { return false; }
    bool await_suspend(std::coroutine_handle<>) { return false; }
    int await_resume() { return 2; }
};
struct fails {
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<>) { throw std::runtime_error("as it should"); }
    void await_resume() {}
};
struct never {
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<>) {}
    void await_resume() {}
};

static undertick::task_name request{"request"}, dropped{"dropped"}, odd{"odd"};

static void work(long long ns) {
    const long long start = now();
    while (now() < start + ns) {
    }
    inside += now() - start;
    polls++;
}

static detached serve(int n, int times) {
    {
        undertick::task task{request};
        for (int i = 0; i < times; i++) {
            work(1000 * (n % 5 + 1));
            int seven = i % 2 ? co_await task.await(again{&task}) : co_await task.await(by_operator{&task});
            if (seven != 7) std::terminate();
        }
        work(1000);
    }
    left--;
}

static detached drop() {
    undertick::task task{dropped};
    co_await task.await(never{});
}

static detached rare() {
    undertick::task task{odd};
    int sum = co_await task.await(at_once{});  // it is never suspended
    sum += co_await task.await(not_at_all{});  // it is resumed by itself
    if (sum != 3) std::terminate();
    try {
        co_await task.await(fails{});
    } catch (const std::runtime_error &) {
        sum++;
    }
    if (sum != 4) std::terminate();
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? std::atoi(argv[1]) : 200;
    const int times = argc > 2 ? std::atoi(argv[2]) : 10;
    std::vector<detached> all;
    left = n;
    for (int i = 0; i < n; i++) all.push_back(serve(i, times));
    std::vector<std::thread> workers;
    for (int i = 0; i < 2; i++) workers.emplace_back([] { threads.run(); });
    for (auto &one : all) threads.push(one.handle, nullptr);
    while (left > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    threads.stop();
    for (auto &worker : workers) worker.join();
    for (auto &one : all) one.handle.destroy();
    for (int i = 0; i < 5; i++) {
        auto one = drop();
        one.handle.resume();
        one.handle.destroy();
    }
    auto one = rare();
    one.handle.resume();
    one.handle.destroy();
    std::printf("%lld %lld\n", polls.load(), inside.load());
}
