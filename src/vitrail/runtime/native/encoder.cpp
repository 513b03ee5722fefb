// The blocks of an encoder on a CPU, in float32 or int8: tokens in, tokens out, in the same memory.
//
// Threads take whole images; images that are left over are shared, each thread with its rows.
#include "embedding.h"
#include "first.h"
#include "spaces.h"

namespace {

struct Pass {
    const Encoder& encoder;
    Spaces& spaces;
    float* sequences;
    int tokens;
    bool first_only;  // whether the last block computes the first token of an image alone

    float* image(int number) const { return sequences + (long)number * tokens * encoder.shape.dim; }

    // Sends the rows from `first` to `end` of an image through all blocks, beside the other threads of a team.
    void rows(float* image, int first, int end, ImageSpace& shared, ThreadSpace& own, Meeting& meeting,
              int team) const {
        for (size_t layer = 0; layer < encoder.blocks.size(); layer++) {
            BlockPass pass{encoder.shape, encoder.blocks[layer], shared, own, image, tokens, first,
                           end,           (int)(layer % 2)};
            if (first_only && layer + 1 == encoder.blocks.size()) {  // one thread, when the others are through
                meeting.wait(team);
                if (first > 0) return;
                pass.end = 1;
                pass.first_token();
            } else {
                pass.project();
                meeting.wait(team);
                pass.attend();
            }
            pass.mlp();
        }
    }

    // Images that no thread has to share: the next free thread takes the next one.
    void whole(int images, int threads) const {
        std::atomic<int> next{0};
        in_threads(threads, [&](int thread, int) {
            Meeting alone;
            for (int number = next++; number < images; number = next++)
                rows(image(number), 0, tokens, spaces.shared[thread], spaces.own[thread], alone, 1);
        });
    }

    // One image, of which each thread has some rows; in int8 a multiple of four, for values are stored by fours.
    void together(int number, int threads) const {
        Meeting meeting;
        in_threads(threads, [&](int thread, int team) {
            int share = (int)up((tokens + team - 1) / team, encoder.shape.int8 ? 4 : 1);
            int first = std::min(tokens, thread * share), end = std::min(tokens, first + share);
            rows(image(number), first, end, spaces.shared[0], spaces.own[thread], meeting, team);
        });
    }
};

struct Program {
    Encoder encoder;
    SpaceStore store;
};

}  // namespace

extern "C" {

// The digest of this library, which is put here after it was compiled, and checked before it is loaded.
extern const char vitrail_digest[];
__attribute__((used)) const char vitrail_digest[] = VITRAIL_DIGEST;

// Whether this processor multiplies bytes four at a time.
int vitrail_int8() { return VITRAIL_INT8; }

void* vitrail_make(int dim, int depth, int heads, int mlp_dim, float eps, int gelu, int int8) try {
    return new Program{{{dim, heads, dim / heads, mlp_dim, gelu, int8, eps}, std::vector<Block>(depth)}, {}};
} catch (const std::exception&) {
    return nullptr;
}

void vitrail_free(void* made) { delete (Program*)made; }

// Packs one block, and returns whether there was memory. The rows of `qkv` are q, k and v, heads inside each; every
// weight is (out, in).
int vitrail_pack(void* made, int layer, const float* norm1_scale, const float* norm1_shift, const float* qkv,
                 const float* qkv_bias, const float* out, const float* out_bias, const float* norm2_scale,
                 const float* norm2_shift, const float* hidden, const float* hidden_bias, const float* mlp_out,
                 const float* mlp_out_bias) try {
    Encoder& encoder = ((Program*)made)->encoder;
    const Shape& shape = encoder.shape;
    Block& block = encoder.blocks[layer];
    int dim = shape.dim;
    block.norm1_scale.assign(norm1_scale, norm1_scale + dim), block.norm1_shift.assign(norm1_shift, norm1_shift + dim);
    block.norm2_scale.assign(norm2_scale, norm2_scale + dim), block.norm2_shift.assign(norm2_shift, norm2_shift + dim);
    std::vector<Matrix>* parts[3] = {&block.queries, &block.keys, &block.values};
    for (int part = 0; part < 3; part++) {
        parts[part]->resize(shape.heads);
        for (int head = 0; head < shape.heads; head++) {
            long row = (long)part * dim + head * shape.head_dim;
            (*parts[part])[head].pack(qkv + row * dim, qkv_bias + row, shape.head_dim, dim, shape.int8);
        }
    }
    block.out.pack(out, out_bias, dim, dim, shape.int8);
    block.hidden.pack(hidden, hidden_bias, shape.mlp_dim, dim, shape.int8);
    block.mlp_out.pack(mlp_out, mlp_out_bias, dim, shape.mlp_dim, shape.int8);
    return 1;
} catch (const std::exception&) {
    return 0;
}

// Sends `images` sequences of `tokens` tokens through all blocks, in place, and returns whether there was memory. With
// `first_only` the first token of each image is complete, and no other.
int vitrail_run(void* made, float* sequences, int images, int tokens, int threads, int first_only) try {
    Program& program = *(Program*)made;
    std::unique_ptr<Spaces> spaces = program.store.take(program.encoder.shape, tokens, threads);
    Pass pass{program.encoder, *spaces, sequences, tokens, first_only != 0};
    int whole = images - images % threads, team = std::min(threads, (tokens + TILE_ROWS - 1) / TILE_ROWS);
    if (whole) pass.whole(whole, threads);
    for (int number = whole; number < images; number++) pass.together(number, team);
    program.store.give_back(std::move(spaces));
    return 1;
} catch (const std::exception&) {
    return 0;
}

// The embedding of patches, whose weight is (out, channel * row * column); nothing without memory.
void* vitrail_embedding(const float* weight, const float* bias, int out, int channels, int height, int width) try {
    auto embedding = std::make_unique<Embedding>();
    embedding->channels = channels, embedding->height = height, embedding->width = width;
    embedding->matrix.pack(weight, bias, out, channels * height * width, false);
    return embedding.release();
} catch (const std::exception&) {
    return nullptr;
}

void vitrail_embedding_free(void* embedding) { delete (Embedding*)embedding; }

// Writes the token of each patch of images that have `rows` x `columns` of them, and returns whether there was memory.
int vitrail_embed(const void* embedding, const float* numbers, const long* strides, long count, long rows, long columns,
                  const float* positions, float* to, long stride, int threads) try {
    ((const Embedding*)embedding)->run({numbers, strides, count, rows, columns}, positions, to, stride, threads);
    return 1;
} catch (const std::exception&) {
    return 0;
}
}
