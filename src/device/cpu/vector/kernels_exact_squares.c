/* Exact sums of squares (base/exact_sum.h) of long vectors, as fast as memory gives them.
 *
 * A square of a float is exact in double. Rounded to a multiple of a unit u by adding it to
 * 1.5 x 2^52 u, it leaves a rest that is exact as well, and a sum that begins at 1.5 x 2^52 u adds
 * such multiples without rounding, as long as they are less than 2^51. So the squares of a piece
 * are added in two or three levels, each with a smaller unit, that take what the level before left.
 * Units follow from the largest number of the piece; the smallest one says how many levels leave
 * nothing. A piece for which three are too few, or with numbers that are subnormal or not finite,
 * is added number by number. */
#include "base/checked.h"
#include "base/exact_sum.h"
#include "device/cpu/kernels_sets.h"

#if defined(KERNEL_ISA_avx512) || defined(KERNEL_ISA_avx2)
#include <immintrin.h>
#endif

/* WIDEN: numbers from p on, as double. Compilers make two halves of a vector of eight.
 * SQUARE_PLUS: v^2 + c, where the square is exact in any case. */
#if defined(KERNEL_ISA_avx512)
enum { WIDE = 8 };
#define WIDEN(p) (wide) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define SQUARE_PLUS(v, c) (wide) _mm512_fmadd_pd((__m512d)(v), (__m512d)(v), (__m512d)(c))
#elif defined(KERNEL_ISA_avx2)
enum { WIDE = 4 };
#define WIDEN(p) (wide) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define SQUARE_PLUS(v, c) (wide) _mm256_fmadd_pd((__m256d)(v), (__m256d)(v), (__m256d)(c))
#else
enum { WIDE = 2 };
#define WIDEN(p) ((wide){(double)(p)[0], (double)(p)[1]})
#define SQUARE_PLUS(v, c) ((v) * (v) + (c))
#endif
typedef double wide __attribute__((vector_size(WIDE * sizeof(double))));

enum {
    SUMS = 4, /* of a level: additions of one follow each other */
    STEP = SUMS * WIDE,
    SQUARES_PIECE = 1024,
    LEVELS = 3,
    LINE = 16, /* numbers of fp32 */
    AHEAD = SQUARES_PIECE * 4
};

/* A sum takes SQUARES_PIECE / STEP numbers, 2^7 at most, and their sum is to be less than 2^51
 * units. So a level's unit is 2^44 times smaller than the bound of its numbers. */
enum { HEADROOM = 44 };
_Static_assert((int)SQUARES_PIECE / (int)STEP <= 1 << (51 - HEADROOM), "room of a sum");

typedef struct exponents {
    uint32_t largest, smallest; /* bits of the size of a number; the smallest one that is not 0 */
} exponents;

static exponents find_exponents(const float *x) {
    uint32_t largest = 0, smallest = UINT32_MAX;
    for (int i = 0; i < SQUARES_PIECE; i++) {
        uint32_t size = base_float_to_bits(x[i]) & 0x7fffffff, less = size - 1; /* 0: the most */
        largest = size > largest ? size : largest;
        smallest = less < smallest ? less : smallest;
    }
    return (exponents){largest, smallest + 1};
}

/* 1.5 x 2^52 units of 2^(position - 300): adding to it changes its bits by one a unit. */
static double level_base(int position) {
    return ldexp(0x1.8p52, position + EXACT_UNIT);
}

/* What was added to the sums of a level, in its units. */
static inline int64_t units_of(const wide sums[SUMS], int position) {
    double base = level_base(position);
    int64_t first, bits, units = 0;
    memcpy(&first, &base, sizeof first);
    for (int s = 0; s < SUMS; s++) {
        for (int w = 0; w < WIDE; w++) {
            double one = sums[s][w];
            memcpy(&bits, &one, sizeof bits);
            units += bits - first;
        }
    }
    return units;
}

static inline void add_levels(const float *x, int levels, const int *positions,
                              base_exact_sum *sum) {
    wide sums[LEVELS][SUMS];
    for (int l = 0; l < levels; l++) {
        for (int s = 0; s < SUMS; s++) sums[l][s] = level_base(positions[l]) - (wide){0};
    }
    for (int i = 0; i < SQUARES_PIECE; i += STEP) {
        for (int line = 0; line < STEP; line += LINE)
            __builtin_prefetch((const char *)((uintptr_t)(x + i + line) + AHEAD));
#pragma GCC unroll 4
        for (int s = 0; s < SUMS; s++) {
            wide values = WIDEN(x + i + s * WIDE), first = sums[0][s];
            sums[0][s] = SQUARE_PLUS(values, first);
            wide rest = SQUARE_PLUS(values, first - sums[0][s]);
            for (int l = 1; l < levels; l++) {
                wide before = sums[l][s];
                sums[l][s] = before + rest;
                rest -= sums[l][s] - before;
            }
        }
    }
    for (int l = 0; l < levels; l++)
        base_exact_add(sum, units_of(sums[l], positions[l]), positions[l]);
}

static void add_one_by_one(const float *x, base_exact_sum *sum) {
    for (int i = 0; i < SQUARES_PIECE; i++) base_exact_square(sum, x[i]);
}

static int at_least_0(int position) {
    return position > 0 ? position : 0;
}

/* `bits`: significant ones of the numbers' type. */
static void add_piece(const float *x, int bits, base_exact_sum *sum) {
    exponents e = find_exponents(x);
    if (e.largest == 0) return;
    int bound = 2 * (base_exact_exponent(e.largest) + 24); /* squares are less than 2^bound units */
    int last = 2 * (base_exact_exponent(e.smallest) + 24 - bits); /* and multiples of 2^last */
    int positions[LEVELS] = {at_least_0(bound - HEADROOM), at_least_0(bound - 2 * HEADROOM),
                             at_least_0(bound - 3 * HEADROOM)};
    bool odd = e.largest >= 0x7f800000 || e.smallest < 0x00800000; /* not finite, or subnormal */
    if (odd || last < positions[2]) {
        add_one_by_one(x, sum);
    } else if (last < positions[1]) {
        add_levels(x, 3, positions, sum);
    } else {
        add_levels(x, 2, positions, sum);
    }
}

void KERNEL(exact_squares)(const device_matrix *x, int64_t first, int64_t count,
                           base_exact_sum *sum) {
    int bits = x->dtype == BASE_FP32 ? 24 : x->dtype == BASE_BF16 ? 8 : 11;
    float buffer[SQUARES_PIECE];
    for (int64_t at = first; at < first + count; at += SQUARES_PIECE) {
        int64_t n = base_min_i64(first + count - at, SQUARES_PIECE);
        const float *values = lanes_read(buffer, x, 0, at, n);
        if (n < SQUARES_PIECE) { /* zeros add nothing */
            if (values != buffer) memcpy(buffer, values, (size_t)n * sizeof *buffer);
            memset(buffer + n, 0, (size_t)(SQUARES_PIECE - n) * sizeof *buffer);
            values = buffer;
        }
        add_piece(values, bits, sum);
    }
}
