/* Products with packed weights.
 *
 * Each output of each row is summed over the inputs in their order, whatever is computed at the same
 * time. So a row's result depends neither on the batch nor on the threads, to the last bit.
 */
#include <math.h>

#include "model.h"

#if defined(__AVX512F__)
#define PANELS_AT_ONCE(ROWS) ((ROWS) == 1 ? 8 : (ROWS) <= 3 ? 4 : 2)
#elif defined(__AVX2__)
#define PANELS_AT_ONCE(ROWS) ((ROWS) == 1 ? 4 : (ROWS) <= 3 ? 2 : 1)
#elif defined(__aarch64__)
#define PANELS_AT_ONCE(ROWS) ((ROWS) == 1 ? 4 : (ROWS) == 2 ? 2 : 1)
#else
#define PANELS_AT_ONCE(ROWS) ((ROWS) == 1 ? 2 : 1)
#endif

INLINE void store_tile(vf sum, float *y, int is_relu) {
    /* In this order the maximum of no number and 0 is no number. */
    vf_store(y, is_relu ? vf_max(vf_zero(), sum) : sum);
}

INLINE vf load_weights(const linear *l, long panel, long k, const int precision) {
    long at = (panel * l->in + k) * LANES;
    return precision == BFLOAT16 ? vf_from_halves((const uint16_t *)l->weights + at)
                                 : vf_load((const float *)l->weights + at);
}

/* ROWS rows and PANELS panels, whose sums stay in registers. */
INLINE void float_tile(const int rows, const int panels, const int precision, const linear *l,
                       const input *in, long row, long panel, float *y, long y_stride,
                       int is_relu) {
    vf sum[MAX_ROWS][8];
    const float *x = in->x + row * in->stride;
    UNROLL for (int p = 0; p < panels; p++) {
        vf bias = vf_load(l->bias + (panel + p) * LANES);
        UNROLL for (int r = 0; r < rows; r++) sum[r][p] = bias;
    }
    for (long k = 0; k < l->in; k++) {
        vf weights[8];
        UNROLL for (int p = 0; p < panels; p++)
            weights[p] = load_weights(l, panel + p, k, precision);
        UNROLL for (int r = 0; r < rows; r++) {
            vf value = vf_all(x[r * in->stride + k]);
            UNROLL for (int p = 0; p < panels; p++)
                sum[r][p] = vf_fma(value, weights[p], sum[r][p]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int p = 0; p < panels; p++)
        store_tile(sum[r][p], y + r * y_stride + p * LANES, is_relu);
}

INLINE void byte_tile(const int rows, const int panels, const int precision, const linear *l,
                      const input *in, long row, long panel, float *y, long y_stride, int is_relu) {
    (void)precision;
    vi sum[MAX_ROWS][8];
    const long groups = ceil_div(l->in, 4);
    const uint8_t *x = in->bytes + row * in->bytes_stride;
    const int8_t *weights = (const int8_t *)l->weights + panel * groups * 4 * LANES;
    UNROLL for (int p = 0; p < panels; p++) {
        vi first = vi_load(l->sums + (panel + p) * LANES);
        UNROLL for (int r = 0; r < rows; r++) sum[r][p] = first;
    }
    for (long k = 0; k < groups; k++) {
        weight_bytes some[8];
        UNROLL for (int p = 0; p < panels; p++)
            some[p] = load_bytes(weights + (p * groups + k) * 4 * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            row_bytes four = broadcast_bytes(x + r * in->bytes_stride + 4 * k);
            UNROLL for (int p = 0; p < panels; p++) sum[r][p] = add_products(sum[r][p], four, some[p]);
        }
    }
    UNROLL for (int p = 0; p < panels; p++) {
        vf scale = vf_load(l->scale + (panel + p) * LANES);
        vf bias = vf_load(l->bias + (panel + p) * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            vf unit = vf_mul(vf_all(in->scales[row + r]), scale);
            store_tile(vf_fma(vi_to_vf(sum[r][p]), unit, bias), y + r * y_stride + p * LANES,
                       is_relu);
        }
    }
}

/* Some rows with all panels: as many panels at once as registers allow, then fewer. */
#define DEFINE_ROWS(NAME, TILE, ROWS, PRECISION)                                                   \
    static void NAME##_##ROWS(const linear *l, const input *in, long row, long first, long end,    \
                              float *y, long y_stride, int is_relu) {                              \
        long panel = first;                                                                        \
        float *to = y + row * y_stride - first * LANES;                                            \
        if (PANELS_AT_ONCE(ROWS) >= 8)                                                             \
            for (; panel + 8 <= end; panel += 8)                                                   \
                TILE(ROWS, 8, PRECISION, l, in, row, panel, to + panel * LANES, y_stride, is_relu); \
        if (PANELS_AT_ONCE(ROWS) >= 4)                                                             \
            for (; panel + 4 <= end; panel += 4)                                                   \
                TILE(ROWS, 4, PRECISION, l, in, row, panel, to + panel * LANES, y_stride, is_relu); \
        if (PANELS_AT_ONCE(ROWS) >= 2)                                                             \
            for (; panel + 2 <= end; panel += 2)                                                   \
                TILE(ROWS, 2, PRECISION, l, in, row, panel, to + panel * LANES, y_stride, is_relu); \
        for (; panel < end; panel++)                                                               \
            TILE(ROWS, 1, PRECISION, l, in, row, panel, to + panel * LANES, y_stride, is_relu);     \
    }

typedef void (*rows_function)(const linear *, const input *, long, long, long, float *, long, int);

#if defined(__AVX512F__)
#define FOR_EACH_COUNT(DO, ...)                                                                    \
    DO(__VA_ARGS__, 1) DO(__VA_ARGS__, 2) DO(__VA_ARGS__, 3) DO(__VA_ARGS__, 4)                    \
    DO(__VA_ARGS__, 5) DO(__VA_ARGS__, 6) DO(__VA_ARGS__, 7) DO(__VA_ARGS__, 8)
#elif defined(__AVX2__)
#define FOR_EACH_COUNT(DO, ...)                                                                    \
    DO(__VA_ARGS__, 1) DO(__VA_ARGS__, 2) DO(__VA_ARGS__, 3) DO(__VA_ARGS__, 4)                    \
    DO(__VA_ARGS__, 5) DO(__VA_ARGS__, 6)
#elif defined(__aarch64__)
#define FOR_EACH_COUNT(DO, ...)                                                                    \
    DO(__VA_ARGS__, 1) DO(__VA_ARGS__, 2) DO(__VA_ARGS__, 3) DO(__VA_ARGS__, 4)                    \
    DO(__VA_ARGS__, 5)
#else
#define FOR_EACH_COUNT(DO, ...)                                                                    \
    DO(__VA_ARGS__, 1) DO(__VA_ARGS__, 2) DO(__VA_ARGS__, 3) DO(__VA_ARGS__, 4)
#endif

#define DEFINE(NAME, TILE, PRECISION, ROWS) DEFINE_ROWS(NAME, TILE, ROWS, PRECISION)
#define LIST(NAME, ROWS) NAME##_##ROWS,

FOR_EACH_COUNT(DEFINE, float_rows, float_tile, FLOAT32)
FOR_EACH_COUNT(DEFINE, half_rows, float_tile, BFLOAT16)
FOR_EACH_COUNT(DEFINE, byte_rows, byte_tile, INT8)

static const rows_function FUNCTIONS[3][MAX_ROWS] = {
    {FOR_EACH_COUNT(LIST, float_rows)},
    {FOR_EACH_COUNT(LIST, half_rows)},
    {FOR_EACH_COUNT(LIST, byte_rows)},
};

/* Panels whose weights stay in the cache while all rows pass by. */
enum { CACHED_BYTES = 256 * 1024 };

void multiply(const linear *l, const input *in, long first, long end, float *y, long y_stride,
              int is_relu) {
    static const long bytes_of[3] = {4, 2, 1};
    CHECK(0 <= first && first < end && end <= num_panels(l));
    CHECK(in->rows > 0 && in->stride >= l->in && y_stride >= (end - first) * LANES);
    const long most = l->precision == INT8 ? MAX_BYTE_ROWS : MAX_ROWS;
    const long blocks = ceil_div(in->rows, most);
    const long per_panel = l->in * LANES * bytes_of[l->precision];
    const long step = in->rows <= most ? end - first : max_long(1, CACHED_BYTES / per_panel / 8) * 8;
    for (long panel = first; panel < end; panel += step) {
        long last = min_long(panel + step, end);
        long row = 0;
        /* Blocks differ by one row at most. */
        for (long block = 0; block < blocks; block++) {
            long count = (in->rows - row) / (blocks - block);
            FUNCTIONS[l->precision][count - 1](l, in, row, panel, last,
                                               y + (panel - first) * LANES, y_stride, is_relu);
            row += count;
        }
    }
}

/* Quantize a row: its bytes, and the size of a unit, which is no number if one of the row's numbers
 * is none or infinite. */
static float quantize(const float *x, long width, int offset, uint8_t *bytes) {
    const long whole = width / LANES * LANES, rest = width - whole;
    vf largest = vf_zero(), other = vf_zero();
    long i = 0;
    for (; i + 2 * LANES <= whole; i += 2 * LANES) {
        largest = vf_larger_size(vf_load(x + i), largest);
        other = vf_larger_size(vf_load(x + i + LANES), other);
    }
    if (i < whole) largest = vf_larger_size(vf_load(x + i), largest);
    if (rest) other = vf_larger_size(vf_load_first(x + whole, rest), other);
    const float size = vf_largest_size(vf_larger_size(largest, other));
    const float levels = (float)(127 - offset);
    const vf factor = vf_all(size > 1e-30f ? levels / size : 0.0f);
    for (i = 0; i < whole; i += LANES)
        vf_to_bytes(bytes + i, vf_mul(vf_load(x + i), factor), offset);
    if (rest) vf_to_bytes(bytes + whole, vf_mul(vf_load_first(x + whole, rest), factor), offset);
    /* Not even with an infinite number: what its products would be depends on the processor. */
    return size < INFINITY ? size / levels : NAN;
}

input make_input(scratch *s, const linear *l, const float *x, long stride, long rows) {
    CHECK(rows <= s->rows && (l->precision != INT8 || l->in <= s->bytes_stride));
    if (l->precision == INT8)
        for (long row = 0; row < rows; row++)
            s->scales[row] = quantize(x + row * stride, l->in, (int)l->offset,
                                      s->bytes + row * s->bytes_stride);
    return (input){x, stride, rows, s->bytes, s->bytes_stride, s->scales};
}

/* Packing, called once for each product. The packed outputs are whole panels, filled up with 0. */
EXPORT void pack_floats(const float *weight, int64_t out, int64_t in, float *packed) {
    for (long panel = 0; panel < ceil_div(out, LANES); panel++)
        for (long k = 0; k < in; k++)
            for (long lane = 0; lane < LANES; lane++) {
                long row = panel * LANES + lane;
                packed[(panel * in + k) * LANES + lane] = row < out ? weight[row * in + k] : 0.0f;
            }
}

EXPORT void pack_halves(const uint16_t *weight, int64_t out, int64_t in, uint16_t *packed) {
    for (long panel = 0; panel < ceil_div(out, LANES); panel++)
        for (long k = 0; k < in; k++)
            for (long lane = 0; lane < LANES; lane++) {
                long row = panel * LANES + lane;
                packed[(panel * in + k) * LANES + lane] = row < out ? weight[row * in + k] : 0;
            }
}

EXPORT void pack_bytes(const int8_t *weight, int64_t out, int64_t in, int64_t offset,
                       int8_t *packed, int32_t *sums) {
    const long groups = ceil_div(in, 4);
    for (long panel = 0; panel < ceil_div(out, LANES); panel++)
        for (long lane = 0; lane < LANES; lane++) {
            long row = panel * LANES + lane;
            int32_t sum = 0;
            for (long k = 0; k < 4 * groups; k++) {
                int8_t value = row < out && k < in ? weight[row * in + k] : 0;
                packed[((panel * groups + k / 4) * LANES + lane) * 4 + k % 4] = value;
                sum += value;
            }
            sums[row] = (int32_t)-offset * sum;
        }
}
