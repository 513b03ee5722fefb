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
    for (int inner = 0; inner < deep; inner += 4) {
        uint32_t four;
        memcpy(&four, row + inner, 4);
        panel[inner / 4 * PANEL] = (int32_t)(four ^ 0x80808080u);  // takes away the 128 that was added
    }
    Ints totals = {};
    int inner = 0, rest = 0;
    for (; inner + LANES <= deep; inner += LANES) totals += widened(load(row + inner));
    for (; inner < deep; inner++) rest += row[inner];
    *shift = -128 * (sum(totals) + rest - 128 * deep);
}

// Values as the right side of A v: the inner index is the token, four of them side by side for each column.
static inline void pack_value_bytes(const uint8_t* row, int token, int head_dim, long keys, int8_t* to) {
    int shift = token % 4 * 8;
    for (int column = 0; column < head_dim; column += LANES) {
        int32_t* fours = (int32_t*)(to + column / PANEL * PANEL * keys) + (long)(token / 4) * PANEL + column % PANEL;
        Ints values = widened(load(row + column)) ^ 0x80;  // takes away the 128
        store(fours, (load((const int32_t*)fours) & ~(0xff << shift)) | values << shift);
    }
}

inline void BlockPass::project() {
    int head_dim = shape.head_dim;
    long wide = up(head_dim, PANEL), keys = shared.keys;
    norm(image + (long)first * shape.dim, rows(), block.norm1_scale, block.norm1_shift);
    for (int head = 0; head < shape.heads; head++) {
        long place = head_place(head);
        for (int part : {QUERY, KEY, VALUE}) {
            const Matrix& matrix = (part == QUERY ? block.queries : part == KEY ? block.keys : block.values)[head];
            int count = rows();
            float* out = own.panel.data();
            if (!shape.int8 && part == QUERY) out = &shared.queries[(place * shared.rows + first) * wide];
            if (!shape.int8 && part == VALUE) out = &shared.values[(place * keys + first) * wide];
            for (int panel = 0; panel < matrix.panels; panel++)
                linear(matrix, panel, own.normed.data(), shape.stride(), own.bytes.data(), count, out + panel * PANEL,
                       wide);
            if (shape.int8)
                take_bytes(part, place, out, count);
            else if (part == KEY)
                pack_keys(out, wide, first, rows(), head_dim, &shared.keys_packed[place * keys * head_dim]);
        }
    }
}

// Stores queries, keys or values of a head as bytes, each row with a scale of its own.
inline void BlockPass::take_bytes(int part, long place, const float* from, int count) {
    int head_dim = shape.head_dim, deep = up(head_dim, 4);
    long wide = up(head_dim, PANEL), keys = shared.keys;
    for (int row = 0; row < count; row++, from += wide) {
        int token = first + row;
        if (part == QUERY) {
            uint8_t* to = &shared.query_bytes[(place * shared.rows + token) * deep];
            shared.query_scales[place * shared.rows + token] = quantise_row(from, head_dim, peak_of(from, head_dim), to);
            continue;
        }
        uint8_t* bytes = own.row.data();
        (part == KEY ? shared.key_scales : shared.value_scales)[place * keys + token] =
            quantise_row(from, head_dim, peak_of(from, head_dim), bytes);
        if (part == KEY)
            pack_key_bytes(bytes, token, deep, &shared.key_bytes[place * keys * deep],
                           &shared.key_shifts[place * keys + token]);
        else
            pack_value_bytes(bytes, token, head_dim, keys, &shared.value_bytes[place * keys * wide]);
    }
}

// e^(score - largest score), in place; returns one over their sum. In int8 they are then multiplied by the scales of the
// values (0 beyond the tokens) and become bytes, and the result by their scale, which is not a number where a value is
// not.
template <bool INT8>
static inline float soften(float* scores, int tokens, long keys, float scale, const float* value_scales, uint8_t* to) {
    for (long place = tokens; place < keys; place++) scores[place] = -1e30f;  // so that they add nothing to the sum
    Floats most = all(-1e30f), total = {};
    Ints peaks = {};
    for (long place = 0; place < keys; place += LANES) most = larger(most, load(scores + place));
    float top = largest(most);
    for (long place = 0; place < keys; place += LANES) {
        Floats weights = exponential((load(scores + place) - top) * scale);
        total += weights;
        if (INT8) weights *= load(value_scales + place), peaks = higher(peaks, magnitude_bits(weights));
        store(scores + place, weights);
    }
    if (!INT8) return 1.0f / sum(total);
    float peak = largest_magnitude(peaks), factor = peak > 0 ? 255.0f / peak : 0.0f;
    for (long place = 0; place < keys; place += LANES)
        store(to + place, __builtin_convertvector(rounded(load(scores + place) * factor), Bytes));
    return (peak / 255.0f + (peak - peak)) / sum(total);
}

inline void BlockPass::attend() {
    float scale = 1.0f / std::sqrt((float)shape.head_dim);
    for (int head = 0; head < shape.heads; head++) {
        long place = head_place(head);
        for (int start = first; start < end; start += TILE_ROWS) {
            int count = std::min(TILE_ROWS, end - start);
            score(place, start, count);
            for (int row = 0; row < count; row++) {
                float* scores = &own.scores[row * shared.keys];
                own.shares[row] = shape.int8
                                      ? soften<true>(scores, tokens, shared.keys, scale,
                                                     &shared.value_scales[place * shared.keys],
                                                     &own.weights[row * shared.keys])
                                      : soften<false>(scores, tokens, shared.keys, scale, nullptr, nullptr);
            }
            mix(head, start, count);
        }
    }
    add_attended(rows());
}

// The product of Eq. 8 and the residual of Eq. 2.
inline void BlockPass::add_attended(int count) {
    long stride = shape.stride();
    if (shape.int8) quantise(own.mixed.data(), stride, shape.dim, count, own.bytes.data());
    add_linear(block.out, own.mixed.data(), stride, own.bytes.data(), first, count);
}

// q k^T of some rows with all keys.
inline void BlockPass::score(long place, int start, int count) {
    int head_dim = shape.head_dim, deep = up(head_dim, 4);
    long wide = up(head_dim, PANEL), keys = shared.keys, row = place * shared.rows + start;
    for (long key = 0; key < keys; key += PANEL) {
        long column = place * keys + key;
        float* out = &own.scores[key];
        if (shape.int8) {
            Scales scales{&shared.query_scales[row], &shared.key_scales[column], &shared.key_shifts[column], nullptr};
            int8_product(&shared.query_bytes[row * deep], deep, count, &shared.key_bytes[column * deep], deep, scales,
                         out, keys);
        } else {
            float_product(&shared.queries[row * wide], wide, count, &shared.keys_packed[column * head_dim], PANEL,
                          head_dim, nullptr, out, keys);
        }
    }
}

// A v of these rows, put where the head has its place among the others.
inline void BlockPass::mix(int head, int start, int count) {
    int head_dim = shape.head_dim;
    long wide = up(head_dim, PANEL), keys = shared.keys, place = head_place(head) * keys * wide;
    alignas(LINE) float out[TILE_ROWS * PANEL];
    for (int column = 0; column < head_dim; column += PANEL) {
        if (shape.int8) {
            Scales scales{own.shares.data(), own.ones.data(), own.zeros.data(), nullptr};
            int8_product(own.weights.data(), keys, count, &shared.value_bytes[place + column * keys], up(tokens, 4),
                         scales, out, PANEL);
        } else {
            float_product(own.scores.data(), keys, count, &shared.values[place + column], wide, tokens, nullptr, out,
                          PANEL);
        }
        int width = std::min(PANEL, head_dim - column);
        for (int row = 0; row < count; row++) {
            float* to = &own.mixed[(start - first + row) * shape.stride() + head * head_dim + column];
            float factor = shape.int8 ? 1.0f : own.shares[row];
            for (int lane = 0; lane < width; lane++) to[lane] = out[row * PANEL + lane] * factor;
        }
    }
}
