/* Products of matrices, c[rows][columns] = a[rows][depth] b[depth][columns].
 *
 * The right factor is packed: it is stored in panels of PANEL columns, one group of the depth after
 * the other, so that it is read in order. The left factor is read in place, group by group, with any
 * two strides. A tile of TILE_ROWS rows and PANEL columns of the product stays in registers.
 */
#ifndef PELLUCID_PRODUCTS_H
#define PELLUCID_PRODUCTS_H

#include "vectors.h"

enum {
    PANEL = 2 * LANES,
    TILE_ROWS = LANES == 8 ? 6 : 12, /* a tile and a row of its panel fill all vector registers */
    BLOCK_ROWS = 48,                 /* rows computed together; whole tiles */
    BLOCK_GROUPS = 256,              /* groups of the depth computed together, for the cache */
    GROUPS_AHEAD = 24,               /* groups of the depth that are prefetched */
    PACK_ROWS = 4 * TILE_ROWS,       /* rows of a transposed left factor that are packed together */
};

/* c (+)= a b for one tile; `adds` tells whether c holds a sum already. */
#define DEFINE_TILE(TILE, GROUP, ADD_PRODUCTS)                                                     \
    INLINE void TILE(const int rows, const int vectors, long groups, const GROUP *a, long a_row,   \
                     long a_group, const GROUP *b, long b_group, float *c, long c_row, int adds) { \
        vf sum[TILE_ROWS][2];                                                                      \
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)             \
            sum[i][v] = adds ? load_floats(c + i * c_row + v * LANES) : broadcast(0);              \
        for (long k = 0; k < groups; k++) {                                                        \
            const GROUP *panel = b + k * b_group;                                                  \
            __builtin_prefetch(panel + GROUPS_AHEAD * b_group);                                    \
            if (LANES == 16) __builtin_prefetch(panel + GROUPS_AHEAD * b_group + LANES);           \
            UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)         \
                ADD_PRODUCTS(sum[i][v], a[i * a_row + k * a_group], panel + v * LANES);            \
        }                                                                                          \
        UNROLL for (int i = 0; i < rows; i++) UNROLL for (int v = 0; v < vectors; v++)             \
            store_floats(c + i * c_row + v * LANES, sum[i][v]);                                    \
    }

/* c (+)= a b for VECTORS * LANES columns and any number of rows. */
#define DEFINE_PRODUCT(NAME, TILE, VECTORS, GROUP)                                                 \
    static void NAME(long rows, long groups, const GROUP *a, long a_row, long a_group,             \
                     const GROUP *b, long b_group, float *c, long c_row, int adds) {               \
        for (; rows >= TILE_ROWS;                                                                  \
             rows -= TILE_ROWS, a += TILE_ROWS * a_row, c += TILE_ROWS * c_row)                    \
            TILE(TILE_ROWS, VECTORS, groups, a, a_row, a_group, b, b_group, c, c_row, adds);       \
        for (; rows >= 4; rows -= 4, a += 4 * a_row, c += 4 * c_row)                               \
            TILE(4, VECTORS, groups, a, a_row, a_group, b, b_group, c, c_row, adds);               \
        if (rows == 3) TILE(3, VECTORS, groups, a, a_row, a_group, b, b_group, c, c_row, adds);    \
        if (rows == 2) TILE(2, VECTORS, groups, a, a_row, a_group, b, b_group, c, c_row, adds);    \
        if (rows == 1) TILE(1, VECTORS, groups, a, a_row, a_group, b, b_group, c, c_row, adds);    \
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
INLINE vf add_pair(vf sum, group a, const group *b) {
    vu pairs = *(const vu_any *)b, a_lanes = a - (vu){0};
    sum += (vf)(a_lanes << 16) * (vf)(pairs << 16);
    return sum + (vf)(a_lanes & 0xffff0000u) * (vf)(pairs & 0xffff0000u);
}
#define ADD_PAIR(SUM, A, B) SUM = add_pair(SUM, A, B)
#endif
DEFINE_TILE(groups_tile, group, ADD_PAIR)
DEFINE_PRODUCT(multiply_groups, groups_tile, 2, group)
#else
#define multiply_groups multiply_floats
#endif

INLINE long num_groups(long numbers) { return ceil_div(numbers, GROUP_SIZE); }

/* The size, in groups, of a packed right factor. */
INLINE long num_packed_groups(long depth, long columns) {
    return num_groups(depth) * round_up(columns, PANEL);
}

/* c[rows][panels * PANEL] = a b with b packed. */
INLINE void multiply_rows(long rows, long groups, const group *a, long a_row, const group *packed,
                          long panels, float *c, long c_row) {
    for (long k = 0; k < groups; k += BLOCK_GROUPS) {
        long taken = min_long(BLOCK_GROUPS, groups - k);
        for (long p = 0; p < panels; p++)
            multiply_groups(rows, taken, a + k, a_row, 1, packed + (p * groups + k) * PANEL, PANEL,
                            c + p * PANEL, c_row, k > 0);
    }
}

/* Groups of a product whose depth is rows: in bfloat16 two rows, interleaved; otherwise the row. */
INLINE void interleave_rows(const num *row, const num *next, group *to) {
#ifdef BF16
    vu second = {0};
    if (next) second = widen(next) << 16;
    *(vu_any *)to = widen(row) | second;
#else
    (void)next;
    store_floats(to, load_floats(row));
#endif
}

/* Pack rows, a multiple of LANES columns of each, as groups of a product whose depth is rows:
 * to[groups][width], padded with zeros up to the width. */
INLINE void pack_over_rows(const num *from, long row_stride, long rows, long columns, long width,
                           group *to) {
    for (long r = 0; r < rows; r += GROUP_SIZE, to += width) {
        const num *row = from + r * row_stride;
        const num *next = r + 1 < rows ? row + row_stride : NULL;
        for (long c = 0; c < columns; c += LANES)
            interleave_rows(row + c, next ? next + c : NULL, to + c);
        for (long c = columns; c < width; c++) to[c] = 0;
    }
}

/* grad[count][columns] += a^T b, summed over rows; a packed by PACK_ROWS columns, b in panels. */
INLINE void add_outer(long groups, long count, const group *a, const group *b, long columns,
                      float *grad) {
    for (long p = 0; p * PANEL < columns; p++) {
        const group *panel = b + p * groups * PANEL;
        float *to = grad + p * PANEL;
        if (columns - p * PANEL >= PANEL) {
            multiply_groups(count, groups, a, 1, PACK_ROWS, panel, PANEL, to, columns, 1);
            continue;
        }
        float part[PACK_ROWS * PANEL];
        multiply_groups(count, groups, a, 1, PACK_ROWS, panel, PANEL, part, PANEL, 0);
        for (long i = 0; i < count; i++)
            for (long c = 0; c < columns - p * PANEL; c++)
                to[i * columns + c] += part[i * PANEL + c];
    }
}

#endif
