// Products of matrices, a panel of PANEL columns at a time: in float32, and in int8 by the instructions of VNNI.
//
// The right side is packed in panels: for each inner index (float32), or each four of them (int8), PANEL columns side
// by side. The left side stays as it is, row by row.
#pragma once
#include <algorithm>

#include "vectors.h"

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#define VITRAIL_INT8 1
static inline Ints dot(Ints total, Ints left, Ints right) {
    return (Ints)_mm512_dpbusd_epi32((__m512i)total, (__m512i)left, (__m512i)right);
}
#elif defined(__AVXVNNI__)
#define VITRAIL_INT8 1
static inline Ints dot(Ints total, Ints left, Ints right) {
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)total, (__m256i)left, (__m256i)right);
}
#else
#define VITRAIL_INT8 0
static inline Ints dot(Ints total, Ints left, Ints right) {  // never called: int8 is refused without VNNI
    (void)left, (void)right;
    return total;
}
#endif

constexpr int LINE = 64;         // bytes of a line of the caches
constexpr int STEP = 4 * PANEL;  // bytes of a panel that a step reads: a row in float32, four rows in int8
constexpr int EVERY =
    8 * LINE / STEP;        // steps after which a tile asks for a line of the next panel: eight tiles get all
constexpr int SLICE = 768;  // inner indices at once in float32: their part of a panel stays in the second cache

// Where in the next panel a tile begins to ask for lines.
static inline const char* ahead_of(const void* next, int row, int steps) {
    return (const char*)next + row / TILE_ROWS % 8 * (long)(steps / EVERY) * LINE;
}

// Always inline: GCC takes a function that only asks for one without effect, and drops calls of it.
__attribute__((always_inline)) static inline void ask(const char* ahead, int step) {
    if (step % EVERY == 0) __builtin_prefetch(ahead + step / EVERY * LINE, 0, 2);
}

// How the sums of an int8 product become numbers: (sum - 128 * column total) * row scale * column scale + bias.
struct Scales {
    const float* rows;
    const float* columns;   // of this panel
    const int32_t* shifts;  // -128 times the total of each column, since the left side is stored with 128 added
    const float* bias;      // or nullptr
};

// Where the rows of a tile begin, one pointer for each three of them: an address can add one or two strides by itself.
template <int ROWS, class Number>
struct Rows {
    const Number* starts[(ROWS + 2) / 3];
    long stride;

    Rows(const Number* left, long stride) : stride(stride) {
#pragma GCC unroll 4
        for (int group = 0; group < (ROWS + 2) / 3; group++) starts[group] = left + 3 * group * stride;
    }
    const Number* operator[](int row) const { return starts[row / 3] + row % 3 * stride; }
    void move(int count) {
#pragma GCC unroll 4
        for (const Number*& start : starts) start += count;
    }
};

template <int ROWS>
__attribute__((noinline)) void float_tile(const float* left, long stride, const float* panel, long panel_stride,
                                          int depth, const float* bias, bool more, const char* ahead, float* out,
                                          long out_stride) {
    Floats sums[ROWS][2];
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; row++) {
        const float* from = more ? out + row * out_stride : bias;
        sums[row][0] = from ? load(from) : Floats{};
        sums[row][1] = from ? load(from + LANES) : Floats{};
    }
    Rows<ROWS, float> rows(left, stride);
    for (int inner = 0; inner < depth; inner++, panel += panel_stride, rows.move(1)) {
        ask(ahead, inner);
        Floats first = load(panel), second = load(panel + LANES);
#pragma GCC unroll 12
        for (int row = 0; row < ROWS; row++) {
            sums[row][0] += *rows[row] * first;
            sums[row][1] += *rows[row] * second;
        }
    }
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; row++) {
        store(out + row * out_stride, sums[row][0]);
        store(out + row * out_stride + LANES, sums[row][1]);
    }
}

template <int ROWS>
__attribute__((noinline)) void int8_tile(const uint8_t* left, long stride, const int8_t* panel, int depth,
                                         const Scales& scales, const char* ahead, int first_row, float* out,
                                         long out_stride) {
    Ints sums[ROWS][2], start[2] = {load(scales.shifts), load(scales.shifts + LANES)};
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; row++) sums[row][0] = start[0], sums[row][1] = start[1];
    Rows<ROWS, uint8_t> rows(left, stride);
    for (int inner = 0; inner < depth; inner += 4, panel += 4 * PANEL, rows.move(4)) {
        ask(ahead, inner / 4);
        Ints first = load((const int32_t*)panel), second = load((const int32_t*)panel + LANES);
#pragma GCC unroll 12
        for (int row = 0; row < ROWS; row++) {
            int32_t four;
            memcpy(&four, rows[row], 4);
            Ints values = Ints{} + four;
            sums[row][0] = dot(sums[row][0], values, first);
            sums[row][1] = dot(sums[row][1], values, second);
        }
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        Floats columns = load(scales.columns + half * LANES);
        Floats bias = scales.bias ? load(scales.bias + half * LANES) : Floats{};
#pragma GCC unroll 12
        for (int row = 0; row < ROWS; row++) {
            Floats values = __builtin_convertvector(sums[row][half], Floats);
            store(out + row * out_stride + half * LANES, values * (columns * scales.rows[first_row + row]) + bias);
        }
    }
}

// Calls tile(its rows, first row) for all rows: most tiles are of TILE_ROWS, the last one of what is left over.
template <int ROWS = TILE_ROWS, class Tile>
static inline void each_tile(int rows, Tile tile, int row = 0) {
    for (; row + ROWS <= rows; row += ROWS) tile(std::integral_constant<int, ROWS>{}, row);
    if constexpr (ROWS > 1)
        if (row < rows) each_tile<ROWS - 1>(rows, tile, row);
}

// out[:, PANEL columns] = left @ panel + bias, in float32.
static inline void float_product(const float* left, long stride, int rows, const float* panel, long panel_stride,
                                 int depth, const float* bias, float* out, long out_stride) {
    for (int start = 0; start < depth; start += SLICE) {
        int inner = std::min(SLICE, depth - start);
        each_tile(rows, [&](auto size, int row) {
            const float* from = panel + start * panel_stride;
            const char* ahead = ahead_of(from + inner * panel_stride, row, inner);
            float_tile<size.value>(left + row * stride + start, stride, from, panel_stride, inner, bias, start > 0,
                                   ahead, out + row * out_stride, out_stride);
        });
    }
}

// The same in int8; depth is a multiple of four.
static inline void int8_product(const uint8_t* left, long stride, int rows, const int8_t* panel, int depth,
                                const Scales& scales, float* out, long out_stride) {
    each_tile(rows, [&](auto size, int row) {
        const char* ahead = ahead_of(panel + (long)depth * PANEL, row, depth / 4);
        int8_tile<size.value>(left + row * stride, stride, panel, depth, scales, ahead, row, out + row * out_stride,
                              out_stride);
    });
}

// The largest magnitude in a row: infinite, or not a number, where one of them is.
static inline float peak_of(const float* from, int width) {
    Ints most = {};
    int column = 0;
    for (; column + LANES <= width; column += LANES) most = higher(most, magnitude_bits(load(from + column)));
    for (; column < width; column++) most = higher(most, magnitude_bits(all(from[column])));
    return largest_magnitude(most);
}

// Writes a row with this largest magnitude as bytes with 128 added, padded with zeros to a multiple of four; returns its
// scale, which is not a number where the peak is not, or is infinite: bytes cannot show it.
static inline float quantise_row(const float* from, int width, float peak, uint8_t* to) {
    float factor = peak > 0 ? 127.0f / peak : 0.0f;
    int column = 0;
    for (; column + LANES <= width; column += LANES)
        store(to + column, __builtin_convertvector(rounded(load(from + column) * factor) + 128, Bytes));
    for (; column < width; column++) to[column] = (uint8_t)(128 + rounded(all(from[column] * factor))[0]);
    for (; column % 4; column++) to[column] = 128;
    return peak / 127.0f + (peak - peak);
}
