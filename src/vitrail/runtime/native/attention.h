// Attention: queries, keys and values of the rows of one thread, then every row of them against all keys (Eq. 5-8).
#pragma once
#include "block.h"

// Puts rows of keys side by side, as the right side of a product: for each inner index the keys of a panel.
static inline void pack_keys(const float* from, long stride, int first, int count, int head_dim, float* to) {
    for (int row = 0; row < count; row++) {
        int key = first + row;
        float* panel = to + (long)(key / PANEL) * PANEL * head_dim + key % PANEL;
        for (int inner = 0; inner < head_dim; inner++) panel[inner * PANEL] = from[row * stride + inner];
    }
}

static inline void pack_key_bytes(const uint8_t* row, int key, int deep, int8_t* to, int32_t* shift) {
    int32_t* panel = (int32_t*)(to + (long)(key / PANEL) * PANEL * deep) + key % PANEL;
    int total = 0;
    for (int inner = 0; inner < deep; inner += 4) {
        uint32_t four;
        memcpy(&four, row + inner, 4);
        four ^= 0x80808080u;  // takes away the 128 that was added
        panel[inner / 4 * PANEL] = (int32_t)four;
        for (int place = 0; place < 32; place += 8) total += (int8_t)(four >> place);
    }
    *shift = -128 * total;
}

// Values as the right side of A v: the inner index is the token, four of them side by side for each column.
static inline void pack_value_bytes(const uint8_t* row, int token, int head_dim, long keys, int8_t* to) {
    for (int column = 0; column < head_dim; column++) {
        int8_t* panel = to + (long)(column / PANEL) * PANEL * keys;
        panel[((long)(token / 4) * PANEL + column % PANEL) * 4 + token % 4] = (int8_t)(row[column] ^ 0x80);
    }
}

inline void BlockPass::project() {
    int head_dim = shape.head_dim, deep = up(head_dim, 4);
    long wide = up(head_dim, PANEL), keys = shared.keys;
    norm(image + (long)first * shape.dim, rows(), block.norm1_scale, block.norm1_shift);
    Buffer<uint8_t> row_bytes(up(deep, LANES));
    for (int head = 0; head < shape.heads; head++) {
        long place = head_place(head);
        for (int part = 0; part < 3; part++) {
            const Matrix& matrix = (part == 0 ? block.queries : part == 1 ? block.keys : block.values)[head];
            float* out = own.panel.data();
            if (!shape.int8 && part == 0) out = &shared.queries[(place * shared.rows + first) * wide];
            if (!shape.int8 && part == 2) out = &shared.values[(place * keys + first) * wide];
            for (int panel = 0; panel < matrix.panels; panel++)
                linear(matrix, panel, own.normed.data(), shape.stride(), own.bytes.data(), rows(), out + panel * PANEL,
                       wide);
            if (!shape.int8 && part == 1)
                pack_keys(out, wide, first, rows(), head_dim, &shared.keys_packed[place * keys * head_dim]);
            for (int row = 0; shape.int8 && row < rows(); row++) {
                int token = first + row;
                if (part == 0) {
                    uint8_t* to = &shared.query_bytes[(place * shared.rows + token) * deep];
                    shared.query_scales[place * shared.rows + token] = quantise_row(out + row * wide, head_dim, to);
                    continue;
                }
                float scale = quantise_row(out + row * wide, head_dim, row_bytes.data());
                if (part == 1) {
                    shared.key_scales[place * keys + token] = scale;
                    pack_key_bytes(row_bytes.data(), token, deep, &shared.key_bytes[place * keys * deep],
                                   &shared.key_shifts[place * keys + token]);
                } else {
                    shared.value_scales[place * keys + token] = scale;
                    pack_value_bytes(row_bytes.data(), token, head_dim, keys, &shared.value_bytes[place * keys * wide]);
                }
            }
        }
    }
}

// e^(score - largest score), in place; returns one over their sum. Numbers beyond the tokens become 0.
static inline float soften(float* scores, int tokens, long keys, float scale) {
    for (long place = tokens; place < keys; place++) scores[place] = -1e30f;
    Floats most = all(-1e30f), total = {};
    for (long place = 0; place < keys; place += LANES) most = larger(most, load(scores + place));
    float peak = largest(most);
    for (long place = 0; place < keys; place += LANES) {
        Floats weights = exponential((load(scores + place) - peak) * scale);
        store(scores + place, weights);
    }
    for (long place = tokens; place < keys; place++) scores[place] = 0;
    for (long place = 0; place < keys; place += LANES) total += load(scores + place);
    return 1.0f / sum(total);
}

// Weights times the scales of the values, as bytes; returns their scale, which is not a number where a value is not.
static inline float quantise_weights(const float* weights, const float* value_scales, long keys, uint8_t* to) {
    Floats most = all(1e-30f), nothing = {};
    for (long key = 0; key < keys; key += LANES) {
        Floats scaled = load(weights + key) * load(value_scales + key);
        most = larger(most, scaled), nothing += scaled * 0.0f;
    }
    float peak = largest(most), factor = 255.0f / peak;
    for (long key = 0; key < keys; key += LANES) {
        Floats scaled = load(weights + key) * load(value_scales + key) * factor;
        store(to + key, __builtin_convertvector(rounded(scaled), Bytes));
    }
    return peak / 255.0f + sum(nothing);
}

inline void BlockPass::attend() {
    int head_dim = shape.head_dim, deep = up(head_dim, 4);
    long wide = up(head_dim, PANEL), keys = shared.keys, mixed_width = shape.stride();
    float scale = 1.0f / std::sqrt((float)head_dim);
    static const Buffer<float> ones(PANEL, 1.0f);
    static const Buffer<int32_t> zeros(PANEL, 0);
    alignas(LINE) float out[TILE_ROWS * PANEL];
    float row_scales[TILE_ROWS], sums[TILE_ROWS];
    for (int head = 0; head < shape.heads; head++) {
        long place = head_place(head);
        for (int start = first; start < end; start += TILE_ROWS) {
            int count = std::min(TILE_ROWS, end - start);
            float* scores = own.scores.data();
            for (long key = 0; key < keys; key += PANEL) {
                if (shape.int8) {
                    Scales scales{&shared.query_scales[place * shared.rows + start],
                                  &shared.key_scales[place * keys + key], &shared.key_shifts[place * keys + key],
                                  nullptr};
                    int8_product(&shared.query_bytes[(place * shared.rows + start) * deep], deep, count,
                                 &shared.key_bytes[(place * keys + key) * deep], deep, scales, scores + key, keys);
                } else {
                    float_product(&shared.queries[(place * shared.rows + start) * wide], wide, count,
                                  &shared.keys_packed[(place * keys + key) * head_dim], PANEL, head_dim, nullptr,
                                  scores + key, keys);
                }
            }
            for (int row = 0; row < count; row++) {
                sums[row] = soften(scores + row * keys, tokens, keys, scale);
                if (shape.int8)
                    row_scales[row] =
                        sums[row] * quantise_weights(scores + row * keys, &shared.value_scales[place * keys], keys,
                                                     &own.weights[row * keys]);
            }
            for (int column = 0; column < head_dim; column += PANEL) {
                if (shape.int8) {
                    Scales scales{row_scales, ones.data(), zeros.data(), nullptr};
                    int8_product(own.weights.data(), keys, count, &shared.value_bytes[(place * wide + column) * keys],
                                 up(tokens, 4), scales, out, PANEL);
                } else {
                    float_product(scores, keys, count, &shared.values[place * keys * wide + column], wide, tokens,
                                  nullptr, out, PANEL);
                }
                int width = std::min(PANEL, head_dim - column);
                for (int row = 0; row < count; row++) {
                    float* to = &own.mixed[(start - first + row) * mixed_width + head * head_dim + column];
                    float factor = shape.int8 ? 1.0f : sums[row];
                    for (int lane = 0; lane < width; lane++) to[lane] = out[row * PANEL + lane] * factor;
                }
            }
        }
    }
    if (shape.int8) quantise(own.mixed.data(), mixed_width, shape.dim, rows(), own.bytes.data());
    add_linear(block.out, own.mixed.data(), mixed_width, own.bytes.data(), first, rows());
}
