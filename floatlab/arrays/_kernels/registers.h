/* Look-ups in vector registers, for formats of up to 8 bits given by a table. They need an x86 processor with AVX-512
   and VBMI (Intel from 2019, AMD from 2022 on). A look-up in memory takes some instructions for each element; here each
   instruction serves 16 to 64 elements. */

#if defined(__x86_64__) && defined(__GNUC__) && FLOATLAB_MOST >= 4
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))
#define EVERY_BYTE(x) _mm512_set1_epi8((char)(x))
#define UPPER 0xffffffff00000000u /* mask of the second half of a register of bytes */

static int has_registers(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi");
}

/* Load up to 64 words; the rest become zeros. */
TARGET static INLINE void load(__m512i *words, const uint32_t *from, Py_ssize_t left)
{
    for (int i = 0; i < 4; i++, left -= 16)
        words[i] = _mm512_maskz_loadu_epi32(left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1 << left) - 1) : 0, from + 16 * i);
}

TARGET static INLINE void store(uint8_t *to, __m512i bytes, Py_ssize_t left)
{
    _mm512_mask_storeu_epi8(to, left < 64 ? ((__mmask64)1 << left) - 1 : ~(__mmask64)0, bytes);
}

/* Return the byte `which` of each of 64 words. */
TARGET static INLINE __m512i byte_of(const __m512i *words, int which)
{
    const __m512i fours = _mm512_set1_epi32(0x0c080400), step = _mm512_set_epi32(7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i at = _mm512_add_epi8(_mm512_add_epi8(fours, EVERY_BYTE(which)), _mm512_mullo_epi32(step, _mm512_set1_epi32(0x10101010)));
    return _mm512_mask_blend_epi8(UPPER, _mm512_permutex2var_epi8(words[0], at, words[1]),
                                  _mm512_permutex2var_epi8(words[2], at, words[3]));
}

/* Look up bytes in a table of 256. */
TARGET static INLINE __m512i look_up_bytes(const __m512i *table, __m512i at)
{
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), _mm512_permutex2var_epi8(table[0], at, table[1]),
                                  _mm512_permutex2var_epi8(table[2], at, table[3]));
}

/* A binary search among 31 starts, in the order of the words' values. Each decision sets one bit of `at`, the lowest bit
   first. So the starts of a level, and the codes, are stored in bit-reversed order. */
APART TARGET static LOOP(loop_few)
{
    enum { LEVELS = 5 };
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i codes = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)((const int32_t *)table + (1 << LEVELS))));
    __m512i levels[LEVELS], words[4];
    for (int n = 0; n < LEVELS; n++) {
        __m512i at = _mm512_and_si512(lanes, _mm512_set1_epi32((1 << n) - 1));
        levels[n] = _mm512_i32gather_epi32(at, (const int32_t *)table + (1 << n), 4);
    }
    for (Py_ssize_t i = 0; i < count; i += 64) {
        load(words, (const uint32_t *)from + i, count - i);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            __m512i key = _mm512_srli_epi32(_mm512_srai_epi32(words[j], 31), 1);
            key = _mm512_xor_si512(key, words[j]); /* signed integers in the order of values */
            __m512i at = _mm512_maskz_set1_epi32(_mm512_cmpge_epi32_mask(key, levels[0]), 1);
#pragma GCC unroll 4
            for (int n = 1; n < LEVELS; n++) {
                __mmask16 reached = _mm512_cmpge_epi32_mask(key, _mm512_permutexvar_epi32(at, levels[n]));
                at = _mm512_mask_or_epi32(at, reached, at, _mm512_set1_epi32(1 << n));
            }
            words[j] = at;
        }
        store((uint8_t *)to + i, _mm512_permutexvar_epi8(byte_of(words, 0), codes), count - i);
    }
    return 0;
}

/* The significand of each element becomes a byte: its upper 6 bits, and a last bit that is set if any lower bit is. The
   rank is the rank of the binade's start plus (byte + addend + odd) >> shift. `odd` is 1 if the last kept bit is 1 and
   the table says that its parity matters. */
APART TARGET static LOOP(loop_bytes)
{
    uint8_t offset[64], power[64], kept[64];
    for (int i = 0; i < 64; i++) {
        offset[i] = (uint8_t)(8 * (i & 7)); /* bits before a byte, in its eight bytes */
        power[i] = (uint8_t)(i & 8 ? 0 : 1 << (i & 7));
        kept[i] = (uint8_t)(0xff >> (i & 7));
    }
    const __m512i offsets = _mm512_loadu_si512(offset), powers = _mm512_loadu_si512(power), masks = _mm512_loadu_si512(kept);
    __m512i tables[4][4], words[4], most = _mm512_setzero_si512();
    __mmask64 subnormal = 0;
    for (int i = 0; i < 16; i++)
        tables[i / 4][i % 4] = _mm512_loadu_si512((const uint8_t *)table + 64 * i);
    for (Py_ssize_t i = 0; i < count; i += 64) {
        load(words, (const uint32_t *)from + i, count - i);
        __m512i m = byte_of(words, 2), exponent = byte_of(words, 3);
        __mmask64 minus = _mm512_movepi8_mask(exponent), last = _mm512_movepi8_mask(m), rest = 0;
        for (int j = 0; j < 4; j++)
            rest |= (__mmask64)_mm512_test_epi32_mask(words[j], _mm512_set1_epi32(0x1ffff)) << 16 * j;
        exponent = _mm512_add_epi8(exponent, exponent);
        exponent = _mm512_mask_add_epi8(exponent, last, exponent, EVERY_BYTE(1));
        m = _mm512_and_si512(m, EVERY_BYTE(0x7e));
        m = _mm512_mask_add_epi8(m, rest, m, EVERY_BYTE(1));
        most = _mm512_max_epu8(most, exponent);
        subnormal |= _mm512_mask_test_epi8_mask(_mm512_testn_epi8_mask(exponent, exponent), m, m);
        __m512i add = look_up_bytes(tables[0], exponent), shift = look_up_bytes(tables[1], exponent);
        __mmask64 odd = _mm512_test_epi8_mask(m, _mm512_shuffle_epi8(powers, shift)); /* not if bit 3 of shift is set */
        m = _mm512_add_epi8(m, add);
        m = _mm512_mask_add_epi8(m, odd, m, EVERY_BYTE(1));
        m = _mm512_multishift_epi64_epi8(_mm512_add_epi8(_mm512_and_si512(shift, EVERY_BYTE(7)), offsets), m);
        m = _mm512_and_si512(m, _mm512_shuffle_epi8(masks, shift)); /* each byte shifted to the right */
        m = _mm512_add_epi8(m, look_up_bytes(tables[2], exponent));
        m = _mm512_mask_add_epi8(m, minus, m, EVERY_BYTE(0x80));
        store((uint8_t *)to + i, look_up_bytes(tables[3], m), count - i);
    }
    return (_mm512_cmpeq_epi8_mask(most, EVERY_BYTE(0xff)) != 0) | (subnormal != 0) << 1;
}
#else
static int has_registers(void)
{
    return 0;
}

static LOOP(loop_few)
{
    return 0;
}

#define loop_bytes loop_few
#endif

static int few_fits(const Given *g)
{
    return has_registers() && LENGTH(1, int32_t) == 40 && LENGTH(2, uint8_t) == LENGTH(0, uint32_t);
}

static int bytes_fit(const Given *g)
{
    return has_registers() && LENGTH(1, uint8_t) == 1024 && LENGTH(2, uint8_t) == LENGTH(0, uint32_t);
}

PyDoc_STRVAR(few_doc,
             "look_up_few(words, table, codes, 0) -> 0\n\n"
             "Write the code of each word of binary32, by a binary search among 31 starts of codes. Words are compared as\n"
             "integers in the order of their values: -0 is below 0, and negative NaNs are lowest. From index 1 on, the table has\n"
             "levels of 1, 2, 4, 8 and 16 starts, each in the order of reversed bits. From index 32 on, it has the codes as\n"
             "bytes. The index of a word's code is the number of starts up to this word, with the bits of the number reversed.");

static PyObject *few(PyObject *self, PyObject *args)
{
    static const Lookup lookup = {3, {4, 4, 1}, few_fits, loop_few, "needs AVX-512 with VBMI, 40 numbers, a code for each word"};
    return look_up(args, &lookup);
}

PyDoc_STRVAR(bytes_doc,
             "look_up_bytes(words, tables, codes, 0) -> 1 if a word was infinity or NaN, plus 2 if one was subnormal\n\n"
             "Write the code of each word of binary32. The first three tables have a number for each exponent: a number to add\n"
             "to the first 7 bits of the significand (the last of these bits is set if any lower bit is); a right shift, plus 8\n"
             "if the parity of the last kept bit does not matter; and the rank of the binade's start. The fourth table has the\n"
             "code of each rank, first of positive and then of negative numbers. Codes of infinities and NaNs are undefined.");

static PyObject *bytes(PyObject *self, PyObject *args)
{
    static const Lookup lookup = {3, {4, 1, 1}, bytes_fit, loop_bytes, "needs AVX-512 with VBMI, 4 tables, a code for each word"};
    return look_up(args, &lookup);
}

PyDoc_STRVAR(registers_doc, "has_registers() -> whether look_up_few and look_up_bytes can run on this processor");

static PyObject *registers(PyObject *self, PyObject *args)
{
    return PyBool_FromLong(has_registers());
}
