// The weights of the blocks, packed for products: each linear layer is one or more matrices of panels.
#pragma once
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <new>
#include <vector>

#include "products.h"

constexpr size_t HUGE_BYTES = 1 << 21;  // of a huge page, which the system gives where it is asked to

// Memory that begins with a line of the cache: a vector that lies across two lines takes twice as long to load.
template <class Number>
struct Aligned {
    using value_type = Number;
    Aligned() = default;
    template <class Other>
    Aligned(const Aligned<Other>&) {}
    static std::align_val_t alignment(size_t count) {
        return std::align_val_t(count * sizeof(Number) < HUGE_BYTES ? LINE : HUGE_BYTES);
    }
    Number* allocate(size_t count) {
        void* memory = ::operator new(count * sizeof(Number), alignment(count));
#if defined(__linux__)
        if (count * sizeof(Number) >= HUGE_BYTES) madvise(memory, count * sizeof(Number), MADV_HUGEPAGE);
#endif
        return (Number*)memory;
    }
    void deallocate(Number* memory, size_t count) { ::operator delete(memory, alignment(count)); }
    bool operator==(const Aligned&) const { return true; }
    bool operator!=(const Aligned&) const { return false; }
};
template <class Number>
using Buffer = std::vector<Number, Aligned<Number>>;

static inline long up(long value, long multiple) { return (value + multiple - 1) / multiple * multiple; }

// The left side of a product: rows of numbers, of which int8 sees the bytes and the scale of each row.
struct Left {
    const float* numbers;
    long stride;
    const uint8_t* bytes;
    const float* scales;
};

// W^T of a linear layer (out x in), with its bias, in panels; int8 has a scale for each column.
struct Matrix {
    int depth = 0, columns = 0, panels = 0;
    Buffer<float> numbers, bias, scales;
    Buffer<int8_t> bytes;
    Buffer<int32_t> shifts;

    void pack(const float* weight, const float* offsets, int out, int in, bool int8) {
        depth = int8 ? up(in, 4) : in, columns = out, panels = up(out, PANEL) / PANEL;
        bias.assign(panels * PANEL, 0.0f);
        for (int column = 0; column < out; column++) bias[column] = offsets[column];
        if (int8)
            pack_bytes(weight, in);
        else
            pack_numbers(weight, in);
    }

    // PANEL columns of the layer's output for some rows.
    void product(int panel, const Left& left, int rows, float* out, long out_stride) const {
        int column = panel * PANEL;
        long place = (long)column * depth;
        if (bytes.empty()) {
            float_product(left.numbers, left.stride, rows, &numbers[place], PANEL, depth, &bias[column], out,
                          out_stride);
        } else {
            int8_product(left.bytes, depth, rows, &bytes[place], depth,
                         {left.scales, &scales[column], &shifts[column], &bias[column]}, out, out_stride);
        }
    }

  private:
    void pack_numbers(const float* weight, int in) {
        numbers.assign((long)panels * depth * PANEL, 0.0f);
        for (long column = 0; column < columns; column++)
            for (long inner = 0; inner < in; inner++)
                numbers[(column / PANEL * depth + inner) * PANEL + column % PANEL] = weight[column * in + inner];
    }

    void pack_bytes(const float* weight, int in) {
        bytes.assign((long)panels * depth * PANEL, 0);
        scales.assign(panels * PANEL, 0.0f), shifts.assign(panels * PANEL, 0);
        for (long column = 0; column < columns; column++) {
            const float* row = weight + column * in;
            float peak = 0;
            for (int inner = 0; inner < in; inner++) peak = std::max(peak, row[inner] < 0 ? -row[inner] : row[inner]);
            scales[column] = peak / 127.0f;
            for (long inner = 0; inner < in; inner++) {
                int value = peak > 0 ? rounded(all(row[inner] * (127.0f / peak)))[0] : 0;
                bytes[((column / PANEL * depth + inner / 4 * 4) * PANEL) + column % PANEL * 4 + inner % 4] = value;
                shifts[column] -= 128 * value;
            }
        }
    }
};

struct Block {
    Buffer<float> norm1_scale, norm1_shift, norm2_scale, norm2_shift;
    std::vector<Matrix> queries, keys, values;  // one for each head
    Matrix out, hidden, mlp_out;
};

struct Shape {
    int dim, heads, head_dim, mlp_dim, gelu, int8;
    float eps;

    // Numbers from one row to the next: not a power of two, so that the rows of a tile do not share a place in the
    // cache.
    long stride() const { return up(dim, PANEL) + 16; }
    long hidden_stride() const { return up(mlp_dim, PANEL) + 16; }
};

struct Encoder {
    Shape shape;
    std::vector<Block> blocks;
};
