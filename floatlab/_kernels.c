/* The compiled lane: arrays of words into codes and back, one pass over memory, without the interpreter's lock.

   It takes buffers only (the stable ABI, no NumPy headers), and is optional: without it the NumPy lane serves.
   The decision of numbers/rounding.py stands here a second time; tests hold the lanes equal, bit for bit.
   What depends on the format and the context only was settled by the scalar kernel and comes in as a Recipe. */

#define Py_LIMITED_API 0x030B0000
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

/* One binary, compiled for several generations of processors and chosen at load, where the tools know how. */
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

enum { NEAREST_EVEN, DIRECTED, STOCHASTIC };
enum { ANY, LEVEL, SWIFT };
enum { SHIFTED, IEEE, OTHER };
enum { INVALID = 1, OVERFLOW_ = 4, UNDERFLOW = 8, INEXACT = 16 }; /* the values of `Flags` */
enum { SPECIAL = 64, REFUSED = 128 };                            /* and what arrays/compiled.py sees to */
enum { CHUNK = 1024 };
enum { OPERATIONS = 10 }; /* in the order of arrays/compiled.py */
static const int arity[OPERATIONS] = {1, 2, 2, 2, 2, 1, 3, 3, 2, 1};

typedef struct {
    int64_t code, flags;
} Settled;

/* arrays/compiled.py packs these, in this order. */
typedef struct {
    int64_t plain, how;
    int64_t doubled, less, any; /* the addend of a directed rounding, a bit for each sign and parity */
    int64_t t, cut, low, lift, top;
    int64_t sign, negative_zero /* a mask */, is_signed, zero, payload /* a mask */;
    int64_t sign_place, largest; /* where the sign bit is, and the word of the largest number */
    int64_t flush_inputs, flush_results, after;
    int64_t own; /* the processor has this very conversion */
    int64_t one; /* 1, which must not be a constant: GCC 12 makes no vectors of a 64-bit constant's shifts */
    uint64_t seed;
    Settled overflow[2], infinity[2], nan[2], zeros[2], negatives[2];
} Recipe;

typedef struct {
    int64_t how, cut, adjust, qmin, magnitudes, sign, sign_shift, top, infinity;
    int64_t normal; /* the smallest magnitude that only changes its bias */
    int64_t subnormals /* a mask */, nan_for_negative_zero;
} Reading;

/* What is done to a run of elements; arrays/compiled.py says it with `run`. */
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
    uint64_t first;
    Recipe recipe;
} Work;

typedef struct {
    Py_ssize_t inner, row, column;
} Strides;

/* Output `index` of SplitMix64(seed), upper half: numbers/rounding.py, draw(). */
static INLINE uint64_t draw(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) >> 32;
}

typedef float Float32;
typedef double Float64;
#define fused32 __builtin_fmaf
#define fused64 __builtin_fma
#define root32 __builtin_sqrtf
#define root64 __builtin_sqrt

/* Conversions that processors have: binary32 to binary16, where this is x86 with F16C, and binary64 to binary32. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static Py_ssize_t halves_by_16(const uint32_t *words, uint16_t *codes,
                                                                  Py_ssize_t count)
{
    Py_ssize_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm256_storeu_si256((__m256i *)(codes + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(words + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

__attribute__((target("avx,f16c"))) static Py_ssize_t halves_by_8(const uint32_t *words, uint16_t *codes,
                                                                  Py_ssize_t count)
{
    Py_ssize_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(codes + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps((const float *)words + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

/* Return how many of the first words were converted. */
static Py_ssize_t halves(const uint32_t *words, uint16_t *codes, Py_ssize_t count)
{
    if (__builtin_cpu_supports("avx512f"))
        return halves_by_16(words, codes, count);
    return __builtin_cpu_supports("f16c") ? halves_by_8(words, codes, count) : 0;
}
#else
static Py_ssize_t halves(const uint32_t *words, uint16_t *codes, Py_ssize_t count)
{
    return 0;
}
#endif

CLONES static Py_ssize_t singles(const uint64_t *restrict words, uint32_t *restrict codes, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        union { uint64_t bits; double number; } wide = {.bits = words[i]};
        union { uint32_t bits; float number; } narrow = {.number = (float)wide.number};
        codes[i] = narrow.bits;
    }
    return count;
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

static int has_kernel(int word_size, int code_size)
{
    int small = code_size == 1 || code_size == 2 || code_size == 4;
    if ((word_size == 4 && small) || (word_size == 8 && (small || code_size == 8)))
        return 1;
    PyErr_Format(PyExc_ValueError, "no kernel for words of %d bytes and codes of %d", word_size, code_size);
    return 0;
}

PyDoc_STRVAR(run_doc,
             "run(word_size, operation, operands, to, to_size, code_size, to_reading, flags, marks, recipe, first,\n"
             "    negative_zero) -> union of the flags and marks of the elements\n\n"
             "Read operands, each (codes, size, reading or None), as words, operate on them (0: do not), round to codes,\n"
             "and write these, or the values that to_reading makes of them.");

enum { MOST_BUFFERS = 3 * 2 + 5 }; /* operands and their readings, and the rest */

typedef struct {
    Py_buffer each[MOST_BUFFERS];
    int count;
} Buffers;

/* Take an object's buffer; None gives NULL where it may.  Returns 0 with an exception set. */
static int take(Buffers *held, PyObject *from, int flags, Py_ssize_t need, const char *what, void **to)
{
    *to = NULL;
    if (from == Py_None)
        return 1;
    Py_buffer *buffer = &held->each[held->count];
    if (PyObject_GetBuffer(from, buffer, flags) < 0)
        return 0;
    held->count++;
    *to = buffer->buf;
    return need < 0 || fits(buffer->len, need, what);
}

static Py_ssize_t reading_size(int code_size, int word_size)
{
    return code_size == 1 ? 256 * word_size : (Py_ssize_t)sizeof(Reading);
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
        PyObject *codes, *reading;
        void *at;
        if (!PyArg_ParseTuple(PyTuple_GetItem(operands, i), "OiO", &codes, &w->sizes[i], &reading) ||
            !has_kernel(word_size, w->sizes[i]))
            return 0;
        Py_ssize_t need = *count < 0 ? -1 : *count * w->sizes[i];
        if (!take(held, codes, PyBUF_SIMPLE, need, "an operand", &at))
            return 0;
        if (!at) {
            PyErr_SetString(PyExc_TypeError, "an operand is a buffer, not None");
            return 0;
        }
        w->codes[i] = at;
        if (i == 0)
            *count = held->each[held->count - 1].len / w->sizes[0];
        if (!take(held, reading, PyBUF_SIMPLE, reading_size(w->sizes[i], word_size), "a reading", &at))
            return 0;
        w->readings[i] = at;
        if (!at && w->sizes[i] != word_size) {
            PyErr_SetString(PyExc_ValueError, "an operand that is not of words needs a reading");
            return 0;
        }
    }
    void *read, *packed, *told, *marked;
    if (!has_kernel(word_size, w->code_size) || !has_kernel(word_size, w->to_size) ||
        !take(held, to_reading, PyBUF_SIMPLE, reading_size(w->code_size, word_size), "to_reading", &read) ||
        !take(held, to, PyBUF_WRITABLE, *count * w->to_size, "to", &w->to) ||
        !take(held, flags, PyBUF_WRITABLE, *count, "flags", &told) ||
        !take(held, marks, PyBUF_WRITABLE, *count, "marks", &marked) ||
        !take(held, recipe, PyBUF_SIMPLE, sizeof(Recipe), "recipe", &packed))
        return 0;
    if (w->to_size != (read ? word_size : w->code_size) || !w->to || !packed || (w->operation && !marked)) {
        PyErr_SetString(PyExc_ValueError, "to, recipe or marks does not go with the rest");
        return 0;
    }
    if (((const Recipe *)packed)->own && w->code_size != word_size / 2) {
        PyErr_SetString(PyExc_ValueError, "the processor's own conversions halve a word");
        return 0;
    }
    w->to_reading = read;
    w->flags = told;
    w->marks = marked;
    memcpy(&w->recipe, packed, sizeof(Recipe));
    return 1;
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

PyDoc_STRVAR(read_doc, "read_codes(codes, code_size, words, word_size, reading)\n\n"
                       "Read codes as binary32 or binary64 words; codes of one byte through a table of 256 words.");

static PyObject *read_codes(PyObject *self, PyObject *args)
{
    Py_buffer codes, words, reading;
    int code_size, word_size;
    if (!PyArg_ParseTuple(args, "y*iw*iy*", &codes, &code_size, &words, &word_size, &reading))
        return NULL;
    PyObject *result = NULL;
    if (!has_kernel(word_size, code_size))
        goto done;
    Py_ssize_t count = codes.len / code_size;
    if (!fits(words.len, count * word_size, "words") ||
        !fits(reading.len, code_size == 1 ? 256 * word_size : (Py_ssize_t)sizeof(Reading), "reading"))
        goto done;
    Py_BEGIN_ALLOW_THREADS
    if (code_size == 1 && word_size == 4)
        look_up32(codes.buf, words.buf, count, reading.buf);
    else if (code_size == 1)
        look_up64(codes.buf, words.buf, count, reading.buf);
    else {
        Reading own;
        memcpy(&own, reading.buf, sizeof own);
        if (word_size == 4)
            read_codes32(codes.buf, code_size, words.buf, count, &own);
        else
            read_codes64(codes.buf, code_size, words.buf, count, &own);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    PyBuffer_Release(&codes);
    PyBuffer_Release(&words);
    PyBuffer_Release(&reading);
    return result;
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

static PyObject *reset_mode(PyObject *self, PyObject *args)
{
    fenv_t mode;
    fegetenv(&mode);
    fesetenv(FE_DFL_ENV);
    return PyBytes_FromStringAndSize((const char *)&mode, sizeof mode);
}

PyDoc_STRVAR(restore_doc, "restore_mode(mode)\n\nMake this thread compute as it did before reset_mode.");

static PyObject *restore_mode(PyObject *self, PyObject *args)
{
    const char *bytes;
    Py_ssize_t size;
    fenv_t mode;
    if (!PyArg_ParseTuple(args, "y#", &bytes, &size) || !fits(size, sizeof mode, "mode"))
        return NULL;
    memcpy(&mode, bytes, sizeof mode);
    fesetenv(&mode);
    return Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"reset_mode", reset_mode, METH_NOARGS, reset_doc},
    {"restore_mode", restore_mode, METH_VARARGS, restore_doc},
    {"accumulate", accumulate, METH_VARARGS, accumulate_doc},
    {"run", run, METH_VARARGS, run_doc},
    {"walk", walk_steps, METH_VARARGS, walk_doc},
    {"read_codes", read_codes, METH_VARARGS, read_doc},
    {0},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "floatlab._kernels", "The compiled lane of floatlab.arrays.", 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    return PyModuleDef_Init(&module);
}
