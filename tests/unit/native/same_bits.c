/* Writes what every operation on lanes, every product and every norm gives for the same numbers. The
 * bytes must be the same on every processor with multiply-add. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model.h"

/* Called from Python only, so that no header has them. */
void pack_floats(const float *weight, int64_t out, int64_t in, float *packed);
void pack_halves(const uint16_t *weight, int64_t out, int64_t in, uint16_t *packed);
void pack_bytes(const int8_t *weight, int64_t out, int64_t in, int64_t offset, int8_t *packed,
                int32_t *sums);

enum { ROUNDS = 100, ROWS = 11, IN = 53, OUT = 71 };

static uint64_t state = 0x9e3779b97f4a7c15ULL;
static uint32_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}
static float number(float size) { return ((float)draw() / 2147483648.0f - 1.0f) * size; }

/* A number that is hard for an operation: zeros, halves between whole numbers, the smallest, none. */
static float hard(void) {
    static const float known[] = {0.0f,   -0.0f,  0.5f,   -0.5f,  1.5f,       -2.5f,    63.5f,   -63.5f,
                                  86.99f, -87.0f, -87.1f, 88.01f, 1.4e-45f, -1.2e-38f, 3.4e38f, INFINITY};
    uint32_t some = draw();
    if (some % 3 == 0) return known[some / 3 % (sizeof known / sizeof *known)];
    return number(some % 3 == 1 ? 90.0f : 2.0f);
}

/* What is no number may have any bits. */
static void write_floats(const float *x, long count) {
    for (long i = 0; i < count; i++) {
        float value = isnan(x[i]) ? 0.12345f : x[i];
        fwrite(&value, sizeof value, 1, stdout);
    }
}
static void write_lanes(vf x) {
    float lane[LANES];
    vf_store(lane, x);
    write_floats(lane, LANES);
}
static void write_one(float x) { write_floats(&x, 1); }

static void try_lanes(void) {
    float x[LANES * LANES], y[LANES], z[LANES];
    for (int i = 0; i < LANES; i++) x[i] = hard(), y[i] = hard(), z[i] = number(3.0f);
    const vf a = vf_load(x), b = vf_load(y), c = vf_load(z);
    const vf found[] = {vf_add(a, b), vf_sub(a, b), vf_mul(a, b), vf_div(a, b), vf_fma(a, b, c),
                        vf_max(a, b), vf_min(a, b), vf_absolute(a), vf_round(a), vf_exp(a),
                        vf_erf(c), vf_select_less(a, b, c, a), vf_larger_size(a, vf_absolute(b)),
                        vf_times_power(c, vf_round(vf_mul(c, vf_all(20.0f))))};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) write_lanes(found[i]);
    for (long count = 1; count <= LANES; count++) {
        write_lanes(vf_load_first(x, count));
        write_lanes(vf_keep_first(a, count, -1.0f));
        vf_store_first(y, a, count);
        write_floats(y, LANES);
    }
    const unsigned greater = vf_greater(a, c);
    fwrite(&greater, sizeof greater, 1, stdout);
    write_one(vf_largest(c)), write_one(vf_sum(c)), write_one(vf_largest_size(vf_absolute(a)));

    vf many[LANES];
    for (int i = 0; i < LANES * LANES; i++) x[i] = number(1000.0f);
    for (int i = 0; i < LANES; i++) many[i] = vf_load(x + i * LANES);
    write_lanes(vf_sums(many));

    int8_t bytes[LANES];
    uint8_t rounded[LANES];
    uint16_t halves[LANES];
    for (int i = 0; i < LANES; i++) bytes[i] = (int8_t)draw(), halves[i] = (uint16_t)(draw() & 0xbfff);
    for (int i = 0; i < LANES; i++) z[i] = i % 4 ? number(63.0f) : (float)(i * 8 - 63) + 0.5f;
    vf_to_bytes(rounded, vf_load(z), 64);
    fwrite(rounded, sizeof rounded, 1, stdout);
    write_lanes(vf_from_bytes(bytes)), write_lanes(vf_from_halves(halves));
    write_one((float)natural_log(fabs(number(9.0f)) + 1e-3));
}

static void try_product(int precision, long rows, int offset) {
    enum { PANELS = (OUT + LANES - 1) / LANES, WIDE = PANELS * LANES, ROOM = 4 * ((IN + 3) / 4) };
    static float weight[OUT * IN], x[ROWS * IN], y[ROWS * WIDE], bias[WIDE], scale[WIDE], scales[ROWS];
    static float packed[WIDE * ROOM];
    static uint16_t halves[OUT * IN];
    static int8_t whole[OUT * IN];
    static int32_t sums[WIDE];
    static uint8_t bytes[ROWS * (ROOM + LANES)];
    for (long i = 0; i < OUT * IN; i++) {
        weight[i] = number(1.0f);
        halves[i] = (uint16_t)(draw() & 0xbfff);
        whole[i] = (int8_t)((int)(draw() % 255) - 127);
    }
    for (long i = 0; i < ROWS * IN; i++) x[i] = offset ? number(2.0f) : fabsf(number(2.0f));
    for (long i = 0; i < WIDE; i++) bias[i] = number(1.0f), scale[i] = fabsf(number(0.01f));
    if (precision == FLOAT32) pack_floats(weight, OUT, IN, packed);
    if (precision == BFLOAT16) pack_halves(halves, OUT, IN, (uint16_t *)packed);
    if (precision == INT8) pack_bytes(whole, OUT, IN, offset, (int8_t *)packed, sums);
    const linear product = {IN, OUT, precision, offset, packed, bias, scale, sums};
    scratch room = {.rows = ROWS, .bytes = bytes, .bytes_stride = ROOM + LANES, .scales = scales};
    const input in = make_input(&room, &product, x, IN, rows);
    multiply(&product, &in, 0, PANELS, y, WIDE, rows % 2 == 0);
    for (long row = 0; row < rows; row++) write_floats(y + row * WIDE, OUT);
}

static void try_norm(void) {
    float x[IN + LANES], gain[IN], bias[IN];
    for (long i = 0; i < IN; i++) x[i] = number(5.0f), gain[i] = number(1.0f), bias[i] = number(1.0f);
    const norm both = {gain, bias};
    const model m = {.d_model = IN, .epsilon = 1e-5};
    normalize(&m, &both, x, x, 1);
    write_floats(x, IN);
    float scores[IN + LANES];
    for (long i = 0; i < IN; i++) scores[i] = number(30.0f);
    write_one(exponentiate(scores, IN));
    write_floats(scores, IN);
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) try_lanes();
    for (long rows = 1; rows <= ROWS; rows++)
        for (int precision = FLOAT32; precision <= INT8; precision++)
            for (int offset = 0; offset <= 64; offset += 64) try_product(precision, rows, offset);
    for (int round = 0; round < ROUNDS; round++) try_norm();
    return 0;
}
