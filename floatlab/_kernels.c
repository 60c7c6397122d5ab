/* The compiled lane: arrays of words into codes and back, one pass over memory, without the interpreter's lock.

   It takes buffers only (the stable ABI, no NumPy headers), and is optional: without it the NumPy lane serves.
   The decision of numbers/rounding.py stands here a second time; tests hold the lanes equal, bit for bit.
   What depends on the format and the context only was settled by the scalar kernel and comes in as a Recipe. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
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
enum { INVALID = 1, OVERFLOW_ = 4, UNDERFLOW = 8, INEXACT = 16, REFUSED = 128 }; /* the values of `Flags` */
enum { CHUNK = 4096 };

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
    uint64_t seed;
    Settled overflow[2], infinity[2], nan[2], zeros[2], negatives[2];
} Recipe;

typedef struct {
    int64_t t, cut, adjust, qmin, magnitudes, sign, top, infinity;
    int64_t subnormals, same_range, payloads, nan_for_negative_zero;
} Reading;

/* Output `index` of SplitMix64(seed), upper half: numbers/rounding.py, draw(). */
static INLINE uint64_t draw(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) >> 32;
}

/* Whether additions round to nearest even and keep subnormal numbers: a library may have changed the processor's mode. */
static int rounds_to_nearest(void)
{
    volatile float one = 1.0f, half = 0x1p-24f, least = 0x1p-149f, sums[3];
    sums[0] = one + half;        /* a tie: down to even */
    sums[1] = one + 3.0f * half; /* a tie: up to even */
    sums[2] = least + least;
    uint32_t bits[3];
    for (int i = 0; i < 3; i++) {
        float sum = sums[i];
        memcpy(&bits[i], &sum, sizeof sum);
    }
    return bits[0] == 0x3F800000u && bits[1] == 0x3F800002u && bits[2] == 2;
}

typedef float Float32;
typedef double Float64;

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

PyDoc_STRVAR(round_doc, "round_words(words, word_size, codes, code_size, flags, recipe, first) -> flags raised\n\n"
                        "Round binary32 or binary64 words into codes; flags may be None.");

static PyObject *round_words(PyObject *self, PyObject *args)
{
    Py_buffer words, codes, recipe, flags = {0};
    int word_size, code_size;
    PyObject *told;
    unsigned long long first;
    if (!PyArg_ParseTuple(args, "y*iw*iOy*K", &words, &word_size, &codes, &code_size, &told, &recipe, &first))
        return NULL;
    PyObject *result = NULL;
    if (told != Py_None && PyObject_GetBuffer(told, &flags, PyBUF_WRITABLE) < 0)
        goto done;
    if (!has_kernel(word_size, code_size))
        goto done;
    Py_ssize_t count = words.len / word_size;
    if (!fits(codes.len, count * code_size, "codes") || !fits(recipe.len, sizeof(Recipe), "recipe") ||
        (told != Py_None && !fits(flags.len, count, "flags")))
        goto done;
    Recipe own;
    memcpy(&own, recipe.buf, sizeof own);
    uint8_t *here = told == Py_None ? NULL : flags.buf;
    unsigned all;
    Py_BEGIN_ALLOW_THREADS
    if (word_size == 4)
        all = round_words32(words.buf, codes.buf, code_size, here, count, &own, first);
    else
        all = round_words64(words.buf, codes.buf, code_size, here, count, &own, first);
    Py_END_ALLOW_THREADS
    result = PyLong_FromUnsignedLong(all);
done:
    if (flags.obj)
        PyBuffer_Release(&flags);
    PyBuffer_Release(&words);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&recipe);
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

static PyMethodDef methods[] = {
    {"round_words", round_words, METH_VARARGS, round_doc},
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
