// Threads that work on one thing, and meet on the way.
#pragma once
#if defined(__linux__)
#include <sched.h>
#endif
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

// Keeps a thread off the core of the one that started it: the system often starts it there, where it would wait for its
// turn, and moves it to an idle core only milliseconds later.
static inline void keep_apart(std::thread& other) {
#if defined(__linux__)
    cpu_set_t cores;
    int own = sched_getcpu();
    if (own < 0 || sched_getaffinity(0, sizeof cores, &cores) != 0) return;  // more cores than a set has, or none known
    CPU_CLR(own, &cores);
    if (CPU_COUNT(&cores) > 0) pthread_setaffinity_np(other.native_handle(), sizeof cores, &cores);
#else
    (void)other;
#endif
}

// Calls work(thread, team) in a team of `most` threads; of fewer, where the system starts no more.
template <class Work>
void in_threads(int most, Work work) {
    std::vector<std::thread> others;
    std::atomic<int> team{0};  // known when all have started
    others.reserve(most);
    try {
        for (int thread = 1; thread < most; thread++) {
            others.emplace_back([&, thread] {
                while (team == 0) std::this_thread::yield();
                work(thread, team);
            });
            keep_apart(others.back());
        }
    } catch (const std::system_error&) {
    }
    team = (int)others.size() + 1;
    work(0, team);
    for (std::thread& other : others) other.join();
}

// Where a team that shares an image waits: none passes before all have come.
class Meeting {
  public:
    void wait(int team) {
        if (team == 1) return;
        int round = round_.load(std::memory_order_acquire);
        if (here_.fetch_add(1, std::memory_order_acq_rel) + 1 == team) {
            here_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int turns = 0; round_.load(std::memory_order_acquire) == round; turns++)
            if (turns > 2000) std::this_thread::yield();  // another program may have the core of the one that is late
    }

  private:
    std::atomic<int> here_{0}, round_{0};
};
