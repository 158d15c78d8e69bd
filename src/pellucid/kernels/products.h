/* Products of matrices.
 *
 * The right factor lies in panels of PANEL columns, one word of the sum after the other, so that
 * it is read in order; the left factor is read where it is, word by word, with any two strides.
 * A tile of TILE_ROWS rows and PANEL columns of the product stays in registers.
 */
#ifndef PELLUCID_PRODUCTS_H
#define PELLUCID_PRODUCTS_H

#include "vectors.h"

enum {
    PANEL = 2 * LANES,
    TILE_ROWS = LANES == 8 ? 6 : 12, /* with their panel they fill the registers there are */
    BLOCK_ROWS = 48,                 /* rows that are worked on together; whole tiles */
    BLOCK_WORDS = 256,               /* words of a sum that are worked on together */
    WORDS_AHEAD = 24,                /* words of a sum that are fetched ahead */
    PACK_ROWS = 4 * TILE_ROWS,       /* rows of a turned left factor that lie beside each other */
};

#define DEFINE_TILE(TILE, WORD, ADD_PRODUCTS)                                                      \
    INLINE void TILE(const int rows, const int vectors, long words, const WORD *a, long a_row,     \
                     long a_word, const WORD *b, long b_word, float *c, long c_row, int adds) {    \
        vf sum[TILE_ROWS][2];                                                                      \
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)             \
            sum[i][v] = adds ? load_floats(c + i * c_row + v * LANES) : spread(0);                 \
        for (long k = 0; k < words; k++) {                                                         \
            const WORD *panel = b + k * b_word;                                                    \
            __builtin_prefetch(panel + WORDS_AHEAD * b_word);                                      \
            if (LANES == 16) __builtin_prefetch(panel + WORDS_AHEAD * b_word + LANES);             \
            UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)         \
                ADD_PRODUCTS(sum[i][v], a[i * a_row + k * a_word], panel + v * LANES);             \
        }                                                                                          \
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)             \
            store_floats(c + i * c_row + v * LANES, sum[i][v]);                                    \
    }

/* Some vectors' columns of c (+)= a b, for any number of rows. */
#define DEFINE_PRODUCT(NAME, TILE, VECTORS, WORD)                                                  \
    static void NAME(long rows, long words, const WORD *a, long a_row, long a_word, const WORD *b, \
                     long b_word, float *c, long c_row, int adds) {                                \
        for (; rows >= TILE_ROWS; rows -= TILE_ROWS, a += TILE_ROWS * a_row, c += TILE_ROWS * c_row) \
            TILE(TILE_ROWS, VECTORS, words, a, a_row, a_word, b, b_word, c, c_row, adds);          \
        for (; rows >= 4; rows -= 4, a += 4 * a_row, c += 4 * c_row)                               \
            TILE(4, VECTORS, words, a, a_row, a_word, b, b_word, c, c_row, adds);                  \
        if (rows == 3) TILE(3, VECTORS, words, a, a_row, a_word, b, b_word, c, c_row, adds);       \
        if (rows == 2) TILE(2, VECTORS, words, a, a_row, a_word, b, b_word, c, c_row, adds);       \
        if (rows == 1) TILE(1, VECTORS, words, a, a_row, a_word, b, b_word, c, c_row, adds);       \
    }

#define ADD_FLOAT(SUM, A, B) SUM += (A) * load_floats(B)

DEFINE_TILE(floats_tile, float, ADD_FLOAT)
DEFINE_PRODUCT(multiply_floats, floats_tile, 2, float)

#ifdef BF16
#if defined(__AVX512BF16__)
#define ADD_PAIR(SUM, A, B)                                                                        \
    SUM = (vf)_mm512_dpbf16_ps((__m512)(SUM), (__m512bh)_mm512_set1_epi32((int)(A)),               \
                               (__m512bh)_mm512_loadu_si512(B))
#else
INLINE vf add_pair(vf sum, word a, const word *b) {
    vu pairs = *(const vu_any *)b, spread_a = a - (vu){0};
    sum += (vf)(spread_a << 16) * (vf)(pairs << 16);
    return sum + (vf)(spread_a & 0xffff0000u) * (vf)(pairs & 0xffff0000u);
}
#define ADD_PAIR(SUM, A, B) SUM = add_pair(SUM, A, B)
#endif
DEFINE_TILE(words_tile, word, ADD_PAIR)
DEFINE_PRODUCT(multiply_words, words_tile, 2, word)
#else
#define multiply_words multiply_floats
#endif

/* How many words a packed right factor has, for a sum of so many numbers and so many columns. */
INLINE long words_of(long numbers) { return in_parts(numbers, PER_WORD); }
INLINE long packed_words(long numbers, long columns) {
    return words_of(numbers) * in_parts(columns, PANEL) * PANEL;
}

/* c[rows][panels * PANEL] = a b, a as rows, b packed. */
INLINE void multiply_rows(long rows, long words, const word *a, long a_row, const word *packed,
                          long panels, float *c, long c_row) {
    for (long k = 0; k < words; k += BLOCK_WORDS) {
        long taken = least(BLOCK_WORDS, words - k);
        for (long p = 0; p < panels; p++)
            multiply_words(rows, taken, a + k, a_row, 1, packed + (p * words + k) * PANEL, PANEL,
                           c + p * PANEL, c_row, k > 0);
    }
}

/* Two rows beside each other, as words of a sum over rows; of one row, the row. */
INLINE void pack_lanes(const num *row, const num *next, word *to) {
#ifdef BF16
    vu second = {0};
    if (next) second = widened(next) << 16;
    *(vu_any *)to = widened(row) | second;
#else
    (void)next;
    store_floats(to, load_floats(row));
#endif
}

/* Rows [0, rows) of some columns, a multiple of LANES, as words of a sum over rows:
 * to[words][width]; columns up to the width are 0. */
INLINE void pack_over_rows(const num *from, long row_length, long rows, long columns, long width,
                           word *to) {
    for (long r = 0; r < rows; r += PER_WORD, to += width) {
        const num *row = from + r * row_length;
        const num *next = r + 1 < rows ? row + row_length : NULL;
        for (long c = 0; c < columns; c += LANES) pack_lanes(row + c, next ? next + c : NULL, to + c);
        for (long c = columns; c < width; c++) to[c] = 0;
    }
}

/* grad[count][columns] += a^T b over rows; a packed in groups of PACK_ROWS, b in panels. */
INLINE void add_outer(long words, long count, const word *a, const word *b, long columns,
                      float *grad) {
    for (long p = 0; p * PANEL < columns; p++) {
        const word *panel = b + p * words * PANEL;
        float *to = grad + p * PANEL;
        if (columns - p * PANEL >= PANEL) {
            multiply_words(count, words, a, 1, PACK_ROWS, panel, PANEL, to, columns, 1);
            continue;
        }
        float part[PACK_ROWS * PANEL];
        multiply_words(count, words, a, 1, PACK_ROWS, panel, PANEL, part, PANEL, 0);
        for (long i = 0; i < count; i++)
            for (long c = 0; c < columns - p * PANEL; c++) to[i * columns + c] += part[i * PANEL + c];
    }
}

#endif
