// Vectors of the widest registers that the processor has, and the functions of numbers that an encoder needs.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
constexpr int LANES = 16, GROUPS = 4;
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
constexpr int LANES = 8, GROUPS = 2;
#else
constexpr int LANES = 4, GROUPS = 4;
#endif

// A tile of a product is 3 * GROUPS rows by two vectors: with two vectors of the right side and one number of the left,
// that fills the 32 (AVX-512, NEON) or 16 (AVX2) registers.
constexpr int TILE_ROWS = 3 * GROUPS, PANEL = 2 * LANES;

typedef float Floats __attribute__((vector_size(4 * LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * LANES)));
typedef uint8_t Bytes __attribute__((vector_size(LANES)));
typedef float LooseFloats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t LooseInts __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint8_t LooseBytes __attribute__((vector_size(LANES), aligned(1), may_alias));

static inline Floats load(const float* from) { return *(const LooseFloats*)from; }
static inline Ints load(const int32_t* from) { return *(const LooseInts*)from; }
static inline Bytes load(const uint8_t* from) { return *(const LooseBytes*)from; }
static inline void store(float* to, Floats values) { *(LooseFloats*)to = values; }
static inline void store(int32_t* to, Ints values) { *(LooseInts*)to = values; }
static inline void store(uint8_t* to, Bytes values) { *(LooseBytes*)to = values; }

static inline Floats all(float value) { return Floats{} + value; }
static inline Floats larger(Floats a, Floats b) { return a > b ? a : b; }
static inline Floats smaller(Floats a, Floats b) { return a < b ? a : b; }

// Numbers without their sign as whole ones, which have the same order: infinity, and what is not a number, are largest.
static inline Ints magnitude_bits(Floats a) { return (Ints)a & 0x7fffffff; }
static inline Floats magnitude(Floats a) { return (Floats)magnitude_bits(a); }
static inline Ints higher(Ints a, Ints b) { return a > b ? a : b; }

static inline Ints widened(Bytes bytes) {
#if defined(__AVX512F__)  // GCC takes the bytes out one by one
    return (Ints)_mm512_cvtepu8_epi32((__m128i)bytes);
#else
    return __builtin_convertvector(bytes, Ints);
#endif
}

// The lanes of a vector, turned by some places.
template <int BY, class Vector>
static inline Vector turned(Vector values) {
#if defined(__clang__)
    Vector out;
    for (int lane = 0; lane < LANES; lane++) out[lane] = values[(lane + BY) % LANES];
    return out;
#else
    Ints places;
    for (int lane = 0; lane < LANES; lane++) places[lane] = (lane + BY) % LANES;
    return __builtin_shuffle(values, places);
#endif
}

// Folds one half of the lanes onto the other until one is left; lane after lane, each would wait for the one before it.
template <int BY = LANES / 2, class Vector, class Both>
static inline auto folded(Vector values, Both both) {
    values = both(values, turned<BY>(values));
    if constexpr (BY > 1)
        return folded<BY / 2>(values, both);
    else
        return values[0];
}

template <class Vector>
static inline auto sum(Vector values) {
    return folded(values, [](Vector a, Vector b) { return a + b; });
}
static inline float largest(Floats values) { return folded(values, larger); }
static inline float largest_magnitude(Ints bits) {
    int32_t highest = folded(bits, higher);
    float peak;
    memcpy(&peak, &highest, sizeof peak);
    return peak;
}

// The nearest whole number: adding 1.5 * 2^23 leaves it in the low bits, for numbers below 2^22.
constexpr float ROUNDER = 12582912.0f;
static inline Ints rounded(Floats values) { return (Ints)(values + ROUNDER) - (Ints)all(ROUNDER); }

static inline Floats reciprocal(Floats values) {
#if defined(__AVX512F__)
    Floats guess = (Floats)_mm512_rcp14_ps((__m512)values);
#elif defined(__AVX2__) && defined(__FMA__)
    Floats guess = (Floats)_mm256_rcp_ps((__m256)values);
#else
    return 1.0f / values;
#endif
#if defined(__AVX2__)
    return guess * (2.0f - values * guess);  // one step of Newton's method: from 12 bits to 23
#endif
}

// e^x, to 2 units in the last place: 2^n e^r with n whole and |r| <= ln(2) / 2, where a polynomial is enough.
static inline Floats exponential(Floats x) {
    x = smaller(larger(x, all(-87.0f)), all(88.0f));
    Floats shifted = x * 1.44269504f + ROUNDER, n = shifted - ROUNDER;
    Floats r = x - n * 0.693145752f - n * 1.42860677e-6f;
    Floats p = all(1.0f / 720);
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return (Floats)((Ints)p + (((Ints)shifted - (Ints)all(ROUNDER)) << 23));
}

enum Gelu { TANH, ERF, QUICK };

// x sigmoid(slope), which GELU by tanh and CLIP's quick one are.
static inline Floats gated(Floats x, Floats slope) { return x * reciprocal(1.0f + exponential(-slope)); }

// GELU by tanh: x sigmoid(2u), u = sqrt(2 / pi) (x + 0.044715 x^3).
static inline Floats gelu_tanh(Floats x) { return gated(x, x * (0.044715f * x * x + 1.0f) * 1.595769122f); }

// GELU by erf, whose formula 7.1.26 of Abramowitz and Stegun is right to 1.5e-7.
static inline Floats gelu_erf(Floats x) {
    Floats z = magnitude(x) * 0.70710678f, t = reciprocal(1.0f + 0.3275911f * z);
    Floats p = all(1.061405429f);
    p = p * t - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    Floats tail = 0.5f * p * t * exponential(-z * z);  // half of 1 - erf(z)
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

template <int KIND>
static inline void gelu_rows(float* rows, int count, long stride, int width, int32_t* peaks) {
    for (int row = 0; row < count; row++, rows += stride) {
        Ints most = load(peaks + row * LANES);
        for (int column = 0; column < width; column += LANES) {
            Floats x = load(rows + column);
            x = KIND == ERF ? gelu_erf(x) : KIND == TANH ? gelu_tanh(x) : gated(x, 1.702f * x);
            store(rows + column, x), most = higher(most, magnitude_bits(x));
        }
        store(peaks + row * LANES, most);
    }
}

// GELU in place; the width is a multiple of LANES. `peaks` has LANES numbers for each row: the bits of the largest
// magnitudes that each lane has had.
static inline void gelu(float* rows, int count, long stride, int width, int kind, int32_t* peaks) {
    (kind == ERF ? gelu_rows<ERF> : kind == TANH ? gelu_rows<TANH> : gelu_rows<QUICK>)(rows, count, stride, width, peaks);
}
