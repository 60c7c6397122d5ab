/* Conversions in hardware, in the direction of the processor: binary32 to binary16 (x86 with F16C), binary64 to binary32.
   They return 0 if the processor lacks the instruction. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

static int has_f16c;

/* GCC 10 and Clang 17 do not accept "f16c" in __builtin_cpu_supports. */
static void look_at_processor(void)
{
    unsigned a, b, c, d;
    __builtin_cpu_init();
    has_f16c = __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

APART __attribute__((target("avx,f16c"))) static void to_halves(const uint32_t *words, uint16_t *codes, Py_ssize_t count)
{
    Py_ssize_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(codes + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps((const float *)words + i), _MM_FROUND_CUR_DIRECTION));
    for (; i < count; i++) {
        __m128 one = _mm_castsi128_ps(_mm_cvtsi32_si128((int)words[i]));
        codes[i] = (uint16_t)_mm_cvtsi128_si32(_mm_cvtps_ph(one, _MM_FROUND_CUR_DIRECTION));
    }
}

static int convert32(const uint32_t *words, void *codes, Py_ssize_t count)
{
    if (has_f16c)
        to_halves(words, codes, count);
    return has_f16c;
}
#else
static void look_at_processor(void)
{
}

static int convert32(const uint32_t *words, void *codes, Py_ssize_t count)
{
    return 0;
}
#endif

CLONES static int convert64(const uint64_t *restrict words, void *restrict to, Py_ssize_t count)
{
    uint32_t *restrict codes = to;
    for (Py_ssize_t i = 0; i < count; i++) {
        union { uint64_t bits; double number; } wide = {words[i]};
        union { uint32_t bits; float number; } narrow = {.number = (float)wide.number};
        codes[i] = narrow.bits;
    }
    return 1;
}
