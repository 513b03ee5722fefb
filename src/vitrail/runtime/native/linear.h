// A linear layer outside the blocks, in float32: rows in, rows out.
#pragma once
#include "team.h"
#include "weights.h"

struct Linear {
    static constexpr long MOST_ROWS = 16 * TILE_ROWS;  // that pass all panels together: they stay in the second cache
    Matrix matrix;

    // Each thread takes rows of its own.
    void run(const float* from, long count, float* to, int threads) const {
        threads = (int)std::min((long)threads, up(count, TILE_ROWS) / TILE_ROWS);
        std::vector<Buffer<float>> panels(threads, Buffer<float>(MOST_ROWS * PANEL));
        in_threads(threads, [&](int thread, int team) {
            long share = up((count + team - 1) / team, TILE_ROWS), end = std::min(count, (thread + 1) * share);
            for (long row = thread * share; row < end; row += MOST_ROWS)
                some(from + row * matrix.depth, (int)std::min(MOST_ROWS, end - row), to + row * matrix.columns,
                     panels[thread].data());
        });
    }

  private:
    void some(const float* from, int count, float* to, float* out) const {
        for (int panel = 0; panel < matrix.panels; panel++) {
            matrix.product(panel, {from, matrix.depth, nullptr, nullptr}, count, out, PANEL);
            int column = panel * PANEL, width = std::min(PANEL, matrix.columns - column);
            for (int row = 0; row < count; row++)
                std::copy_n(out + row * PANEL, width, to + (long)row * matrix.columns + column);
        }
    }
};
