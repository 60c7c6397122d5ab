/* Formats given by a table (arrays/lanes/tables.py): words of binary32 to codes, and codes to words, by looking up.

   The codes of a sign are segments of the words without sign: a segment starts where a rounding moves to the next code.
   A bucket is the words that share their upper bits. In narrow formats a bucket has at most one start inside it, so an
   entry is that start and the codes on both sides. In wide formats an entry is the number of starts up to the bucket and
   a slope; together they give the number of starts up to a word, or up to two less, which comparisons settle. */

/* Buffers of one call; each is released once. */
typedef struct {
    Py_buffer held[4];
    int count;
} Buffers;

static void release(Buffers *b)
{
    while (b->count)
        PyBuffer_Release(&b->held[--b->count]);
}

/* Take the buffers, of which only the last is written; return 0 with an exception set on failure. */
static int take_buffers(Buffers *b, PyObject **given, int count, const size_t *sizes)
{
    for (int i = 0; i < count; i++) {
        if (PyObject_GetBuffer(given[i], &b->held[i], i == count - 1 ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
            return 0;
        b->count++;
        if ((uintptr_t)b->held[i].buf % sizes[i] || (size_t)b->held[i].len % sizes[i]) {
            PyErr_SetString(PyExc_ValueError, "a buffer is not aligned, or not a whole number of elements");
            return 0;
        }
    }
    return 1;
}

#define HELD(i, type) ((type *)b.held[i].buf)
#define LENGTH(i, type) (b.held[i].len / (Py_ssize_t)sizeof(type))

CLONES static int look_up_narrow(const uint32_t *restrict words, const uint64_t *restrict entries, uint8_t *restrict codes,
                                 Py_ssize_t count, int shift)
{
    uint32_t below = ((uint32_t)1 << shift) - 1;
    uint64_t unsettled = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t entry = entries[words[i] >> shift];
        unsettled |= entry;
        codes[i] = (uint8_t)(entry >> ((words[i] & below) < (uint32_t)entry ? 32 : 48));
    }
    return (int)(unsettled >> 63);
}

CLONES static int look_up_wide(const uint32_t *restrict words, const uint64_t *restrict entries,
                               const uint32_t *restrict starts, uint16_t *restrict codes, Py_ssize_t count, int shift,
                               uint32_t last)
{
    uint32_t below = ((uint32_t)1 << shift) - 1, half = (last + 1) / 2, unsettled = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint32_t magnitude = words[i] & 0x7fffffff, minus = -(words[i] >> 31);
        uint64_t entry = entries[words[i] >> shift];
        uint32_t base = (uint32_t)entry, slope = (uint32_t)(entry >> 32);
        uint32_t rank = base + (uint32_t)((uint64_t)(magnitude & below) * slope >> 32);
        unsettled |= base;
        rank = rank < last ? rank : last;
        rank += magnitude >= starts[rank];
        rank = rank < last ? rank : last;
        rank += magnitude >= starts[rank];
        rank -= minus & half;
        codes[i] = (uint16_t)((rank ^ minus) - minus);
    }
    return unsettled >> 31;
}

/* Search for the codes of words whose entry did not settle them. */
static void search_wide(const uint32_t *words, const uint64_t *entries, const uint32_t *starts, uint16_t *codes,
                        Py_ssize_t count, int shift, uint32_t half)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (!((uint32_t)entries[words[i] >> shift] >> 31))
            continue;
        uint32_t magnitude = words[i] & 0x7fffffff, minus = -(words[i] >> 31), low = 0, high = half;
        const uint32_t *of_sign = starts + (minus & half);
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (of_sign[middle] <= magnitude)
                low = middle + 1;
            else
                high = middle;
        }
        codes[i] = (uint16_t)((low ^ minus) - minus);
    }
}

CLONES static int look_up_binades(const uint32_t *restrict words, const uint64_t *restrict entries,
                                  uint16_t *restrict codes, Py_ssize_t count)
{
    uint64_t unsettled = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t entry = entries[words[i] >> 23];
        uint32_t m = words[i] & 0x7fffff, minus = -(words[i] >> 31), low = (uint32_t)entry;
        uint32_t base = (uint32_t)(entry >> 32), shift = low >> 24 & 31, odd = low >> 29 & 1;
        uint32_t rank = base + ((m + (low & 0xffffff) + ((base + (m >> shift)) & odd)) >> shift);
        unsettled |= entry;
        codes[i] = (uint16_t)((rank ^ minus) - minus);
    }
    return (int)(unsettled >> 63);
}

PyDoc_STRVAR(narrow_doc,
             "look_up_narrow(words, entries, shift, codes) -> whether an entry was unsettled\n\n"
             "Write the code of each word of binary32. An entry, for each value of the word's bits above `shift`, has the\n"
             "first of the lower bits that gives the second code, and both codes; its last bit: it does not settle a code.");

static PyObject *narrow(PyObject *self, PyObject *args)
{
    PyObject *given[3];
    int shift, unsettled = 0;
    Buffers b = {.count = 0};
    static const size_t sizes[] = {4, 8, 1};
    if (!PyArg_ParseTuple(args, "OOiO", &given[0], &given[1], &shift, &given[2]))
        return NULL;
    if (!take_buffers(&b, given, 3, sizes)) {
        release(&b);
        return NULL;
    }
    Py_ssize_t count = LENGTH(0, uint32_t);
    int fine = shift > 8 && shift < 32 && LENGTH(1, uint64_t) == (Py_ssize_t)1 << (32 - shift) && LENGTH(2, uint8_t) == count;
    if (fine) {
        Py_BEGIN_ALLOW_THREADS
        unsettled = look_up_narrow(HELD(0, uint32_t), HELD(1, uint64_t), HELD(2, uint8_t), count, shift);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "an entry for each value of the upper bits, and a code for each word");
    release(&b);
    return fine ? PyBool_FromLong(unsettled) : NULL;
}

PyDoc_STRVAR(wide_doc,
             "look_up_wide(words, entries, shift, starts, codes)\n\n"
             "Write the code of each word of binary32, in two's complement. `starts` are the words at which ranks 1, 2, …\n"
             "start, first of positive and then, as many, of negative numbers. An entry has the index of the first start\n"
             "after the start of its bucket, and 2^32 times the starts for each word in it; the code of a word whose entry\n"
             "has an index from 2^31 on is searched.");

static PyObject *wide(PyObject *self, PyObject *args)
{
    PyObject *given[4];
    int shift;
    Buffers b = {.count = 0};
    static const size_t sizes[] = {4, 8, 4, 2};
    if (!PyArg_ParseTuple(args, "OOiOO", &given[0], &given[1], &shift, &given[2], &given[3]))
        return NULL;
    if (!take_buffers(&b, given, 4, sizes)) {
        release(&b);
        return NULL;
    }
    Py_ssize_t count = LENGTH(0, uint32_t), starts = LENGTH(2, uint32_t);
    int fine = shift > 8 && shift < 32 && LENGTH(1, uint64_t) == (Py_ssize_t)1 << (32 - shift) && starts > 0 &&
               starts < (Py_ssize_t)1 << 30 && LENGTH(3, uint16_t) == count;
    if (fine) {
        Py_BEGIN_ALLOW_THREADS
        if (look_up_wide(HELD(0, uint32_t), HELD(1, uint64_t), HELD(2, uint32_t), HELD(3, uint16_t), count, shift,
                         (uint32_t)starts - 1))
            search_wide(HELD(0, uint32_t), HELD(1, uint64_t), HELD(2, uint32_t), HELD(3, uint16_t), count, shift,
                        (uint32_t)starts / 2);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "an entry for each value of the upper bits, starts, and a code for each word");
    release(&b);
    return fine ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(binades_doc,
             "look_up_binades(words, entries, codes) -> whether an entry was unsettled\n\n"
             "Write the code of each word of binary32, in two's complement. An entry, for each sign and exponent, has a\n"
             "number to add to the significand (24 bits), a shift (5), whether to add 1 to an odd rank (1), and from bit 32\n"
             "on the rank of the binade's start; its last bit: it does not settle a code.");

static PyObject *binades(PyObject *self, PyObject *args)
{
    PyObject *given[3];
    int unsettled = 0;
    Buffers b = {.count = 0};
    static const size_t sizes[] = {4, 8, 2};
    if (!PyArg_ParseTuple(args, "OOO", &given[0], &given[1], &given[2]))
        return NULL;
    if (!take_buffers(&b, given, 3, sizes)) {
        release(&b);
        return NULL;
    }
    Py_ssize_t count = LENGTH(0, uint32_t);
    int fine = LENGTH(1, uint64_t) == 512 && LENGTH(2, uint16_t) == count;
    if (fine) {
        Py_BEGIN_ALLOW_THREADS
        unsettled = look_up_binades(HELD(0, uint32_t), HELD(1, uint64_t), HELD(2, uint16_t), count);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "an entry for each of 512 signs and exponents, and a code for each word");
    release(&b);
    return fine ? PyBool_FromLong(unsettled) : NULL;
}

#define TAKE(in, out)                                                       \
    CLONES static void take_##in##_##out(const in *restrict codes, const out *restrict table, out *restrict words, \
                                         Py_ssize_t count)                  \
    {                                                                       \
        for (Py_ssize_t i = 0; i < count; i++)                              \
            words[i] = table[codes[i]];                                     \
    }
TAKE(uint8_t, uint32_t)
TAKE(uint8_t, uint64_t)
TAKE(uint16_t, uint32_t)
TAKE(uint16_t, uint64_t)

PyDoc_STRVAR(take_doc,
             "take_words(codes, table, size, words)\n\n"
             "Write the word of each code. The table has 2^8 or 2^16 words of `size` bytes, 4 or 8; its length decides the\n"
             "size of codes.");

static PyObject *take_words(PyObject *self, PyObject *args)
{
    PyObject *given[3];
    int word;
    Buffers b = {.count = 0};
    if (!PyArg_ParseTuple(args, "OOiO", &given[0], &given[1], &word, &given[2]))
        return NULL;
    size_t size = word == 8 ? 8 : 4, sizes[] = {1, size, size};
    if (!take_buffers(&b, given, 3, sizes)) {
        release(&b);
        return NULL;
    }
    Py_ssize_t count = b.held[2].len / (Py_ssize_t)size, entries = b.held[1].len / (Py_ssize_t)size;
    int is_wide = entries == 1 << 16;
    int fine = (is_wide || entries == 1 << 8) && b.held[0].len == count * (1 + is_wide) &&
               !(is_wide && (uintptr_t)b.held[0].buf % 2);
    if (fine) {
        Py_BEGIN_ALLOW_THREADS
        if (is_wide)
            size == 4 ? take_uint16_t_uint32_t(HELD(0, uint16_t), HELD(1, uint32_t), HELD(2, uint32_t), count)
                      : take_uint16_t_uint64_t(HELD(0, uint16_t), HELD(1, uint64_t), HELD(2, uint64_t), count);
        else
            size == 4 ? take_uint8_t_uint32_t(HELD(0, uint8_t), HELD(1, uint32_t), HELD(2, uint32_t), count)
                      : take_uint8_t_uint64_t(HELD(0, uint8_t), HELD(1, uint64_t), HELD(2, uint64_t), count);
        Py_END_ALLOW_THREADS
    } else
        PyErr_SetString(PyExc_ValueError, "a table of 2^8 or 2^16 words, and as many words as codes");
    release(&b);
    return fine ? Py_NewRef(Py_None) : NULL;
}
