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

template <int ROWS>
__attribute__((noinline)) void float_tile(const float* left, long stride, const float* panel, long panel_stride,
                                          int depth, const float* bias, bool more, const char* ahead, float* out,
                                          long out_stride, int rows) {
    Floats sums[ROWS][2];
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; row++) {
        const float* from = more ? out + std::min(row, rows - 1) * out_stride : bias;
        sums[row][0] = from ? load(from) : Floats{};
        sums[row][1] = from ? load(from + LANES) : Floats{};
    }
    const float* lefts[ROWS / 3];
#pragma GCC unroll 4
    for (int group = 0; group < ROWS / 3; group++) lefts[group] = left + 3 * group * stride;
    for (int inner = 0; inner < depth; inner++, panel += panel_stride) {
        ask(ahead, inner);
        Floats first = load(panel), second = load(panel + LANES);
#pragma GCC unroll 4
        for (int group = 0; group < ROWS / 3; group++) {
            const float* from = lefts[group]++;
#pragma GCC unroll 3
            for (int row = 0; row < 3; row++) {
                sums[3 * group + row][0] += from[row * stride] * first;
                sums[3 * group + row][1] += from[row * stride] * second;
            }
        }
    }
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; row++) {
        if (row >= rows) break;
        store(out + row * out_stride, sums[row][0]);
        store(out + row * out_stride + LANES, sums[row][1]);
    }
}

template <int ROWS>
__attribute__((noinline)) void int8_tile(const uint8_t* left, long stride, const int8_t* panel, int depth,
                                         const Scales& scales, const char* ahead, int first_row, float* out,
                                         long out_stride, int rows) {
    Ints sums[ROWS][2], start[2] = {load(scales.shifts), load(scales.shifts + LANES)};
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; row++) sums[row][0] = start[0], sums[row][1] = start[1];
    const uint8_t* lefts[ROWS / 3];
#pragma GCC unroll 4
    for (int group = 0; group < ROWS / 3; group++) lefts[group] = left + 3 * group * stride;
    for (int inner = 0; inner < depth; inner += 4, panel += 4 * PANEL) {
        ask(ahead, inner / 4);
        Ints first = load((const int32_t*)panel), second = load((const int32_t*)panel + LANES);
#pragma GCC unroll 4
        for (int group = 0; group < ROWS / 3; group++) {
#pragma GCC unroll 3
            for (int row = 0; row < 3; row++) {
                int32_t four;
                memcpy(&four, lefts[group] + row * stride, 4);
                Ints values = Ints{} + four;
                sums[3 * group + row][0] = dot(sums[3 * group + row][0], values, first);
                sums[3 * group + row][1] = dot(sums[3 * group + row][1], values, second);
            }
            lefts[group] += 4;
        }
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        Floats columns = load(scales.columns + half * LANES);
        Floats bias = scales.bias ? load(scales.bias + half * LANES) : Floats{};
#pragma GCC unroll 12
        for (int row = 0; row < ROWS; row++) {
            if (row >= rows) break;
            Floats values = __builtin_convertvector(sums[row][half], Floats);
            store(out + row * out_stride + half * LANES, values * (columns * scales.rows[first_row + row]) + bias);
        }
    }
}

// Calls tile(ROWS, first row, rows) for all rows: most tiles have all of their rows, the last one as many as it needs.
template <class Tile>
static inline void each_tile(int rows, Tile tile) {
    int row = 0;
    for (; row + TILE_ROWS <= rows; row += TILE_ROWS) tile(std::integral_constant<int, TILE_ROWS>{}, row, TILE_ROWS);
    int rest = rows - row;
    if (rest > 9 && TILE_ROWS > 9)
        tile(std::integral_constant<int, TILE_ROWS>{}, row, rest);
    else if (rest > 6)
        tile(std::integral_constant<int, 9>{}, row, rest);
    else if (rest > 3)
        tile(std::integral_constant<int, 6>{}, row, rest);
    else if (rest > 0)
        tile(std::integral_constant<int, 3>{}, row, rest);
}

// out[:, PANEL columns] = left @ panel + bias, in float32.
static inline void float_product(const float* left, long stride, int rows, const float* panel, long panel_stride,
                                 int depth, const float* bias, float* out, long out_stride) {
    for (int start = 0; start < depth; start += SLICE) {
        int inner = std::min(SLICE, depth - start);
        each_tile(rows, [&](auto size, int row, int count) {
            const float* from = panel + start * panel_stride;
            const char* ahead = ahead_of(from + inner * panel_stride, row, inner);
            float_tile<size.value>(left + row * stride + start, stride, from, panel_stride, inner, bias, start > 0,
                                   ahead, out + row * out_stride, out_stride, count);
        });
    }
}

// The same in int8; depth is a multiple of four.
static inline void int8_product(const uint8_t* left, long stride, int rows, const int8_t* panel, int depth,
                                const Scales& scales, float* out, long out_stride) {
    each_tile(rows, [&](auto size, int row, int count) {
        const char* ahead = ahead_of(panel + (long)depth * PANEL, row, depth / 4);
        int8_tile<size.value>(left + row * stride, stride, panel, depth, scales, ahead, row, out + row * out_stride,
                              out_stride, count);
    });
}

// Writes a row as bytes with 128 added, padded with zeros to a multiple of four; returns its scale, which is not a
// number where one of the row is not, or is infinite: bytes cannot show it.
static inline float quantise_row(const float* from, int width, uint8_t* to) {
    Floats most = {}, nothing = {};
    float none = 0;
    int column = 0;
    for (; column + LANES <= width; column += LANES) {
        Floats values = load(from + column);
        most = larger(most, magnitude(values)), nothing += values * 0.0f;
    }
    float peak = largest(most);
    for (; column < width; column++) {
        peak = std::max(peak, from[column] < 0 ? -from[column] : from[column]);
        none += from[column] * 0.0f;
    }
    float factor = peak > 0 ? 127.0f / peak : 0.0f;
    for (column = 0; column + LANES <= width; column += LANES)
        store(to + column, __builtin_convertvector(rounded(load(from + column) * factor) + 128, Bytes));
    for (; column < width; column++) to[column] = (uint8_t)(128 + rounded(all(from[column] * factor))[0]);
    for (; column % 4; column++) to[column] = 128;
    return peak / 127.0f + none + sum(nothing);
}
