// Memory that passes compute in, stored for the next pass: the system clears fresh memory, in one thread.
#pragma once
#include <memory>
#include <mutex>

#include "block.h"

// For sequences of some tokens, and some threads.
struct Spaces {
    int tokens;
    std::vector<ImageSpace> shared;
    std::vector<ThreadSpace> own;

    Spaces(const Shape& shape, int tokens, int threads)
        : tokens(tokens), shared(threads, ImageSpace(shape, tokens)), own(threads, ThreadSpace(shape, tokens)) {}
};

class SpaceStore {
  public:
    std::unique_ptr<Spaces> take(const Shape& shape, int tokens, int threads) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            for (auto stored = stored_.begin(); stored != stored_.end(); stored++)
                if ((*stored)->tokens == tokens && (int)(*stored)->own.size() == threads) {
                    std::unique_ptr<Spaces> spaces = std::move(*stored);
                    stored_.erase(stored);
                    return spaces;
                }
        }
        return std::make_unique<Spaces>(shape, tokens, threads);
    }

    void give_back(std::unique_ptr<Spaces> spaces) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (stored_.size() == MOST) stored_.erase(stored_.begin());
        stored_.push_back(std::move(spaces));
    }

  private:
    static constexpr size_t MOST = 8;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Spaces>> stored_;
};
