/* Sixteen lanes in two registers of AVX2. Included by lanes.h; see lanes_avx512.h. */
typedef struct {
    __m256 low, high;
} vf;
typedef struct {
    __m256i low, high;
} vi;

#define BOTH(OPERATION, ...) (vf){OPERATION(x.low __VA_ARGS__), OPERATION(x.high __VA_ARGS__)}
#define OF_TWO(OPERATION) (vf){OPERATION(x.low, y.low), OPERATION(x.high, y.high)}

INLINE vf vf_all(float x) { return (vf){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
INLINE vf vf_load(const float *from) {
    return (vf){_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)};
}
INLINE void vf_store(float *to, vf x) {
    _mm256_storeu_ps(to, x.low);
    _mm256_storeu_ps(to + 8, x.high);
}
INLINE vi first_mask(long count) {
    static const int32_t window[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                       -1, -1, -1, -1, -1, 0,  0,  0,  0,  0,  0,
                                       0,  0,  0,  0,  0,  0,  0,  0,  0,  0};
    const int32_t *from = window + LANES - count;
    return (vi){_mm256_loadu_si256((const __m256i *)from),
                _mm256_loadu_si256((const __m256i *)(from + 8))};
}
INLINE vf vf_load_first(const float *from, long count) {
    vi mask = first_mask(count);
    return (vf){_mm256_maskload_ps(from, mask.low), _mm256_maskload_ps(from + 8, mask.high)};
}
INLINE void vf_store_first(float *to, vf x, long count) {
    vi mask = first_mask(count);
    _mm256_maskstore_ps(to, mask.low, x.low);
    _mm256_maskstore_ps(to + 8, mask.high, x.high);
}
INLINE vf vf_keep_first(vf x, long count, float rest) {
    vi mask = first_mask(count);
    __m256 others = _mm256_set1_ps(rest);
    return (vf){_mm256_blendv_ps(others, x.low, _mm256_castsi256_ps(mask.low)),
                _mm256_blendv_ps(others, x.high, _mm256_castsi256_ps(mask.high))};
}
INLINE vf vf_add(vf x, vf y) { return OF_TWO(_mm256_add_ps); }
INLINE vf vf_sub(vf x, vf y) { return OF_TWO(_mm256_sub_ps); }
INLINE vf vf_mul(vf x, vf y) { return OF_TWO(_mm256_mul_ps); }
INLINE vf vf_div(vf x, vf y) { return OF_TWO(_mm256_div_ps); }
INLINE vf vf_fma(vf x, vf y, vf z) {
    return (vf){_mm256_fmadd_ps(x.low, y.low, z.low), _mm256_fmadd_ps(x.high, y.high, z.high)};
}
INLINE vf vf_max(vf x, vf y) { return OF_TWO(_mm256_max_ps); }
INLINE vf vf_min(vf x, vf y) { return OF_TWO(_mm256_min_ps); }
INLINE vf vf_absolute(vf x) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (vf){_mm256_andnot_ps(sign, x.low), _mm256_andnot_ps(sign, x.high)};
}
INLINE vf vf_round(vf x) {
    return BOTH(_mm256_round_ps, , _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
INLINE vf vf_select_less(vf x, vf y, vf yes, vf no) {
    __m256 low = _mm256_cmp_ps(x.low, y.low, _CMP_LT_OQ);
    __m256 high = _mm256_cmp_ps(x.high, y.high, _CMP_LT_OQ);
    return (vf){_mm256_blendv_ps(no.low, yes.low, low), _mm256_blendv_ps(no.high, yes.high, high)};
}
INLINE unsigned vf_greater(vf x, vf y) {
    unsigned low = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.low, y.low, _CMP_GT_OQ));
    unsigned high = (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(x.high, y.high, _CMP_GT_OQ));
    return low | high << 8;
}
INLINE __m256 times_power(__m256 x, __m256 n) {
    __m256i shifted = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), shifted));
}
INLINE vf vf_times_power(vf x, vf n) {
    return (vf){times_power(x.low, n.low), times_power(x.high, n.high)};
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
INLINE float vf_sum(vf x) { return sum_of_eight(_mm256_add_ps(x.low, x.high)); }
INLINE float vf_largest(vf x) { return largest_of_eight(_mm256_max_ps(x.low, x.high)); }

INLINE __m256 add_quarters(vf x, vf y) {
    __m256 first = _mm256_add_ps(x.low, x.high), second = _mm256_add_ps(y.low, y.high);
    return _mm256_add_ps(_mm256_permute2f128_ps(first, second, 0x20),
                         _mm256_permute2f128_ps(first, second, 0x31));
}
INLINE __m256 add_pairs(__m256 x, __m256 y, const int is_last) {
    return is_last ? _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd))
                   : _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x44), _mm256_shuffle_ps(x, y, 0xee));
}
/* vf_sum of each of 8, in the same order of sums. */
INLINE __m256 eight_sums(const vf *x) {
    __m256 four[4];
    UNROLL for (int i = 0; i < 4; i++) four[i] = add_quarters(x[i], x[i + 4]);
    return add_pairs(add_pairs(four[0], four[1], 0), add_pairs(four[2], four[3], 0), 1);
}
INLINE vf vf_sums(const vf *x) { return (vf){eight_sums(x), eight_sums(x + 8)}; }

/* |x| where it is more than the largest so far; see lanes_avx512.h. */
INLINE __m256 larger_size(__m256 x, __m256 largest) {
    __m256i size = _mm256_castps_si256(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x));
    return _mm256_castsi256_ps(_mm256_max_epi32(size, _mm256_castps_si256(largest)));
}
INLINE vf vf_larger_size(vf x, vf y) { return OF_TWO(larger_size); }
INLINE float vf_largest_size(vf x) {
    __m256i eight = _mm256_castps_si256(larger_size(x.low, x.high));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xb1))));
}

INLINE vi vi_load(const int32_t *from) {
    return (vi){_mm256_loadu_si256((const __m256i *)from),
                _mm256_loadu_si256((const __m256i *)(from + 8))};
}
INLINE vf vi_to_vf(vi x) { return BOTH(_mm256_cvtepi32_ps, ); }
INLINE void vf_to_bytes(uint8_t *to, vf x, int offset) {
    __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.low), _mm256_cvtps_epi32(x.high));
    words = _mm256_permute4x64_epi64(words, 0xd8); /* packing works on halves of a register */
    __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((__m128i *)to, _mm_add_epi8(bytes, _mm_set1_epi8((char)offset)));
}
INLINE vf vf_from_bytes(const int8_t *from) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)from);
    return (vf){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
                _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
INLINE __m256 from_halves(const uint16_t *from) {
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
INLINE vf vf_from_halves(const uint16_t *from) {
    return (vf){from_halves(from), from_halves(from + 8)};
}

typedef __m256i row_bytes;
INLINE row_bytes broadcast_bytes(const uint8_t *from) {
    int32_t four;
    memcpy(&four, from, 4);
    return _mm256_set1_epi32(four);
}
typedef vi weight_bytes;
INLINE weight_bytes load_bytes(const int8_t *from) { return vi_load((const int32_t *)from); }
INLINE __m256i add_half_of_products(__m256i sum, row_bytes row, __m256i weights) {
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sum, row, weights);
#else
    /* Both are at most 127, so two products never saturate 16 bits. */
    __m256i pairs = _mm256_maddubs_epi16(row, weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}
INLINE vi add_products(vi sum, row_bytes row, weight_bytes weights) {
    return (vi){add_half_of_products(sum.low, row, weights.low),
                add_half_of_products(sum.high, row, weights.high)};
}

enum { MAX_ROWS = 6, MAX_BYTE_ROWS = 4 };
