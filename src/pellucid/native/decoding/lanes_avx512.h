/* Sixteen lanes in one register of AVX-512. Included by lanes.h. */
typedef __m512 vf;
typedef __m512i vi;

INLINE vf vf_all(float x) { return _mm512_set1_ps(x); }
INLINE vf vf_load(const float *from) { return _mm512_loadu_ps(from); }
INLINE void vf_store(float *to, vf x) { _mm512_storeu_ps(to, x); }
/* The first lanes, for counts of 1 to 16: the others are 0, or stay as they are in memory. */
INLINE vf vf_load_first(const float *from, long count) {
    return _mm512_maskz_loadu_ps((__mmask16)(0xffffu >> (LANES - count)), from);
}
INLINE void vf_store_first(float *to, vf x, long count) {
    _mm512_mask_storeu_ps(to, (__mmask16)(0xffffu >> (LANES - count)), x);
}
/* The first lanes as they are, and others in the rest. */
INLINE vf vf_keep_first(vf x, long count, float rest) {
    return _mm512_mask_blend_ps((__mmask16)(0xffffu >> (LANES - count)), _mm512_set1_ps(rest), x);
}
INLINE vf vf_add(vf x, vf y) { return _mm512_add_ps(x, y); }
INLINE vf vf_sub(vf x, vf y) { return _mm512_sub_ps(x, y); }
INLINE vf vf_mul(vf x, vf y) { return _mm512_mul_ps(x, y); }
INLINE vf vf_div(vf x, vf y) { return _mm512_div_ps(x, y); }
INLINE vf vf_fma(vf x, vf y, vf z) { return _mm512_fmadd_ps(x, y, z); }
/* The larger, or smaller; y if one is not a number. */
INLINE vf vf_max(vf x, vf y) { return _mm512_max_ps(x, y); }
INLINE vf vf_min(vf x, vf y) { return _mm512_min_ps(x, y); }
INLINE vf vf_absolute(vf x) { return _mm512_abs_ps(x); }
INLINE vf vf_round(vf x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
INLINE vf vf_select_less(vf x, vf y, vf yes, vf no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), no, yes);
}
/* One bit for each lane in which x is larger. */
INLINE unsigned vf_greater(vf x, vf y) { return _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ); }
/* x 2^n for a whole n that leaves a normal number. */
INLINE vf vf_times_power(vf x, vf n) {
    __m512i shifted = _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(x), shifted));
}

/* Sums and maxima of lanes: halves first, so that the order is the same everywhere. */
INLINE float sum_of_eight(__m256 x) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
INLINE float largest_of_eight(__m256 x) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
INLINE float vf_sum(vf x) {
    return sum_of_eight(_mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}
INLINE float vf_largest(vf x) {
    return largest_of_eight(_mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

INLINE vf add_pairs_of_halves(vf x, vf y) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x44), _mm512_shuffle_f32x4(x, y, 0xee));
}
INLINE vf add_pairs_of_quarters(vf x, vf y) {
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
}
/* vf_sum of each of 16, in the same order of sums. */
INLINE vf vf_sums(const vf *x) {
    vf four[4];
    UNROLL for (int i = 0; i < 4; i++)
        four[i] = add_pairs_of_quarters(add_pairs_of_halves(x[i], x[i + 4]),
                                        add_pairs_of_halves(x[i + 8], x[i + 12]));
    vf even = _mm512_add_ps(_mm512_shuffle_ps(four[0], four[1], 0x44),
                            _mm512_shuffle_ps(four[0], four[1], 0xee));
    vf odd = _mm512_add_ps(_mm512_shuffle_ps(four[2], four[3], 0x44),
                           _mm512_shuffle_ps(four[2], four[3], 0xee));
    return _mm512_add_ps(_mm512_shuffle_ps(even, odd, 0x88), _mm512_shuffle_ps(even, odd, 0xdd));
}

/* |x| where it is more than the largest so far. Bits are compared as whole numbers: infinity is
 * more than any number, and what is not a number is more than infinity. */
INLINE vf vf_larger_size(vf x, vf largest) {
    __m512i size = _mm512_castps_si512(_mm512_abs_ps(x));
    return _mm512_castsi512_ps(_mm512_max_epi32(size, _mm512_castps_si512(largest)));
}
INLINE float vf_largest_size(vf x) {
    __m512i bits = _mm512_castps_si512(x);
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(bits))));
}

INLINE vi vi_load(const int32_t *from) { return _mm512_loadu_si512(from); }
INLINE vf vi_to_vf(vi x) { return _mm512_cvtepi32_ps(x); }
/* Sixteen numbers from -127 to 127, rounded to the nearest integers, plus the offset. */
INLINE void vf_to_bytes(uint8_t *to, vf x, int offset) {
    __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x));
    _mm_storeu_si128((__m128i *)to, _mm_add_epi8(bytes, _mm_set1_epi8((char)offset)));
}
INLINE vf vf_from_bytes(const int8_t *from) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)));
}
INLINE vf vf_from_halves(const uint16_t *from) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

/* Products of four adjacent bytes. A row's bytes are broadcast once, then multiplied with the bytes
 * of many weights. */
typedef __m512i weight_bytes;
INLINE weight_bytes load_bytes(const int8_t *from) { return _mm512_loadu_si512(from); }
typedef __m512i row_bytes;
INLINE row_bytes broadcast_bytes(const uint8_t *from) {
    int32_t four;
    memcpy(&four, from, 4);
    return _mm512_set1_epi32(four);
}
INLINE vi add_products(vi sum, row_bytes row, weight_bytes weights) {
#if defined(__AVX512VNNI__)
    return _mm512_dpbusd_epi32(sum, row, weights);
#else
    /* Both are at most 127, so two products never saturate 16 bits. */
    __m512i pairs = _mm512_maddubs_epi16(row, weights);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#endif
}

/* Rows that a product computes at once, with two panels of weights: with more, GCC keeps sums in
 * memory. */
enum { MAX_ROWS = 8, MAX_BYTE_ROWS = 6 };
