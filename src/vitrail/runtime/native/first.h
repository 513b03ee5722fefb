// The last block where only the first token is read: q . (x U_k) = (q U_k^T) . x and A (x U_v) = (A x) U_v, so that no
// other token has a key or a value. What is added to every key adds the same to every score, which softmax ignores.
#pragma once
#include "attention.h"

// q U_k^T of one head: for each inner index the sum over the columns of the packed U_k, times what q has there.
static inline void lift(const Matrix& matrix, const float* query, float* to) {
    for (int inner = 0; inner < matrix.depth; inner++) to[inner] = 0;
    for (int column = 0; column < matrix.panels * PANEL; column += LANES) {
        long place = (long)(column / PANEL) * PANEL * matrix.depth + column % PANEL;
        Floats shares = load(query + column);
        if (matrix.bytes.empty()) {
            for (int inner = 0; inner < matrix.depth; inner++)
                to[inner] += sum(shares * load(&matrix.numbers[place + (long)inner * PANEL]));
            continue;
        }
        const int32_t* fours = (const int32_t*)matrix.bytes.data();  // four inner indices side by side
        shares *= load(&matrix.scales[column]);
        long panel = (long)(column / PANEL) * PANEL * matrix.depth / 4 + column % PANEL;
        for (int inner = 0; inner < matrix.depth; inner++) {
            Ints four = load(fours + panel + (long)(inner / 4) * PANEL);
            to[inner] += sum(shares * __builtin_convertvector((four << (24 - inner % 4 * 8)) >> 24, Floats));
        }
    }
}

inline void BlockPass::first_token() {
    int head_dim = shape.head_dim, width = (int)up(shape.dim, LANES);
    long stride = shape.stride(), wide = up(head_dim, PANEL);
    float *queries = own.queries.data(), *lifted = own.lifted.data();
    float *scores = own.scores.data(), *out = own.panel.data();
    norm(image, tokens, block.norm1_scale, block.norm1_shift);
    for (int head = 0; head < shape.heads; head++)
        for (int panel = 0; panel < block.queries[head].panels; panel++)
            linear(block.queries[head], panel, own.normed.data(), stride, own.bytes.data(), 1,
                   queries + head * wide + panel * PANEL, wide);
    for (int head = 0; head < shape.heads; head++) {
        lift(block.keys[head], queries + head * wide, lifted);
        for (int row = 0; row < tokens; row++) {
            Floats total = {};
            for (int column = 0; column < width; column += LANES)
                total += load(&own.normed[row * stride + column]) * load(lifted + column);
            scores[row] = sum(total);
        }
        float share = soften<false>(scores, tokens, shared.keys, 1.0f / std::sqrt((float)head_dim), nullptr, nullptr);
        for (int column = 0; column < width; column += LANES) {
            Floats total = {};
            for (int row = 0; row < tokens; row++) total += load(&own.normed[row * stride + column]) * scores[row];
            store(lifted + column, total * share);
        }
        if (shape.int8) quantise(lifted, width, shape.dim, 1, own.hidden_bytes.data());
        for (int panel = 0; panel < block.values[head].panels; panel++)
            linear(block.values[head], panel, lifted, width, own.hidden_bytes.data(), 1, out + panel * PANEL, wide);
        std::copy_n(out, head_dim, &own.mixed[head * head_dim]);
    }
    add_attended(1);
}
