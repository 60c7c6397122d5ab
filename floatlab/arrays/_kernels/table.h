/* Formats given by a table (arrays/lanes/tables.py): words of binary32 to codes, and codes to words, by looking up.

   A segment is a range of words, without their sign, that are rounded to the same code. Its start is its first word.
   A bucket consists of all words with the same upper bits, and has an entry in a table. In narrow formats, at most one
   start is inside a bucket; the entry has this start, and the codes before and after it. In wide formats, an entry is a
   straight line, which gives the number of starts up to a word, or one less; a comparison with a start decides. */

/* The arguments of a call: buffers, of which the last is written to, and a number. */
typedef struct {
    Py_buffer held[4];
    int count;
    long number;
} Given;

#define LENGTH(i, type) (g->held[i].len / (Py_ssize_t)sizeof(type))

/* A loop from words to codes, or from codes to words, with one or two tables. */
#define LOOP(name)                                                                                                     \
    int name(const void *restrict from, const void *restrict table, const void *restrict second, void *restrict to,    \
             Py_ssize_t count, int number)

/* A look-up: the number of its buffers, the sizes of their elements, a test of their lengths, the loop, and the message
   if the test fails. */
typedef struct {
    int count;
    size_t sizes[4];
    int (*fits)(const Given *);
    LOOP((*loop));
    const char *fault;
} Lookup;

/* Take the buffers of a tuple, and the number after them; return 0 with an exception set on failure. */
static int take_given(Given *g, PyObject *args, const Lookup *lookup)
{
    if (PyTuple_Size(args) != lookup->count + 1) {
        PyErr_SetString(PyExc_TypeError, "buffers, and a number after them");
        return 0;
    }
    g->number = PyLong_AsLong(PyTuple_GetItem(args, lookup->count));
    if (g->number == -1 && PyErr_Occurred())
        return 0;
    for (int i = 0; i < lookup->count; i++) {
        int flags = i == lookup->count - 1 ? PyBUF_WRITABLE : PyBUF_SIMPLE;
        if (PyObject_GetBuffer(PyTuple_GetItem(args, i), &g->held[i], flags) < 0)
            return 0;
        g->count++;
        if ((uintptr_t)g->held[i].buf % lookup->sizes[i] || (size_t)g->held[i].len % lookup->sizes[i]) {
            PyErr_SetString(PyExc_ValueError, "a buffer is not aligned, or not a whole number of elements");
            return 0;
        }
    }
    int fine = lookup->fits(g);
    if (!fine)
        PyErr_SetString(PyExc_ValueError, lookup->fault);
    return fine;
}

static PyObject *look_up(PyObject *args, const Lookup *lookup)
{
    Given g = {.count = 0};
    const Py_buffer *held = g.held;
    int said = 0, fine = take_given(&g, args, lookup), last = lookup->count - 1;
    if (fine) {
        Py_BEGIN_ALLOW_THREADS
        said = lookup->loop(held[0].buf, held[1].buf, held[2].buf, held[last].buf, held[0].len / (Py_ssize_t)lookup->sizes[0],
                            (int)g.number);
        Py_END_ALLOW_THREADS
    }
    while (g.count)
        PyBuffer_Release(&g.held[--g.count]);
    return fine ? PyLong_FromLong(said) : NULL;
}

static int has_entries(const Given *g, Py_ssize_t entries)
{
    return g->number > 8 && g->number < 32 && entries == (Py_ssize_t)1 << (32 - g->number);
}

CLONES static LOOP(loop_narrow)
{
    const uint32_t *restrict words = from, below = ((uint32_t)1 << number) - 1;
    const uint64_t *restrict entries = table;
    uint8_t *restrict codes = to;
    uint64_t unsettled = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t entry = entries[words[i] >> number];
        unsettled |= entry;
        codes[i] = (uint8_t)(entry >> ((words[i] & below) < (uint32_t)entry ? 32 : 48));
    }
    return (int)(unsettled >> 63);
}

static int narrow_fits(const Given *g)
{
    return has_entries(g, LENGTH(1, uint64_t)) && LENGTH(2, uint8_t) == LENGTH(0, uint32_t);
}

PyDoc_STRVAR(narrow_doc,
             "look_up_narrow(words, entries, codes, shift) -> whether an entry was unsettled\n\n"
             "Write the code of each word of binary32. Each value of the word's bits above `shift` has an entry: two codes, and\n"
             "the first value of the lower bits that gives the second code. If its bit 63 is set, it settles no code.");

static PyObject *narrow(PyObject *self, PyObject *args)
{
    static const Lookup lookup = {3, {4, 8, 1}, narrow_fits, loop_narrow,
                                  "an entry for each value of the upper bits, and a code for each word"};
    return look_up(args, &lookup);
}

enum { FRACTION = 26 }; /* binary digits of a line's height after the point */

/* The code of a word by a binary search among the starts of its bucket: `line` has the index of the first start, and their number. */
APART static uint16_t search_starts(uint32_t word, uint64_t line, const uint32_t *starts)
{
    uint32_t low = (uint16_t)(line >> (FRACTION + 16)), high = low + (uint16_t)line;
    const uint32_t first = low & 1 << 15, minus = (uint32_t)((int32_t)word >> 31);
    high = high < 1 << 16 ? high : 1 << 16;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (starts[middle] <= (word & 0x7fffffff))
            low = middle + 1;
        else
            high = middle;
    }
    return (uint16_t)(((low - first) ^ minus) - minus);
}

/* Loops that look up are separate from those that compute: the look-ups use no vector instructions, since gathering is
   slow. */
SCALAR static void take_lines(const uint32_t *restrict words, const uint64_t *restrict entries, uint64_t *restrict lines,
                              Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        lines[i] = entries[words[i] >> 16];
}

SCALAR static void take_starts(const uint16_t *restrict at, const uint32_t *restrict starts, uint32_t *restrict next,
                               Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++)
        next[i] = starts[at[i]];
}

/* Evaluate the lines; return whether the code of a word must be found by a search. */
CLONES static int evaluate(const uint32_t *restrict words, const uint64_t *restrict lines, uint16_t *restrict at, Py_ssize_t count)
{
    uint64_t unsettled = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        at[i] = (uint16_t)((lines[i] + (uint64_t)(uint16_t)lines[i] * (words[i] << 16)) >> (FRACTION + 16));
        unsettled |= lines[i];
    }
    return (int)(unsettled >> 63);
}

/* Step to the next start if the word reaches it, and form the two's complement of the sign and the rank. */
CLONES static void step(const uint32_t *restrict words, const uint32_t *restrict next, uint16_t *restrict codes, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        uint16_t minus = (uint16_t)((int32_t)words[i] >> 31), reached = (words[i] & 0x7fffffff) >= next[i];
        codes[i] = (uint16_t)((((codes[i] & 0x7fff) + reached) ^ minus) - minus);
    }
}

static LOOP(loop_wide)
{
    enum { SOME = 512, EIGHT = 8 };
    const uint32_t *words = from;
    uint16_t *codes = to;
    uint64_t lines[SOME] = {0};
    uint32_t next[SOME];
    for (Py_ssize_t i = 0; i < count; i += SOME, words += SOME, codes += SOME) {
        Py_ssize_t some = count - i < SOME ? count - i : SOME;
        take_lines(words, table, lines, some);
        int unsettled = evaluate(words, lines, codes, some);
        take_starts(codes, second, next, some);
        step(words, next, codes, some);
        for (Py_ssize_t k = 0; k < some && unsettled; k += EIGHT) { /* few are searched, so look at several at once */
            uint64_t any = 0;
            for (Py_ssize_t j = k; j < k + EIGHT; j++)
                any |= lines[j];
            for (Py_ssize_t j = k; j < k + EIGHT && j < some && any >> 63; j++)
                if (lines[j] >> 63)
                    codes[j] = search_starts(words[j], lines[j], second);
        }
    }
    return 0;
}

static int wide_fits(const Given *g)
{
    return has_entries(g, LENGTH(1, uint64_t)) && g->number == 16 && LENGTH(2, uint32_t) == 1 << 16 &&
           LENGTH(3, uint16_t) == LENGTH(0, uint32_t);
}

PyDoc_STRVAR(wide_doc,
             "look_up_wide(words, entries, starts, codes, 16) -> 0\n\n"
             "Write the code of each word of binary32, in two's complement. `starts` are the words, without sign, at which\n"
             "ranks 1, 2, … start: 2^15, and 2^15 others for numbers of the other sign, if these differ. An entry, for each\n"
             "value of a word's upper bits, has a line: from bit 16 on its height at the first word, and in the lower bits\n"
             "its slope, in units of 2^-26. The line's integer part is the index of the last start up to a word, plus 0 or\n"
             "1. If bit 63 is set, the height is the index of a first start, and the slope the number of starts to search.");

static PyObject *wide(PyObject *self, PyObject *args)
{
    static const Lookup lookup = {4, {4, 8, 4, 2}, wide_fits, loop_wide,
                                  "an entry for each value of the upper bits, 2^16 starts, and a code for each word"};
    return look_up(args, &lookup);
}

CLONES static LOOP(loop_binades)
{
    const uint32_t *restrict words = from;
    const uint64_t *restrict entries = table;
    uint16_t *restrict codes = to;
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

static int binades_fit(const Given *g)
{
    return has_entries(g, LENGTH(1, uint64_t)) && g->number == 23 && LENGTH(2, uint16_t) == LENGTH(0, uint32_t);
}

PyDoc_STRVAR(binades_doc,
             "look_up_binades(words, entries, codes, 23) -> whether the code of a word was not found\n\n"
             "Write the code of each word of binary32, in two's complement. There is an entry for each sign and exponent. It\n"
             "consists of a number to add to the significand (24 bits), a shift (5 bits), a bit that tells whether to add 1\n"
             "to an odd rank, and from bit 32 on the rank of the binade's start. An entry with bit 63 set gives no codes.");

static PyObject *binades(PyObject *self, PyObject *args)
{
    static const Lookup lookup = {3, {4, 8, 2}, binades_fit, loop_binades,
                                  "an entry for each of 512 signs and exponents, and a code for each word"};
    return look_up(args, &lookup);
}

#define TAKE(in, out)                                                                                \
    CLONES static LOOP(take_##in##_##out)                                                            \
    {                                                                                                \
        const in *restrict codes = from;                                                             \
        const out *restrict values = table;                                                          \
        out *restrict words = to;                                                                    \
        for (Py_ssize_t i = 0; i < count; i++)                                                       \
            words[i] = values[codes[i]];                                                             \
        return 0;                                                                                    \
    }                                                                                                \
    static int take_##in##_##out##_fits(const Given *g)                                           \
    {                                                                                             \
        return LENGTH(1, out) == (Py_ssize_t)1 << 8 * sizeof(in) && LENGTH(2, out) == LENGTH(0, in); \
    }
TAKE(uint8_t, uint32_t)
TAKE(uint8_t, uint64_t)
TAKE(uint16_t, uint32_t)
TAKE(uint16_t, uint64_t)

PyDoc_STRVAR(take_doc,
             "take_words(codes, table, words, which)\n\n"
             "Write the word of each code. `which` is 2 if codes have two bytes instead of one, plus 1 if words have eight\n"
             "bytes instead of four. The table has a word for each code.");

static PyObject *take_words(PyObject *self, PyObject *args)
{
#define OF(in, out) {3, {sizeof(in), sizeof(out), sizeof(out)}, take_##in##_##out##_fits, take_##in##_##out, fault}
    static const char fault[] = "a table with a word for each code, and as many words as codes";
    static const Lookup lookups[] = {OF(uint8_t, uint32_t), OF(uint8_t, uint64_t), OF(uint16_t, uint32_t), OF(uint16_t, uint64_t)};
    long which = PyTuple_Size(args) == 4 ? PyLong_AsLong(PyTuple_GetItem(args, 3)) : 0;
    if (which == -1 && PyErr_Occurred())
        return NULL;
    if (which < 0 || which > 3) {
        PyErr_SetString(PyExc_ValueError, "the last argument must be from 0 to 3");
        return NULL;
    }
    return look_up(args, &lookups[which]);
}
