/* undertick_coroutine.hpp - records C++20 coroutines as tasks: how long were they busy and idle?
 *
 *     #include "undertick_coroutine.hpp"
 *
 *     static undertick::task_name request{"request"};
 *
 *     my_task serve(connection c) {
 *         undertick::task task{request};
 *         auto line = co_await task.await(c.read());
 *         co_await task.await(c.write(answer(line)));
 *     }
 *
 *     $ undertick record -o my.ut -- ./server
 *     $ undertick tasks my.ut
 *
 * A task is recorded from the construction of the object in the coroutine's frame to its destruction. From one
 * await to the next it is polled, which is also a span of the thread that resumed it; spans in it must end before the
 * next await. Every co_await of the coroutine must go through task.await, and co_yield cannot be used: the poll would
 * not end. It is idle while it is suspended in `await`, and the coroutine may be resumed on any thread. An executor
 * that knows when a coroutine becomes ready says so: task.woken() makes it queued from then on.
 *
 * Without a session each call costs a branch. Licence: MIT or Apache-2.0, as you prefer. */
#ifndef UNDERTICK_COROUTINE_HPP
#define UNDERTICK_COROUTINE_HPP

#if !defined(__cpp_impl_coroutine)
#error "undertick_coroutine.hpp needs coroutines: C++20, with GCC 11 or Clang 14 or later"
#endif

#include <atomic>
#include <coroutine>
#include <string>
#include <type_traits>
#include <utility>

#include "undertick.h"

namespace undertick {

/* The event numbers of tasks of one name (docs/format.md, section 14): an object with static storage. */
class task_name {
public:
    explicit task_name(const char *name) : name_(name) {}
    task_name(const task_name &) = delete;
    task_name &operator=(const task_name &) = delete;

private:
    friend class task;

    struct events {
        uint16_t poll, created, polled, woken, done, cancelled;
    };

    /* Numbers are asked for when something is recorded: before that there may be no session. */
    const events &numbers() const {
        if (!is_known_.load(std::memory_order_acquire)) {
            const std::string name = name_;
            const auto number = [&](const char *end) { return ut_number((name + end).c_str()); };
            /* Threads that ask at the same time get the same numbers. */
            const events found = {number(""),           number(" task new"),  number(" task polled"),
                                  number(" task woken"), number(" task done"), number(" task cancelled")};
            while (is_written_.test_and_set(std::memory_order_acquire)) {
            }
            if (!is_known_.load(std::memory_order_relaxed)) {
                events_ = found;
                is_known_.store(true, std::memory_order_release);
            }
            is_written_.clear(std::memory_order_release);
        }
        return events_;
    }

    const char *name_;
    mutable events events_ = {};
    mutable std::atomic<bool> is_known_ = false;
    mutable std::atomic_flag is_written_ = ATOMIC_FLAG_INIT;
};

namespace detail {

template <class Awaitable> decltype(auto) awaiter_of(Awaitable &&awaitable) {
    if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); }) {
        return std::forward<Awaitable>(awaitable).operator co_await();
    } else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); }) {
        return operator co_await(std::forward<Awaitable>(awaitable));
    } else {
        return std::forward<Awaitable>(awaitable);
    }
}

} // namespace detail

/* A coroutine as a task, from this object's construction to its destruction. Lives in the coroutine's frame. */
class [[nodiscard]] task {
public:
    explicit task(const task_name &name) : name_(name) {
        if (ut_enabled()) {
            number_ = next_number();
            ut_event(name_.numbers().created, number_);
        }
        poll();
    }

    /* Ended while it runs; dropped while it is suspended. */
    ~task() {
        if (is_polled_) {
            pause();
            if (number_ != 0) {
                ut_event(name_.numbers().done, number_);
            }
        } else if (number_ != 0) {
            ut_event(name_.numbers().cancelled, number_);
        }
    }

    task(const task &) = delete;
    task &operator=(const task &) = delete;

    /* The coroutine is ready to be resumed; called by the thread that finds that out, before it is resumed. */
    void woken() const {
        if (number_ != 0) {
            ut_event(name_.numbers().woken, number_);
        }
    }

    /* What the coroutine awaits instead of `awaitable`. */
    template <class Awaitable> [[nodiscard]] auto await(Awaitable &&awaitable) {
        using inner = decltype(detail::awaiter_of(std::forward<Awaitable>(awaitable)));
        return awaiter<Awaitable, inner>(*this, std::forward<Awaitable>(awaitable));
    }

private:
    template <class Awaitable, class Inner> class awaiter {
    public:
        awaiter(task &of, Awaitable &&awaitable)
            : of_(of), awaitable_(std::forward<Awaitable>(awaitable)),
              inner_(detail::awaiter_of(std::forward<Awaitable>(awaitable_))) {}

        /* It refers to itself. */
        awaiter(const awaiter &) = delete;
        awaiter &operator=(const awaiter &) = delete;

        bool await_ready() { return static_cast<bool>(inner_.await_ready()); }

        template <class Promise> auto await_suspend(std::coroutine_handle<Promise> handle) {
            using result = decltype(inner_.await_suspend(handle));
            /* Before: as soon as it is suspended, another thread may resume or destroy the coroutine. */
            task &of = of_;
            of.pause();
#if defined(__cpp_exceptions)
            try {
#endif
                if constexpr (std::is_same_v<result, bool>) {
                    const bool is_suspended = inner_.await_suspend(handle);
                    if (!is_suspended) {
                        of.poll();
                    }
                    return is_suspended;
                } else {
                    return inner_.await_suspend(handle);
                }
#if defined(__cpp_exceptions)
            } catch (...) {
                of.poll();
                throw;
            }
#endif
        }

        decltype(auto) await_resume() {
            if (!of_.is_polled_) {
                of_.poll();
            }
            return inner_.await_resume();
        }

    private:
        task &of_;
        /* An awaitable that is not a reference is kept until the await has ended. */
        Awaitable awaitable_;
        Inner inner_;
    };

    static uint32_t next_number() {
        /* Libraries have counters of their own: they begin far from each other. */
        static std::atomic<uint32_t> next{static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&next) >> 4) * 2654435761u | 1};
        return next.fetch_add(2, std::memory_order_relaxed);
    }

    void poll() {
        is_polled_ = true;
        if (!ut_enabled()) {
            return;
        }
        if (number_ == 0) { /* a recorder attached after its creation */
            number_ = next_number();
        }
        const auto &numbers = name_.numbers();
        ut_event(numbers.polled, number_);
        ut_begin(numbers.poll);
        is_begun_ = true;
    }

    void pause() {
        is_polled_ = false;
        if (is_begun_) {
            is_begun_ = false;
            ut_end(name_.numbers().poll);
        }
    }

    const task_name &name_;
    /* An executor may call woken() while a recorder attaches. */
    std::atomic<uint32_t> number_ = 0;
    bool is_polled_ = false;
    bool is_begun_ = false;
};

} // namespace undertick

#endif
