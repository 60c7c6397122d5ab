/* Blocks of binary32 words: finds the largest magnitude, computes the code of the scale, and divides and rounds the
   elements.

   It supports only floatlab's exact scale rules, and elements of up to 8 bits that saturate and are rounded by RNE, RNA
   or RTZ (arrays/lanes/compiled_blocks.py says when it is used). `write32` and `write64` do the rounding. */

enum { GROUP = 1024 }; /* elements computed at a time, so few that they stay in the first-level cache */

/* The parameters of a recipe, in the order in which arrays/lanes/compiled_blocks.py packs them. */
typedef struct {
    Stage element, scale;   /* how elements (words of binary32) and scales (words of binary64) are rounded */
    int64_t size;           /* elements of a block */
    int64_t by_exponent;    /* whether `by_field` gives a scale's code; the index is the exponent field of amax + `carry` */
    int64_t carry, normal;  /* `normal`: `by_field` is not valid for magnitudes below this word */
    int64_t by_power;       /* scales are powers of two */
    int64_t in_double;      /* elements are multiplied by scales in binary64 */
    int64_t direct;         /* whether the values of elements can be written without computing their codes */
    int64_t least, nan;     /* codes of the smallest scale, and of the scale of blocks with an infinity or a NaN */
    int64_t most;           /* the word of the largest element */
    double divisor, tensor; /* amax is divided by `divisor` and by the tensor scale */
} BlockRule;

/* The arguments of a call. */
typedef struct {
    BlockRule rule;
    Py_ssize_t count;
    const uint32_t *x;
    const uint8_t *by_field;    /* 256 codes of scales */
    const void *scale_reading;  /* decodes scales to words of binary64 */
    const uint32_t *elements;   /* 256 words */
    const uint8_t *stored;      /* the stored code of each of 256 codes; NULL if it is the same code */
    uint8_t *scales, *codes;    /* codes or values may be NULL */
    float *values;
} BlockCall;

/* Call a loop with the block size as a constant if the size is a common one; only constant sizes make the inner loops
   fast. */
#define FOR_SIZE(size, loop, ...)                                                                                      \
    do {                                                                                                               \
        if (size == 16)                                                                                                \
            loop(__VA_ARGS__, 16);                                                                                     \
        else if (size == 32)                                                                                           \
            loop(__VA_ARGS__, 32);                                                                                     \
        else                                                                                                           \
            loop(__VA_ARGS__, size);                                                                                   \
    } while (0)

static INLINE void largest_loop(const uint32_t *restrict x, Py_ssize_t blocks, uint32_t *restrict largest, Py_ssize_t size)
{
    for (Py_ssize_t k = 0; k < blocks; k++) {
        uint32_t most = 0;
        for (Py_ssize_t i = 0; i < size; i++) {
            uint32_t magnitude = x[k * size + i] & 0x7fffffff;
            most = magnitude > most ? magnitude : most;
        }
        largest[k] = most;
    }
}

CLONES static void largest_of(const uint32_t *restrict x, Py_ssize_t blocks, Py_ssize_t size, uint32_t *restrict largest)
{
    FOR_SIZE(size, largest_loop, x, blocks, largest);
}

/* Return a word limited to the largest element, since elements saturate. The result is zero if `keep` is zero, as in
   blocks with infinities or NaNs. */
static INLINE uint32_t clamped(uint32_t word, uint32_t most, uint32_t keep)
{
    uint32_t magnitude = word & 0x7fffffff;
    return ((magnitude < most ? magnitude : most) | (word & 0x80000000)) & keep;
}

/* Multiply x by the reciprocals of scales that are powers of two. */
static INLINE void shift_loop(const uint32_t *restrict x, const double *restrict by, Py_ssize_t blocks, uint32_t most,
                              uint32_t *restrict scaled, Py_ssize_t size)
{
    for (Py_ssize_t k = 0; k < blocks; k++) {
        const uint32_t keep = by[k] == by[k] ? ~(uint32_t)0 : 0;
        const float reciprocal = (float)(1 / by[k]);
        for (Py_ssize_t i = 0; i < size; i++) {
            Punned32 word = {.bits = x[k * size + i]};
            word.number *= reciprocal;
            scaled[k * size + i] = clamped(word.bits, most, keep);
        }
    }
}

/* Divide x by any scales in binary64, and round the quotients to odd into binary32. This does not change the next
   rounding. */
static INLINE void divide_loop(const uint32_t *restrict x, const double *restrict by, Py_ssize_t blocks, uint32_t most,
                               uint32_t *restrict scaled, Py_ssize_t size)
{
    const uint64_t lost = ((uint64_t)1 << 29) - 1; /* the bits of a significand that binary32 lacks */
    for (Py_ssize_t k = 0; k < blocks; k++) {
        const uint32_t keep = by[k] == by[k] ? ~(uint32_t)0 : 0;
        for (Py_ssize_t i = 0; i < size; i++) {
            Punned32 from = {.bits = x[k * size + i]}, word;
            Punned64 quotient = {.number = from.number / by[k]};
            quotient.bits |= ((quotient.bits & lost) + lost) & (lost + 1);
            quotient.bits &= ~lost;
            word.number = (float)quotient.number;
            scaled[k * size + i] = clamped(word.bits, most, keep);
        }
    }
}

CLONES static void scale_down(const BlockRule *r, const uint32_t *restrict x, const double *restrict by, Py_ssize_t blocks,
                              Py_ssize_t size, uint32_t *restrict scaled)
{
    const uint32_t most = (uint32_t)r->most;
    if (r->by_power)
        FOR_SIZE(size, shift_loop, x, by, blocks, most, scaled);
    else
        FOR_SIZE(size, divide_loop, x, by, blocks, most, scaled);
}

static INLINE void multiply_loop(const float *restrict elements, const double *restrict by, Py_ssize_t blocks,
                                 float *restrict values, int in_double, Py_ssize_t size)
{
    for (Py_ssize_t k = 0; k < blocks; k++) {
        const float single = (float)by[k];
        for (Py_ssize_t i = 0; i < size; i++)
            values[k * size + i] = in_double ? (float)(elements[k * size + i] * by[k]) : elements[k * size + i] * single;
    }
}

CLONES static void scale_up(const BlockRule *r, const float *restrict elements, const double *restrict by, Py_ssize_t blocks,
                            Py_ssize_t size, float *restrict values)
{
    if (r->in_double)
        FOR_SIZE(size, multiply_loop, elements, by, blocks, values, 1);
    else
        FOR_SIZE(size, multiply_loop, elements, by, blocks, values, 0);
}

#define RAISE_CODES(Code)                                                                                              \
    for (Py_ssize_t k = 0; k < blocks; k++) {                                                                          \
        Code *code = (Code *)to + k, least = (Code)r->least;                                                           \
        *code = largest[k] >= 0x7f800000 ? (Code)r->nan : *code < least ? least : *code;                               \
    }

/* Write the codes of scales; return whether the table was valid for all magnitudes. */
static int write_scales(const BlockCall *c, const uint32_t *largest, Py_ssize_t blocks, uint8_t *to)
{
    const BlockRule *r = &c->rule;
    if (r->by_exponent) {
        int known = 1;
        for (Py_ssize_t k = 0; k < blocks; k++) {
            uint8_t code = c->by_field[(largest[k] + (uint32_t)r->carry) >> 23 & 0xff];
            known &= largest[k] >= (uint32_t)r->normal || !largest[k];
            to[k] = largest[k] >= 0x7f800000 ? (uint8_t)r->nan : largest[k] ? code : (uint8_t)r->least;
        }
        return known;
    }
    uint64_t wanted[GROUP];
    for (Py_ssize_t k = 0; k < blocks; k++) {
        Punned32 amax = {.bits = largest[k] < 0x7f800000 ? largest[k] : 0};
        Punned64 quotient = {.number = amax.number / r->divisor};
        wanted[k] = quotient.bits;
    }
    write64(&r->scale, wanted, to, NULL, NULL, blocks, 0);
    if (r->scale.code_size == 1)
        RAISE_CODES(uint8_t)
    else if (r->scale.code_size == 2)
        RAISE_CODES(uint16_t)
    else
        RAISE_CODES(uint32_t)
    return 1;
}

/* Round the elements of some blocks, or of a part of a block, from index `first` on. */
static void write_elements(const BlockCall *c, Py_ssize_t first, Py_ssize_t blocks, Py_ssize_t size, const double *by)
{
    const BlockRule *r = &c->rule;
    const Py_ssize_t count = blocks * size;
    uint32_t scaled[GROUP], elements[GROUP];
    uint8_t rounded[GROUP], *codes = c->codes ? c->codes + first : rounded;
    scale_down(r, c->x + first, by, blocks, size, scaled);
    if (c->codes || !r->direct) {
        write32(&r->element, scaled, codes, NULL, NULL, count, 0);
        if (c->values)
            look_up32(codes, elements, count, c->elements);
        for (Py_ssize_t i = 0; i < count && c->codes && c->stored; i++)
            codes[i] = c->stored[codes[i]];
    } else
        write32(&r->element, scaled, elements, c->elements, NULL, count, 0);
    if (c->values)
        scale_up(r, (const float *)elements, by, blocks, size, c->values + first);
}

/* Round all blocks of a call; return whether `by_field` was valid for all of them. */
static int round_blocks(const BlockCall *c)
{
    const BlockRule *r = &c->rule;
    const Py_ssize_t size = (Py_ssize_t)r->size, at_once = size < GROUP ? GROUP / size : 1;
    const Py_ssize_t rows = c->count / size, code_size = (Py_ssize_t)r->scale.code_size;
    uint32_t largest[GROUP];
    union {
        uint64_t words[GROUP];
        double numbers[GROUP];
    } by;
    for (Py_ssize_t row = 0; row < rows; row += at_once) {
        const Py_ssize_t blocks = rows - row < at_once ? rows - row : at_once;
        uint8_t *scales = c->scales + row * code_size;
        largest_of(c->x + row * size, blocks, size, largest);
        if (!write_scales(c, largest, blocks, scales))
            return 0;
        read64(scales, code_size, by.words, blocks, c->scale_reading);
        for (Py_ssize_t k = 0; k < blocks; k++)
            by.numbers[k] *= r->tensor;
        if (size <= GROUP)
            write_elements(c, row * size, blocks, size, by.numbers);
        else
            for (Py_ssize_t at = 0; at < size; at += GROUP)
                write_elements(c, row * size + at, 1, size - at < GROUP ? size - at : GROUP, by.numbers);
    }
    return 1;
}

/* Whether a stage rounds words to codes, without invalid memory accesses. */
static int is_rounding(const Stage *s, int64_t word_size)
{
    return s->word_size == word_size && has_kernel(word_size, s->code_size) && s->path > WHOLE - 1 && s->path < READ &&
           !s->drawn && s->path != DRAWN && !s->own && s->direction >= 0 && s->direction < 4 &&
           (word_size == 4 ? is_sound32(s->rule) : is_sound64(s->rule));
}

/* Return an error message for a call, or NULL if the call makes no invalid memory access. `held`: x, by_field,
   scale_reading, elements, stored, scales, codes, values. */
static const char *fault_of_blocks(BlockCall *c, const Py_buffer *held)
{
    const BlockRule *r = &c->rule;
    if (!is_rounding(&r->element, 4) || !is_rounding(&r->scale, 8) || r->element.code_size != 1 || r->scale.code_size > 4 ||
        r->size < 1 || r->carry < 0 || r->carry >= 1 << 23 || (r->by_exponent && r->scale.code_size != 1))
        return "a rule has a number out of range";
    c->count = held[0].len / 4;
    if (r->size > c->count ? c->count != 0 : c->count % r->size)
        return "x is not a whole number of blocks";
    const Py_ssize_t rows = c->count / (Py_ssize_t)r->size, code_size = (Py_ssize_t)r->scale.code_size;
    const Py_ssize_t reading = code_size == 1 ? 256 * 8 : (Py_ssize_t)sizeof(Reading64);
    const Py_ssize_t lengths[] = {4 * c->count, 256, reading, 256 * 4, 256, rows * code_size, c->count, 4 * c->count};
    const uintptr_t sizes[] = {4, 1, 8, 4, 1, (uintptr_t)code_size, 1, 4};
    const int may_lack[] = {0, !r->by_exponent, 0, !held[7].buf, 1, 0, 1, 1};
    for (int i = 0; i < 8; i++)
        if (!(held[i].buf || !lengths[i] ? held[i].len == lengths[i] && (uintptr_t)held[i].buf % sizes[i] == 0 : may_lack[i]))
            return "a buffer is not aligned, or has another length";
    if (code_size > 1 && !is_readable64(held[2].buf))
        return "a reading has a number out of range";
    return NULL;
}

/* The largest magnitude in blocks without infinities and NaNs. */
static uint32_t largest_finite(const uint32_t *x, Py_ssize_t count, Py_ssize_t size)
{
    uint32_t most = 0, largest;
    largest_of(x, 1, count, &largest);
    if (largest < 0x7f800000)
        return largest;
    for (Py_ssize_t at = 0; at < count; at += size) {
        largest_of(x + at, 1, size, &largest);
        most = largest < 0x7f800000 && largest > most ? largest : most;
    }
    return most;
}

PyDoc_STRVAR(largest_doc,
             "largest_finite(x, size) -> word\n\n"
             "Return the largest magnitude in blocks of binary32 words; blocks with infinities or NaNs are left out.");

static PyObject *take_largest(PyObject *self, PyObject *args)
{
    Py_buffer x;
    Py_ssize_t size;
    uint32_t most = 0;
    if (!PyArg_ParseTuple(args, "y*n", &x, &size))
        return NULL;
    const int fine = x.len % 4 == 0 && (uintptr_t)x.buf % 4 == 0 && size > 0 && x.len / 4 % size == 0;
    if (fine) {
        Py_BEGIN_ALLOW_THREADS
        most = largest_finite(x.buf, x.len / 4, size);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "needs aligned words of binary32, in whole blocks");
    PyBuffer_Release(&x);
    return fine ? PyLong_FromUnsignedLong(most) : NULL;
}

PyDoc_STRVAR(blocks_doc,
             "round_blocks(rule, x, by_field, scale_reading, elements, stored, scales, codes, values)\n"
             "-> whether `by_field` was valid for all blocks\n\n"
             "Round blocks of binary32 words by a BlockRule. The codes of scales are written to `scales`, the codes of elements\n"
             "to `codes` and their values to `values`. `codes`, `values`, `by_field` and `stored` may be None.");

static PyObject *take_blocks(PyObject *self, PyObject *args)
{
    PyObject *given[8], *result = NULL;
    Py_buffer rule, held[8] = {{0}};
    BlockCall c = {.count = 0};
    if (!PyArg_ParseTuple(args, "y*OOOOOOOO", &rule, &given[0], &given[1], &given[2], &given[3], &given[4], &given[5], &given[6],
                          &given[7]))
        return NULL;
    int fine = rule.len == (Py_ssize_t)sizeof c.rule;
    if (!fine)
        PyErr_SetString(PyExc_ValueError, "no BlockRule");
    for (int i = 0; i < 8 && fine; i++)
        if (given[i] != Py_None)
            fine = PyObject_GetBuffer(given[i], &held[i], i < 5 ? PyBUF_SIMPLE : PyBUF_WRITABLE) == 0;
    if (fine) {
        memcpy(&c.rule, rule.buf, sizeof c.rule);
        const char *fault = fault_of_blocks(&c, held);
        if (fault)
            PyErr_SetString(PyExc_ValueError, fault);
        else {
            c.x = held[0].buf, c.by_field = held[1].buf, c.scale_reading = held[2].buf, c.elements = held[3].buf;
            c.stored = held[4].buf, c.scales = held[5].buf, c.codes = held[6].buf, c.values = held[7].buf;
            fenv_t mode;
            int known = 1;
            Py_BEGIN_ALLOW_THREADS
            fegetenv(&mode);
            fesetenv(FE_DFL_ENV);
            known = !c.count || round_blocks(&c);
            fesetenv(&mode);
            Py_END_ALLOW_THREADS
            result = PyBool_FromLong(known);
        }
    }
    for (int i = 0; i < 8; i++)
        PyBuffer_Release(&held[i]);
    PyBuffer_Release(&rule);
    return result;
}

PyDoc_STRVAR(multiply_doc,
             "scale_elements(codes, elements, by, values, in_double)\n\n"
             "Decode codes by a table of 256 binary32 words, multiply each number by the float64 factor of its block, and write\n"
             "the products as binary32. Each product is rounded once, from binary64 or in binary32.");

static PyObject *scale_elements(PyObject *self, PyObject *args)
{
    Py_buffer held[4];
    int in_double;
    if (!PyArg_ParseTuple(args, "y*y*y*w*p", &held[0], &held[1], &held[2], &held[3], &in_double))
        return NULL;
    const uint8_t *codes = held[0].buf;
    const double *by = held[2].buf;
    float *values = held[3].buf;
    const Py_ssize_t count = held[0].len, blocks = held[2].len / 8, size = blocks ? count / blocks : 0;
    const BlockRule rule = {.in_double = in_double};
    const int fine = held[1].len == 1024 && held[2].len == 8 * blocks && blocks * size == count && held[3].len == 4 * count &&
                     ((uintptr_t)held[1].buf | (uintptr_t)values) % 4 == 0 && (uintptr_t)by % 8 == 0;
    if (fine) {
        uint32_t words[GROUP];
        const Py_ssize_t at_once = !size ? 0 : size < GROUP ? GROUP / size : 1;
        fenv_t mode;
        Py_BEGIN_ALLOW_THREADS
        fegetenv(&mode);
        fesetenv(FE_DFL_ENV);
        for (Py_ssize_t row = 0; row < blocks && size; row += at_once)
            for (Py_ssize_t at = 0; at < size; at += GROUP) {
                const Py_ssize_t many = blocks - row < at_once ? blocks - row : at_once, first = row * size + at;
                const Py_ssize_t some = size - at < GROUP ? size - at : GROUP;
                look_up32(codes + first, words, many * some, held[1].buf);
                scale_up(&rule, (const float *)words, by + row, many, some, values + first);
            }
        fesetenv(&mode);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "needs a table of 256 words, whole blocks, and a value for each code");
    for (int i = 0; i < 4; i++)
        PyBuffer_Release(&held[i]);
    return fine ? Py_NewRef(Py_None) : NULL;
}
