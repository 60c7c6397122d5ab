/* The compiled lane: arrays of words into codes and back, one pass over memory, without the interpreter's lock.

   It takes buffers only (the stable ABI, no NumPy headers), and is optional: without it the NumPy lane serves.
   The decision of numbers/rounding.py is written here a second time; tests check that the lanes agree bit for bit.
   The scalar kernel decides whatever depends on the format and the context only; its decisions come as a Recipe. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fenv.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#else
#define INLINE inline
#endif

/* Loops are compiled for several generations of x86-64 processors and chosen at load, where compiler and C library can.
   FLOATLAB_MOST is the highest level: 4 has AVX-512, 3 has AVX2; below 3, there is only the compiler's own target. */
#ifndef FLOATLAB_MOST
#define FLOATLAB_MOST 4
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#if FLOATLAB_MOST >= 4
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif FLOATLAB_MOST == 3
#define CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif

enum { WHOLE, ANY, DRAWN, FIXED, MAGIC }; /* paths of rounding */
enum { SHIFTED, IEEE, OTHER };            /* paths of reading: same fields as the word, IEEE specials, others */
enum { INVALID = 1, UNDERFLOW = 8, INEXACT = 16 }; /* the values of `Flags` */
enum { SPECIAL = 64, REFUSED = 128 };              /* and what arrays/compiled.py handles */
enum { PIECE = 8192 };                             /* bytes of words in a chunk */
enum { OPERATIONS = 10 };                          /* in the order of arrays/compiled.py */
static const int arity[OPERATIONS] = {1, 2, 2, 2, 2, 1, 3, 3, 2, 1};

typedef struct {
    int64_t code, flags;
} Settled;

/* arrays/compiled.py packs these, in this order; pairs are for positive and negative numbers. */
typedef struct {
    int64_t way, drawn, refuses;
    int64_t select[2], to_odd, half, odd, up; /* the addend of `cut`: masks for each sign and for odd digits, … */
    int64_t t, low, lift, top;
    int64_t sign, negative_zero /* a mask */, is_signed, zero, payload /* a mask */;
    int64_t sign_place, largest;           /* place of the sign bit; largest word that the path takes, or -1 */
    int64_t edge[2];                       /* the words from which numbers are not tiny, for each sign */
    int64_t sliver, places, after, normal; /* words from `sliver` up to `normal` may be tiny or not, by their draw */
    int64_t flush_inputs, flush_results;
    int64_t own; /* 1 + direction, where the processor has this conversion */
    int64_t one; /* 1; GCC 12 cannot vectorise shifts of a 64-bit constant */
    uint64_t seed;
    Settled overflow[2], infinity[2], nan[2], zeros[2], negatives[2];
} Recipe;

typedef struct {
    int64_t how, cut, adjust, qmin, magnitudes, sign, sign_shift, top, infinity;
    int64_t normal; /* the smallest magnitude that only changes its bias */
    int64_t subnormals; /* a mask */
    int64_t no_zero;    /* the code in the place of -0 that is a NaN, or -1 */
} Reading;

/* The work of one call of `run`. */
typedef struct {
    int operation, operands;
    const void *codes[3]; /* of each operand, `sizes` bytes an element */
    int sizes[3];
    const void *readings[3]; /* how they become words: a Reading, or a table for one byte; NULL where they are words */
    void *to;
    int to_size, code_size;
    const void *to_reading; /* how the codes become values; NULL where codes are wanted */
    uint8_t *flags, *marks;
    int negative_zero; /* an exact zero from a sum of opposite signs is negative */
    int reads_only;    /* there is no recipe: write the words */
    uint64_t first;
    Recipe recipe;
} Work;

typedef struct {
    Py_ssize_t inner, row, column;
} Strides;

typedef float Float32;
typedef double Float64;
#define fused32 __builtin_fmaf
#define fused64 __builtin_fma
#define root32 __builtin_sqrtf
#define root64 __builtin_sqrt

/* Conversions in hardware: binary32 to binary16 in four directions (x86 with F16C), binary64 to binary32 to nearest. */
typedef uint16_t Half32;
typedef uint32_t Half64;

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define HALVES(name, target_, step, Vector, load, convert, store, direction)                                       \
    __attribute__((target(target_))) static void name(const uint32_t *words, uint16_t *codes, Py_ssize_t count)    \
    {                                                                                                              \
        Py_ssize_t i = 0;                                                                                          \
        for (; i + step <= count; i += step)                                                                       \
            store((Vector *)(codes + i), convert(load((const float *)words + i), direction));                      \
        for (; i < count; i++) {                                                                                   \
            union { uint32_t bits; float number; } word = {words[i]};                                              \
            codes[i] = _cvtss_sh(word.number, direction);                                                          \
        }                                                                                                          \
    }
#define HALVES_BOTH(direction)                                                                                     \
    HALVES(halves_by_16_##direction, "avx512f,f16c", 16, __m256i, _mm512_loadu_ps, _mm512_cvtps_ph,                \
           _mm256_storeu_si256, direction)                                                                         \
    HALVES(halves_by_8_##direction, "avx,f16c", 8, __m128i, _mm256_loadu_ps, _mm256_cvtps_ph, _mm_storeu_si128, direction)
HALVES_BOTH(0) /* to nearest even */
HALVES_BOTH(1) /* toward -inf */
HALVES_BOTH(2) /* toward +inf */
HALVES_BOTH(3) /* toward zero */

static int has_own32(void)
{
    return __builtin_cpu_supports("f16c");
}

static void convert32(const uint32_t *words, uint16_t *codes, Py_ssize_t count, int own)
{
    typedef void (*Halves)(const uint32_t *, uint16_t *, Py_ssize_t);
    static const Halves ways[2][4] = {
        {halves_by_8_0, halves_by_8_1, halves_by_8_2, halves_by_8_3},
        {halves_by_16_0, halves_by_16_1, halves_by_16_2, halves_by_16_3},
    };
    ways[FLOATLAB_MOST >= 4 && __builtin_cpu_supports("avx512f")][own - 1](words, codes, count);
}
#else
static int has_own32(void)
{
    return 0;
}

static void convert32(const uint32_t *words, uint16_t *codes, Py_ssize_t count, int own)
{
}
#endif

static int has_own64(void)
{
    return 1;
}

CLONES static void convert64(const uint64_t *restrict words, uint32_t *restrict codes, Py_ssize_t count, int own)
{
    (void)own;
    for (Py_ssize_t i = 0; i < count; i++) {
        union { uint64_t bits; double number; } wide = {words[i]};
        union { uint32_t bits; float number; } narrow = {.number = (float)wide.number};
        codes[i] = narrow.bits;
    }
}

#define BITS 32
#define T 23
#define Int int32_t
#define Unsigned uint32_t
#include "_kernels_word.h"

#define BITS 64
#define T 52
#define Int int64_t
#define Unsigned uint64_t
#include "_kernels_word.h"

static int fits(Py_ssize_t have, Py_ssize_t need, const char *what)
{
    if (have == need)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s has %zd bytes; %zd fit", what, have, need);
    return 0;
}

static int is_aligned(const void *to, Py_ssize_t size, const char *what)
{
    if ((uintptr_t)to % (uintptr_t)size == 0)
        return 1;
    PyErr_Format(PyExc_ValueError, "%s does not lie at a multiple of %zd bytes", what, size);
    return 0;
}

static int has_kernel(int word_size, int code_size)
{
    int small = code_size == 1 || code_size == 2 || code_size == 4;
    if ((word_size == 4 && small) || (word_size == 8 && (small || code_size == 8)))
        return 1;
    PyErr_Format(PyExc_ValueError, "no kernel for words of %d bytes and codes of %d", word_size, code_size);
    return 0;
}

static int is_within(int64_t number, int64_t least, int64_t most)
{
    return least <= number && number <= most;
}

/* Check that no number of a recipe leads to an undefined shift or access; results may still be nonsense. */
static int is_sound(const Recipe *r, int word_size, int code_size)
{
    int digits = word_size == 4 ? 23 : 52;
    if (is_within(r->way, WHOLE, MAGIC) && (r->way != DRAWN || r->drawn) && is_within(r->half, 0, 1) &&
        is_within(r->t, 0, digits) && is_within(r->low, 1, 1 << 30) && is_within(r->lift, 0, digits) &&
        is_within(r->sign_place, 0, 8 * word_size - 1) && is_within(r->places, 0, 8 * word_size - 1) &&
        is_within(r->own, 0, 4) && (!r->own || code_size == word_size / 2))
        return 1;
    PyErr_SetString(PyExc_ValueError, "a recipe has a number that is none of a format's");
    return 0;
}

/* The same of a reading. */
static int is_readable(const Reading *r, int word_size)
{
    if (is_within(r->cut, 0, 8 * word_size - 1) && is_within(r->sign_shift, 0, 8 * word_size - 1))
        return 1;
    PyErr_SetString(PyExc_ValueError, "a reading has a number that is none of a format's");
    return 0;
}

PyDoc_STRVAR(run_doc,
             "run(word_size, operation, operands, to, to_size, code_size, to_reading, flags, marks, recipe, first,\n"
             "    negative_zero) -> union of the marks of the elements, and of what the context refuses\n\n"
             "Read operands, each (codes, size, reading or None), as words, apply an operation (0: none), round to codes,\n"
             "and write the codes, or with to_reading their values. Without a recipe, write the words that were read.");

enum { MOST_BUFFERS = 3 * 2 + 5 }; /* operands and their readings, and the rest */

typedef struct {
    Py_buffer each[MOST_BUFFERS];
    int count;
} Buffers;

/* Take an object's buffer of whole elements of `size` bytes; None gives NULL. Returns 0 with an exception set. */
static int take(Buffers *held, PyObject *from, int flags, Py_ssize_t need, Py_ssize_t size, const char *what, void **to)
{
    *to = NULL;
    if (from == Py_None)
        return 1;
    Py_buffer *buffer = &held->each[held->count];
    if (PyObject_GetBuffer(from, buffer, flags) < 0)
        return 0;
    held->count++;
    *to = buffer->buf;
    return is_aligned(buffer->buf, size, what) && (need < 0 || fits(buffer->len, need, what));
}

/* Take how codes are read: fields, or for codes of one byte a table. */
static int take_reading(Buffers *held, PyObject *from, int code_size, int word_size, const char *what, void **to)
{
    int table = code_size == 1;
    Py_ssize_t need = table ? 256 * word_size : (Py_ssize_t)sizeof(Reading);
    return take(held, from, PyBUF_SIMPLE, need, table ? word_size : (Py_ssize_t)sizeof(int64_t), what, to) &&
           (!*to || table || is_readable(*to, word_size));
}

static int take_all(Buffers *held, Work *w, int word_size, PyObject *operands, PyObject *to, PyObject *to_reading,
                    PyObject *flags, PyObject *marks, PyObject *recipe, Py_ssize_t *count)
{
    if (w->operation < 0 || w->operation >= OPERATIONS || PyTuple_Size(operands) != arity[w->operation]) {
        PyErr_SetString(PyExc_ValueError, "no such operation on so many operands");
        return 0;
    }
    w->operands = arity[w->operation];
    *count = -1;
    for (int i = 0; i < w->operands; i++) {
        PyObject *operand = PyTuple_GetItem(operands, i), *codes, *reading;
        void *at;
        if (!PyTuple_Check(operand)) {
            PyErr_SetString(PyExc_TypeError, "an operand is a tuple of codes, size and reading");
            return 0;
        }
        if (!PyArg_ParseTuple(operand, "OiO", &codes, &w->sizes[i], &reading) || !has_kernel(word_size, w->sizes[i]))
            return 0;
        Py_ssize_t need = *count < 0 ? -1 : *count * w->sizes[i];
        if (!take(held, codes, PyBUF_SIMPLE, need, w->sizes[i], "an operand", &at))
            return 0;
        if (!at) {
            PyErr_SetString(PyExc_TypeError, "an operand is a buffer of elements, not None");
            return 0;
        }
        w->codes[i] = at;
        if (i == 0)
            *count = held->each[held->count - 1].len / w->sizes[0];
        if (!take_reading(held, reading, w->sizes[i], word_size, "a reading", &at))
            return 0;
        w->readings[i] = at;
        if (!at && w->sizes[i] != word_size) {
            PyErr_SetString(PyExc_ValueError, "an operand that is not of words needs a reading");
            return 0;
        }
    }
    void *read, *packed, *with_flags, *marked;
    if (!has_kernel(word_size, w->code_size) || !has_kernel(word_size, w->to_size) ||
        !take_reading(held, to_reading, w->code_size, word_size, "to_reading", &read) ||
        !take(held, to, PyBUF_WRITABLE, *count * w->to_size, w->to_size, "to", &w->to) ||
        !take(held, flags, PyBUF_WRITABLE, *count, 1, "flags", &with_flags) ||
        !take(held, marks, PyBUF_WRITABLE, *count, 1, "marks", &marked) ||
        !take(held, recipe, PyBUF_SIMPLE, sizeof(Recipe), 1, "recipe", &packed))
        return 0;
    if (w->to_size != (read ? word_size : w->code_size) || !w->to || (w->operation && !marked) ||
        (!packed && (w->operation || !w->readings[0] || read || with_flags || w->to_size != word_size))) {
        PyErr_SetString(PyExc_ValueError, "to, flags, marks or recipe does not go with the rest");
        return 0;
    }
    w->to_reading = read;
    w->flags = with_flags;
    w->marks = marked;
    w->reads_only = !packed;
    if (packed)
        memcpy(&w->recipe, packed, sizeof(Recipe));
    return !packed || is_sound(&w->recipe, word_size, w->code_size);
}

static PyObject *run(PyObject *self, PyObject *args)
{
    Buffers held = {.count = 0};
    Work w;
    int word_size;
    PyObject *operands, *to, *to_reading, *flags, *marks, *recipe, *result = NULL;
    unsigned long long first;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "iiO!OiiOOOOKi", &word_size, &w.operation, &PyTuple_Type, &operands, &to, &w.to_size,
                          &w.code_size, &to_reading, &flags, &marks, &recipe, &first, &w.negative_zero))
        return NULL;
    w.first = first;
    if (take_all(&held, &w, word_size, operands, to, to_reading, flags, marks, recipe, &count)) {
        unsigned all;
        fenv_t mode;
        Py_BEGIN_ALLOW_THREADS
        fegetenv(&mode);
        fesetenv(FE_DFL_ENV);
        all = word_size == 4 ? run32(&w, count) : run64(&w, count);
        fesetenv(&mode);
        Py_END_ALLOW_THREADS
        result = PyLong_FromUnsignedLong(all);
    }
    while (held.count)
        PyBuffer_Release(&held.each[--held.count]);
    return result;
}

PyDoc_STRVAR(count_doc, "count(flags, counts)\n\nAdd to 256 integers of 64 bits how many bytes have each value.");

static PyObject *count(PyObject *self, PyObject *args)
{
    Py_buffer flags, counts;
    if (!PyArg_ParseTuple(args, "y*w*", &flags, &counts))
        return NULL;
    int good = fits(counts.len, 256 * sizeof(uint64_t), "counts") && is_aligned(counts.buf, sizeof(uint64_t), "counts");
    if (good) {
        const uint8_t *from = flags.buf;
        uint64_t apart[4][256] = {{0}}, *to = counts.buf; /* the same place twice in a row would have to wait */
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < flags.len; i++)
            apart[i & 3][from[i]]++;
        for (int i = 0; i < 256; i++)
            to[i] += apart[0][i] + apart[1][i] + apart[2][i] + apart[3][i];
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&flags);
    PyBuffer_Release(&counts);
    return good ? Py_NewRef(Py_None) : NULL;
}

PyDoc_STRVAR(accumulate_doc,
             "accumulate(sums, x, y, fma)\n\n"
             "Add x[k] * y[k] to sums for k = 0, 1, …, in place: x and y of three axes, sums of two, all float32 or all\n"
             "float64, sums contiguous.");

/* Check an operand's shape, and return its strides in elements; 0 with an exception set. */
static int strides_of(const Py_buffer *x, const Py_ssize_t *shape, Py_ssize_t size, Strides *to)
{
    if (x->ndim != 3 || x->itemsize != size || x->shape[0] != shape[0] || x->shape[1] != shape[1] ||
        x->shape[2] != shape[2] || x->strides[0] % size || x->strides[1] % size || x->strides[2] % size) {
        PyErr_SetString(PyExc_ValueError, "x and y have the sums' shape, after a first axis, and their size");
        return 0;
    }
    to->inner = x->strides[0] / size;
    to->row = x->strides[1] / size;
    to->column = x->strides[2] / size;
    return 1;
}

static PyObject *accumulate(PyObject *self, PyObject *args)
{
    PyObject *given[3], *result = NULL;
    int fma, held = 0;
    Py_buffer each[3];
    Strides x, y;
    if (!PyArg_ParseTuple(args, "OOOp", &given[0], &given[1], &given[2], &fma))
        return NULL;
    for (; held < 3; held++)
        if (PyObject_GetBuffer(given[held], &each[held], held ? PyBUF_STRIDED_RO : PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0)
            goto done;
    Py_ssize_t size = each[0].itemsize, inner = each[1].ndim ? each[1].shape[0] : 0;
    if (each[0].ndim != 2 || (size != 4 && size != 8)) {
        PyErr_SetString(PyExc_ValueError, "sums has two axes, of float32 or float64");
        goto done;
    }
    Py_ssize_t rows = each[0].shape[0], columns = each[0].shape[1], shape[3] = {inner, rows, columns};
    if (!is_aligned(each[0].buf, size, "sums") || !is_aligned(each[1].buf, size, "x") || !is_aligned(each[2].buf, size, "y"))
        goto done;
    if (!strides_of(&each[1], shape, size, &x) || !strides_of(&each[2], shape, size, &y))
        goto done;
    fenv_t mode;
    Py_BEGIN_ALLOW_THREADS
    fegetenv(&mode);
    fesetenv(FE_DFL_ENV);
    if (size == 4)
        (fma ? add_fused32 : add_products32)(each[0].buf, each[1].buf, each[2].buf, &x, &y, inner, rows, columns);
    else
        (fma ? add_fused64 : add_products64)(each[0].buf, each[1].buf, each[2].buf, &x, &y, inner, rows, columns);
    fesetenv(&mode);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    while (held--)
        PyBuffer_Release(&each[held]);
    return result;
}

#include "_kernels_program.h"

PyDoc_STRVAR(reset_doc, "reset_mode() -> mode\n\nMake this thread round to nearest and keep subnormal numbers; return what it did.");

static const char mode_name[] = "floatlab._kernels.mode"; /* of a capsule, which nobody else can make */

static void free_mode(PyObject *capsule)
{
    PyMem_Free(PyCapsule_GetPointer(capsule, mode_name));
}

static PyObject *reset_mode(PyObject *self, PyObject *args)
{
    fenv_t *mode = PyMem_Malloc(sizeof *mode);
    if (!mode)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(mode, mode_name, free_mode);
    if (!capsule) {
        PyMem_Free(mode);
        return NULL;
    }
    fegetenv(mode);
    fesetenv(FE_DFL_ENV);
    return capsule;
}

PyDoc_STRVAR(restore_doc, "restore_mode(mode)\n\nMake this thread compute as it did before reset_mode.");

static PyObject *restore_mode(PyObject *self, PyObject *mode)
{
    const fenv_t *before = PyCapsule_GetPointer(mode, mode_name);
    if (!before)
        return NULL;
    fesetenv(before);
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"reset_mode", reset_mode, METH_NOARGS, reset_doc},
    {"restore_mode", restore_mode, METH_O, restore_doc},
    {"count", count, METH_VARARGS, count_doc},
    {"accumulate", accumulate, METH_VARARGS, accumulate_doc},
    {"run", run, METH_VARARGS, run_doc},
    {"walk", walk_steps, METH_VARARGS, walk_doc},
    {0},
};

/* Nothing here changes but what the buffers of a call hold: a free-threaded Python needs no lock for it. */
#ifdef Py_GIL_DISABLED
static PyModuleDef_Slot slots[] = {{Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}};
#else
#define slots NULL
#endif

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "floatlab._kernels", "The compiled lane of floatlab.arrays.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModuleDef_Init(&module);
}
