/* Rounding, reading and arithmetic for one width of word; included once for binary32 words and once for binary64 words.

   The including file defines BITS (32 or 64), and makes the processor round to nearest and keep subnormal numbers while
   these functions run.  The loops have no branches, so that compilers vectorise them.  Each element is shifted by its own
   amount, which vector instructions can do from AVX2 on. */

#define T (BITS == 32 ? 23 : 52) /* trailing significand bits */
#define HIDDEN ((Unsigned)1 << T)
#define MAGNITUDE (~((Unsigned)1 << (BITS - 1)))
#define INFINITE (MAGNITUDE >> T << T) /* the exponent field all ones */
#define FAR (BITS - 2)                 /* a shift by this much discards the whole significand */
#define CHUNK (PIECE / (BITS / 8))     /* elements */

typedef union {
    Float number;
    Unsigned bits;
} NAME(Punned);

/* Conditions are masks, all ones or all zeros: GCC 12 cannot vectorise a comparison combined with a loop-invariant flag. */
#define MASK(condition) ((condition) ? ~(Unsigned)0 : 0)
#define CHOOSE(mask, one, other) (((one) & (mask)) | ((other) & ~(mask)))

#include "word_rounding.h"
#include "word_reading.h"
#include "word_operations.h"

/* Round a chunk of words to codes. Write the codes or, if there is a reading, the words of these codes. */
static unsigned NAME(write)(const Stage *s, const Unsigned *words, void *to, const void *reading, uint8_t *flags,
                            Py_ssize_t count, uint64_t first)
{
    Unsigned scratch[CHUNK];
    const NAME(Round) to_values = !reading || flags ? NULL : s->path == FIXED ? NAME(fixed_values)
                                                         : s->path == MAGIC   ? NAME(magic_values)
                                                                             : NULL;
    const int same = (const void *)words == to; /* loops must not write into the memory that they read */
    void *codes = reading || same ? (void *)scratch : to;
    unsigned refused = 0;
    if (s->direction)
        fesetround(directions[s->direction]);
    int done = s->own && !flags && !reading && NAME(convert)(words, to, count);
    if (to_values && !same)
        done = to_values(words, NULL, to, NULL, count, s->rule) <= s->largest;
    if (!done) {
        refused = NAME(round)(s, words, codes, flags, count, first);
        if (reading)
            NAME(read)(codes, s->code_size, to, count, reading);
        else if (same)
            memcpy(to, codes, (size_t)(count * s->code_size));
    }
    if (s->direction)
        fesetround(FE_TONEAREST);
    return refused;
}

/* Run a stage of one step in chunks that stay in the first-level cache: read operands as words, apply the operation,
   round, and write codes or values.  Returns the union of marks and refusals. */
static unsigned NAME(run)(const Stage *s, const Call *c, Py_ssize_t step)
{
    unsigned all = 0;
    Unsigned operands[3][CHUNK], results[CHUNK], scratch[CHUNK];
    const Place *const places = s->places, *const out = &places[TO];
    const int many = arity[s->operation], with_flags = places[FLAGS].start != NULL;
    const uint64_t first = c->first + (uint64_t)step * (uint64_t)c->count;
    for (Py_ssize_t at = 0; at < c->count; at += CHUNK) {
        const Py_ssize_t some = c->count - at < CHUNK ? c->count - at : CHUNK;
        char *to = out->start + step * out->stride + at * out->size;
        const Unsigned *words[3] = {NULL, NULL, NULL};
        for (int i = 0; i < many; i++) {
            const Place *p = &places[i];
            const char *codes = p->start + step * p->stride + at * p->size;
            words[i] = p->reading ? operands[i] : (const Unsigned *)codes;
            if (p->reading)
                NAME(read)(codes, p->size, s->path == READ ? (Unsigned *)to : operands[i], some, p->reading);
        }
        if (s->path == READ)
            continue;
        if (s->operation) {
            uint8_t *marks = (uint8_t *)places[MARKS].start + step * places[MARKS].stride + at;
            Unsigned zero = (Unsigned)(s->negative_zero != 0) << (BITS - 1);
            Unsigned marked = NAME(operations)[s->operation](words[0], words[1], words[2], results, scratch, some, zero);
            if (marked)
                NAME(narrow)(scratch, marks, 1, some);
            else
                memset(marks, 0, (size_t)some);
            all |= (unsigned)marked;
            words[0] = results;
        }
        uint8_t *flags = with_flags ? (uint8_t *)places[FLAGS].start + step * places[FLAGS].stride + at : NULL;
        all |= NAME(write)(s, words[0], to, out->reading, flags, some, first + (uint64_t)at);
    }
    return all;
}

/* Add products to sums, one after the other: sums[i, j] takes x[k, i, j] * y[k, i, j] for k = 0, 1, …, with each
   product and each sum rounded separately, or fused.  x and y advance by dx and dy elements from one j to the next. */
static INLINE void NAME(add_row)(Float *restrict sums, const Float *x, const Float *y, Py_ssize_t dx, Py_ssize_t dy,
                                 Py_ssize_t columns, int fuse)
{
    for (Py_ssize_t j = 0; j < columns; j++)
        sums[j] = fuse ? NAME(fused)(x[j * dx], y[j * dy], sums[j]) : sums[j] + x[j * dx] * y[j * dy];
}

CLONES static void NAME(accumulate)(const Py_buffer *sums, const Py_buffer *x, const Py_buffer *y, int fuse)
{
    const Py_ssize_t columns = sums->shape[1], size = sizeof(Float);
    const Py_ssize_t dx = x->strides[2] / size, dy = y->strides[2] / size;
    for (Py_ssize_t i = 0; i < sums->shape[0]; i++)
        for (Py_ssize_t k = 0; k < x->shape[0]; k++) {
            Float *to = (Float *)sums->buf + i * columns;
            const Float *a = (const Float *)((const char *)x->buf + k * x->strides[0] + i * x->strides[1]);
            const Float *b = (const Float *)((const char *)y->buf + k * y->strides[0] + i * y->strides[1]);
            if (dx == 0 && dy == 1) /* compilers vectorise these two calls */
                fuse ? NAME(add_row)(to, a, b, 0, 1, columns, 1) : NAME(add_row)(to, a, b, 0, 1, columns, 0);
            else if (dx == 1 && dy == 1)
                fuse ? NAME(add_row)(to, a, b, 1, 1, columns, 1) : NAME(add_row)(to, a, b, 1, 1, columns, 0);
            else
                NAME(add_row)(to, a, b, dx, dy, columns, fuse);
        }
}
