// Patches become tokens (Eq. 1), in float32: cut out of an image, multiplied with E, and their positions added.
#pragma once
#include "team.h"
#include "weights.h"

// Numbers of (image, channel, row, column), however they lie in memory.
struct Images {
    const float* numbers;
    const long* strides;
    long count, rows, columns;  // of patches in an image

    long patches() const { return count * rows * columns; }
};

struct Embedding {
    static constexpr long MOST_PATCHES = 8 * TILE_ROWS;  // that pass all panels together: they stay in the second cache
    Matrix matrix;
    int channels, height, width;  // of a patch

    // Writes the tokens of an image one after the other, those of two images `stride` numbers apart; each thread has
    // patches of its own. Without positions nothing is added.
    void run(const Images& images, const float* positions, float* to, long stride, int threads) const {
        long all = images.patches();
        threads = (int)std::min((long)threads, up(all, TILE_ROWS) / TILE_ROWS);
        std::vector<Buffer<float>> pixels(threads, Buffer<float>(MOST_PATCHES * row_stride()));
        std::vector<Buffer<float>> panels(threads, Buffer<float>(MOST_PATCHES * PANEL));
        in_threads(threads, [&](int thread, int team) {
            long share = up((all + team - 1) / team, TILE_ROWS), end = std::min(all, (thread + 1) * share);
            for (long first = thread * share; first < end; first += MOST_PATCHES) {
                int count = (int)std::min(MOST_PATCHES, end - first);
                for (int row = 0; row < count; row++) cut(images, first + row, &pixels[thread][row * row_stride()]);
                multiply(images, first, count, positions, to, stride, pixels[thread].data(), panels[thread].data());
            }
        });
    }

  private:
    long row_stride() const { return matrix.depth + 16; }  // not a power of two, as in `Shape`

    // Channel by channel, and in each the rows of the patch.
    void cut(const Images& images, long patch, float* to) const {
        long row = patch / images.columns, column = patch % images.columns;
        const long* strides = images.strides;
        const float* corner = images.numbers + row / images.rows * strides[0] +
                              row % images.rows * height * strides[2] + column * width * strides[3];
        for (int channel = 0; channel < channels; channel++)
            for (int line = 0; line < height; line++, to += width) {
                const float* from = corner + channel * strides[1] + line * strides[2];
                if (strides[3] == 1)
                    std::copy_n(from, width, to);
                else
                    for (int place = 0; place < width; place++) to[place] = from[place * strides[3]];
            }
    }

    void multiply(const Images& images, long first, int count, const float* positions, float* to, long stride,
                  const float* pixels, float* out) const {
        long each = images.rows * images.columns;
        for (int panel = 0; panel < matrix.panels; panel++) {
            matrix.product(panel, {pixels, row_stride(), nullptr, nullptr}, count, out, PANEL);
            int column = panel * PANEL, wide = std::min(PANEL, matrix.columns - column);
            for (int row = 0; row < count; row++) {
                long image = (first + row) / each, place = (first + row) % each * matrix.columns + column;
                const float *from = out + row * PANEL, *more = positions ? positions + place : nullptr;
                float* token = to + image * stride + place;
                for (int lane = 0; lane < wide; lane++) token[lane] = more ? from[lane] + more[lane] : from[lane];
            }
        }
    }
};
