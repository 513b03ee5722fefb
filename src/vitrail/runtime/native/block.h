// One block of the encoder (Eq. 2 and 3) for some rows of one image, by one thread of a team.
#pragma once
#include <cmath>

#include "team.h"
#include "weights.h"

constexpr int CHUNK = 96;  // about how many rows pass the MLP together: their hidden numbers stay in the second cache

// Numbers of one image on its way, which the threads of a team share; each writes its own rows.
struct ImageSpace {
    long rows, keys;  // tokens, padded for tiles and for panels
    Buffer<float> queries, keys_packed, values, query_scales, key_scales, value_scales;
    Buffer<uint8_t> query_bytes;
    Buffer<int8_t> key_bytes, value_bytes;
    Buffer<int32_t> key_shifts;

    // Two of everything: a fast thread may start the next block while a slow one reads the keys of this one.
    ImageSpace(const Shape& shape, int tokens) : rows(tokens + TILE_ROWS), keys(up(tokens, PANEL)) {
        long heads = 2 * shape.heads, wide = up(shape.head_dim, PANEL), deep = up(shape.head_dim, 4);
        if (!shape.int8) {
            queries.assign(heads * rows * wide, 0), keys_packed.assign(heads * keys * shape.head_dim, 0);
            values.assign(heads * keys * wide, 0);
            return;
        }
        query_bytes.assign(heads * rows * deep, 128), query_scales.assign(heads * rows, 0);
        key_bytes.assign(heads * keys * deep, 0), key_scales.assign(heads * keys, 0);
        key_shifts.assign(heads * keys, 0);
        value_bytes.assign(heads * keys * wide, 0), value_scales.assign(heads * keys, 0);
    }
};

// Numbers that only one thread uses.
struct ThreadSpace {
    Buffer<float> normed, panel, mixed, hidden, scores, scales, queries, lifted;
    Buffer<float> shares = Buffer<float>(TILE_ROWS);  // what is left to multiply each row of A v with
    Buffer<uint8_t> bytes, hidden_bytes, weights, row;
    Buffer<float> ones = Buffer<float>(PANEL, 1.0f);
    Buffer<int32_t> peaks, zeros = Buffer<int32_t>(PANEL, 0);

    ThreadSpace(const Shape& shape, int tokens) {
        long rows = tokens + TILE_ROWS, wide = up(shape.head_dim, PANEL), chunk = 2 * CHUNK;
        long keys = up(tokens, PANEL);
        normed.assign(rows * shape.stride(), 0), panel.assign(rows * std::max(wide, (long)PANEL), 0);
        mixed.assign(rows * shape.stride(), 0), hidden.assign(chunk * shape.hidden_stride(), 0);
        queries.assign(shape.heads * wide, 0), lifted.assign(up(shape.dim, PANEL), 0), peaks.assign(chunk * LANES, 0), scores.assign(TILE_ROWS * keys, 0), scales.assign(std::max(rows, chunk), 0);
        if (shape.int8) {
            bytes.assign(rows * up(shape.dim, 4), 0), hidden_bytes.assign(chunk * up(shape.mlp_dim, 4), 0);
            weights.assign(TILE_ROWS * keys, 0), row.assign(up(shape.head_dim, LANES), 0);
        }
    }
};

enum Part { QUERY, KEY, VALUE };

// A pass of one thread through a block: rows `first` to `end` of an image whose tokens are `image`.
struct BlockPass {
    const Shape& shape;
    const Block& block;
    ImageSpace& shared;
    ThreadSpace& own;
    float* image;
    int tokens, first, end, turn;  // `turn` says which of the two halves of the shared space this block uses

    int rows() const { return end - first; }
    long head_place(int head) const { return (long)turn * shape.heads + head; }

    void norm(const float* from, int count, const Buffer<float>& scale, const Buffer<float>& shift) {
        int dim = shape.dim;
        for (int row = 0; row < count; row++) {
            const float* in = from + (long)row * dim;
            float* out = own.normed.data() + row * shape.stride();
            Floats total = {}, squares = {};
            int column = 0;
            float rest = 0, rest_squares = 0;
            for (; column + LANES <= dim; column += LANES) total += load(in + column);
            for (int tail = column; tail < dim; tail++) rest += in[tail];
            float mean = (sum(total) + rest) / dim;
            for (column = 0; column + LANES <= dim; column += LANES) {
                Floats apart = load(in + column) - mean;
                squares += apart * apart;
            }
            for (int tail = column; tail < dim; tail++) rest_squares += (in[tail] - mean) * (in[tail] - mean);
            float deviation = 1.0f / std::sqrt((sum(squares) + rest_squares) / dim + shape.eps);
            for (column = 0; column + LANES <= dim; column += LANES)
                store(out + column,
                      (load(in + column) - mean) * deviation * load(&scale[column]) + load(&shift[column]));
            for (; column < dim; column++)
                out[column] = (in[column] - mean) * deviation * scale[column] + shift[column];
        }
        if (shape.int8) quantise(own.normed.data(), shape.stride(), dim, count, own.bytes.data());
    }

    void quantise(const float* from, long stride, int width, int count, uint8_t* to) {
        for (int row = 0; row < count; row++)
            own.scales[row] =
                quantise_row(from + row * stride, width, peak_of(from + row * stride, width), to + row * up(width, 4));
    }

    // One panel of a linear layer, of rows that were quantised last (int8) or of `from`.
    void linear(const Matrix& matrix, int panel, const float* from, long stride, const uint8_t* bytes, int count,
                float* out, long out_stride) {
        matrix.product(panel, {from, stride, bytes, own.scales.data()}, count, out, out_stride);
    }

    // A linear layer whose result is added to the image (the residuals of Eq. 2 and 3).
    void add_linear(const Matrix& matrix, const float* from, long stride, const uint8_t* bytes, int start, int count) {
        for (int panel = 0; panel < matrix.panels; panel++) {
            linear(matrix, panel, from, stride, bytes, count, own.panel.data(), PANEL);
            int column = panel * PANEL, width = std::min(PANEL, shape.dim - column);
            for (int row = 0; row < count; row++) {
                float* to = image + (long)(start + row) * shape.dim + column;
                const float* more = &own.panel[(long)row * PANEL];
                if (width < PANEL) {
                    for (int place = 0; place < width; place++) to[place] += more[place];
                } else {
                    for (int half = 0; half < PANEL; half += LANES)
                        store(to + half, load(to + half) + load(more + half));
                }
            }
        }
    }

    void mlp() {
        long width = shape.hidden_stride();
        int pieces = std::max(1, (rows() + CHUNK / 2) / CHUNK);
        int piece = (int)up((rows() + pieces - 1) / pieces, TILE_ROWS);
        for (int start = first; start < end; start += piece) {
            int count = std::min(piece, end - start);
            norm(image + (long)start * shape.dim, count, block.norm2_scale, block.norm2_shift);
            std::fill_n(own.peaks.begin(), count * LANES, 0);
            for (int panel = 0; panel < block.hidden.panels; panel++) {
                float* out = own.hidden.data() + panel * PANEL;
                linear(block.hidden, panel, own.normed.data(), shape.stride(), own.bytes.data(), count, out, width);
                gelu(out, count, width, PANEL, shape.gelu, own.peaks.data());
            }
            for (int row = 0; shape.int8 && row < count; row++)
                own.scales[row] = quantise_row(&own.hidden[row * width], shape.mlp_dim,
                                               largest_magnitude(load(&own.peaks[row * LANES])),
                                               &own.hidden_bytes[row * up(shape.mlp_dim, 4)]);
            add_linear(block.mlp_out, own.hidden.data(), width, own.hidden_bytes.data(), start, count);
        }
    }

    void project();      // q, k and v of the rows, for all heads (Eq. 5)
    void attend();       // A v of the rows (Eq. 6 and 7), then the product of Eq. 8 and the residual of Eq. 2
    void first_token();  // the same for the first token alone, of an image whose tokens are all there

  private:
    void take_bytes(int part, long place, const float* from, int count);
    void score(long place, int start, int count);
    void mix(int head, int start, int count);
    void add_attended(int count);
};
