/* The compiled lane: converts arrays of words to codes and back in one pass over memory, without the interpreter's lock.

   It accepts only buffers (the stable ABI, no NumPy headers), and is optional: without it, the NumPy lane is used.
   This is a second implementation of the decision of numbers/rounding.py; tests check that both agree bit for bit.
   The scalar kernel decides everything that depends only on format and context, and passes it as packed numbers. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fenv.h>
#include <float.h>
#include <stdint.h>
#include <string.h>

/* Words must be computed in their own width: results in the x87's wider format would be rounded twice. */
#if FLT_EVAL_METHOD != 0
#error "floats are computed in a wider format here"
#endif

#if defined(__GNUC__)
#define INLINE inline __attribute__((always_inline))
#define APART __attribute__((noinline))
#else
#define INLINE inline
#define APART
#endif

/* Loops are separate functions: compilers ignore the rounding mode, and might otherwise compute before it is set.
   If compiler and C library support it, they are compiled for several x86-64 generations and selected at load.
   FLOATLAB_MOST is the highest level: 4 has AVX-512, 3 has AVX2; below 3, only the compiler's target is used. */
#ifndef FLOATLAB_MOST
#define FLOATLAB_MOST 4
#endif
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#if FLOATLAB_MOST >= 4
#define CLONES APART __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif FLOATLAB_MOST == 3
#define CLONES APART __attribute__((target_clones("arch=x86-64-v3", "default")))
#endif
#endif
#ifndef CLONES
#define CLONES APART
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define SCALAR APART __attribute__((optimize("no-tree-vectorize")))
#else
#define SCALAR APART
#endif

enum { WHOLE, ANY, DRAWN, FIXED, MAGIC, READ }; /* paths of rounding; READ: words are written unchanged */
enum { OTHER, IEEE, SHIFTED };                  /* paths of reading, from slow to fast */
/* The values of `Flags`, with a prefix: UNDERFLOW is a macro in the <math.h> of macOS and MinGW. */
enum { RAISED_INVALID = 1, RAISED_UNDERFLOW = 8, RAISED_INEXACT = 16 };
enum { SPECIAL = 64, REFUSED = 128 }; /* further marks, for arrays/lanes/compiled.py */
enum { PIECE = 8192 };                /* bytes of words in a chunk */
enum { OPERATIONS = 10 };             /* in the order of arrays/lanes/compiled.py */
static const int arity[OPERATIONS] = {1, 2, 2, 2, 2, 1, 3, 3, 2, 1};
static const int directions[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

/* The position of numbers: a buffer has rows of as many elements as the call; a step advances by `stride` rows.  A buffer
   is an index into the call's buffers, the written ones first, or -1 for none; `resolve` replaces indices by pointers. */
typedef struct {
    union {
        int64_t buffer;
        char *start; /* in the first step */
    };
    int64_t row, stride;
    int64_t size; /* bytes of an element */
    union {
        int64_t number;
        const void *reading; /* decoding of codes to words: a table for one byte, else a Reading; NULL: they are words */
    };
} Place;

enum { TO = 3, FLAGS, MARKS, PLACES };

/* An operation and a rounding, as arrays/lanes/compiled.py packs them in this order. */
typedef struct {
    int64_t word_size, operation;
    int64_t negative_zero; /* an exact zero from a sum of opposite signs is negative */
    int64_t code_size;     /* bytes; `to` receives codes, or with a reading their words */
    int64_t way, drawn, refuses;
    int64_t direction; /* of the processor during rounding: an index in `directions` */
    int64_t own;       /* 1 if processors may have this conversion */
    int64_t largest;   /* the largest word that the path takes, or -1 */
    uint64_t seed;
    Place places[PLACES]; /* of operands first */
    uint64_t rule[47];              /* a Rule of the words' width */
    uint64_t keep, plus, flip, low; /* how a draw becomes the number that thresholds are compared with: `draw_rule` */
} Stage;

/* A call of `run`. */
typedef struct {
    Stage *stages;
    Py_buffer *held, program;
    Py_ssize_t written, many, count, steps;
    uint64_t first;
} Call;

/* The start of a buffer, or NULL if there is none. */
static char *buffer_of(const Call *c, int64_t number)
{
    return number < 0 || number >= c->many ? NULL : c->held[number].buf;
}

/* Conversions in hardware, in the direction of the processor: binary32 to binary16 (x86 with F16C), binary64 to binary32.
   They return 0 if the processor has none. */
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

/* Names that differ between the two word widths have the suffix BITS. */
typedef float Float32;
typedef double Float64;
#define fused32 __builtin_fmaf
#define fused64 __builtin_fma
#define root32 __builtin_sqrtf
#define root64 __builtin_sqrt
#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define NAME(name) PASTE(name, BITS, )
#define Int PASTE(int, BITS, _t)
#define Unsigned PASTE(uint, BITS, _t)
#define Float NAME(Float)
#define BITS 32
#include "_kernels_word.h"
#undef BITS
#define BITS 64
#include "_kernels_word.h"

_Static_assert(sizeof(Rule64) == sizeof(((Stage *)0)->rule), "a stage has room for the longer rule");

/* Whether a place is aligned and within its buffer in every step, and the buffer has only whole rows. */
static int fits(const Call *c, const Place *p)
{
    const Py_buffer *b = &c->held[p->buffer];
    if ((uintptr_t)b->buf % (uintptr_t)p->size || !c->count)
        return !c->count;
    Py_ssize_t row = c->count * (Py_ssize_t)p->size, rows = b->len / row;
    return b->len % row == 0 && p->row >= 0 && p->row < rows && p->stride >= 0 &&
           (c->steps < 2 || p->stride <= (rows - 1 - p->row) / (c->steps - 1));
}

/* The same for a written buffer; true if there is none. */
static int is_room(const Call *c, const Place *p, int64_t size)
{
    return !buffer_of(c, p->buffer) || (p->size == size && p->buffer < c->written && fits(c, p));
}

/* Convert a valid place to pointers; `stride` is in bytes from then on. */
static void resolve(const Call *c, Place *p)
{
    char *start = buffer_of(c, p->buffer);
    Py_ssize_t row = start ? c->count * (Py_ssize_t)p->size : 0;
    p->start = row ? start + p->row * row : start;
    p->stride = row && c->steps > 1 ? p->stride * row : 0;
    p->reading = buffer_of(c, p->number);
}

static int has_kernel(int64_t word_size, int64_t size)
{
    int small = size == 1 || size == 2 || size == 4;
    return (word_size == 4 && small) || (word_size == 8 && (small || size == 8));
}

/* Whether a reading, if there is one, is a table or fields for codes of this size. */
static int is_reading(const Call *c, int64_t number, int64_t size, int64_t word_size)
{
    const void *reading = buffer_of(c, number);
    if (!reading)
        return size == word_size;
    size_t need = size == 1 ? 256 * (size_t)word_size : word_size == 4 ? sizeof(Reading32) : sizeof(Reading64);
    return (size_t)c->held[number].len == need && (uintptr_t)reading % (uintptr_t)word_size == 0 &&
           (size == 1 || (word_size == 4 ? is_readable32(reading) : is_readable64(reading)));
}

/* Return an error message for a stage, or NULL if none of its numbers leads to an undefined shift or access. */
static const char *fault_of(const Call *c, Stage *s)
{
    if (s->operation < 0 || s->operation >= OPERATIONS || !has_kernel(s->word_size, s->code_size))
        return "unknown operation, or no kernel for these sizes of words and codes";
    if (s->way < WHOLE || s->way > READ || (s->way == DRAWN && !s->drawn) || s->direction < 0 || s->direction > 3 ||
        (s->own && s->code_size != s->word_size / 2) || !(s->word_size == 4 ? is_sound32(s->rule) : is_sound64(s->rule)))
        return "a stage has a number out of range";
    for (int i = 0; i < arity[s->operation]; i++) {
        const Place *p = &s->places[i];
        if (!has_kernel(s->word_size, p->size) || !is_reading(c, p->number, p->size, s->word_size) ||
            (s->way == READ && !buffer_of(c, p->number)))
            return "a reading does not go with its operand";
        if (!buffer_of(c, p->buffer) || !fits(c, p))
            return "an operand is no aligned buffer with a whole row for each step";
    }
    const Place *to = &s->places[TO];
    if (buffer_of(c, to->number) && !is_reading(c, to->number, s->code_size, s->word_size))
        return "a reading does not go with what is written";
    int in_words = buffer_of(c, to->number) || s->way == READ;
    if (!buffer_of(c, to->buffer) || !is_room(c, to, in_words ? s->word_size : s->code_size) ||
        !is_room(c, &s->places[FLAGS], 1) || !is_room(c, &s->places[MARKS], 1) ||
        (s->operation && !buffer_of(c, s->places[MARKS].buffer)))
        return "an output is no aligned buffer with a whole row for each step";
    for (int i = 0; i < PLACES; i++)
        if (i < arity[s->operation] || i >= TO)
            resolve(c, &s->places[i]);
    return NULL;
}

/* Parse the arguments; return 0 with an exception set on failure. */
static int take(Call *c, PyObject *written, PyObject *read)
{
    Py_ssize_t size = (Py_ssize_t)sizeof(Stage), stages = c->program.len / size;
    c->written = PyTuple_Size(written);
    c->many = c->written + PyTuple_Size(read);
    c->held = PyMem_Calloc((size_t)c->many + 1, sizeof(Py_buffer));
    c->stages = PyMem_Malloc((size_t)c->program.len + 1);
    if (!c->held || !c->stages) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < c->many; i++) {
        PyObject *from = i < c->written ? PyTuple_GetItem(written, i) : PyTuple_GetItem(read, i - c->written);
        int flags = i < c->written ? PyBUF_WRITABLE : PyBUF_SIMPLE;
        if (from != Py_None && PyObject_GetBuffer(from, &c->held[i], flags) < 0)
            return 0;
    }
    const char *fault = NULL;
    if (c->program.len % size || c->count < 0 || c->count > PY_SSIZE_T_MAX / 16 || c->steps < 0)
        fault = "a program is whole stages, done so many times on so many elements";
    memcpy(c->stages, c->program.buf, (size_t)c->program.len);
    for (Py_ssize_t i = 0; i < stages && !fault; i++)
        fault = fault_of(c, &c->stages[i]);
    if (fault)
        PyErr_SetString(PyExc_ValueError, fault);
    return !fault;
}

PyDoc_STRVAR(run_doc,
             "run(program, written, read, count, steps, first) -> (steps done, union of marks and refusals)\n\n"
             "Run all stages of a program on rows of `count` elements, one step after the other. A stage reads operands as\n"
             "words, applies an operation (0: none), rounds to codes, and writes these or their values. Draws are those of\n"
             "elements `first`, first + 1, …. The run ends after a stage that marks an element, or whose context refuses\n"
             "one. The tuples contain buffers, or None.");

static PyObject *run(PyObject *self, PyObject *args)
{
    Call c = {0};
    PyObject *written, *read, *result = NULL;
    unsigned long long first;
    if (!PyArg_ParseTuple(args, "y*O!O!nnK", &c.program, &PyTuple_Type, &written, &PyTuple_Type, &read, &c.count, &c.steps,
                          &first))
        return NULL;
    c.first = first;
    if (take(&c, written, read)) {
        const Stage *end = c.stages + c.program.len / (Py_ssize_t)sizeof(Stage);
        Py_ssize_t done = c.count && end > c.stages ? 0 : c.steps;
        unsigned raised = 0;
        fenv_t mode;
        Py_BEGIN_ALLOW_THREADS
        fegetenv(&mode);
        fesetenv(FE_DFL_ENV);
        while (done < c.steps && !raised) {
            for (const Stage *s = c.stages; s < end && !raised; s++)
                raised = s->word_size == 4 ? run32(s, &c, done) : run64(s, &c, done);
            done += !raised;
        }
        fesetenv(&mode);
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("nI", done, raised);
    }
    for (Py_ssize_t i = 0; c.held && i < c.many; i++)
        PyBuffer_Release(&c.held[i]);
    PyBuffer_Release(&c.program);
    PyMem_Free(c.held);
    PyMem_Free(c.stages);
    return result;
}

PyDoc_STRVAR(accumulate_doc,
             "accumulate(sums, x, y, fma)\n\n"
             "Add x[k] * y[k] to sums for k = 0, 1, …, in place: x and y have three axes, sums has two. All are float32,\n"
             "or all float64; sums is contiguous.");

/* Whether an array has this many axes, the last of these lengths, and aligned elements. */
static int has_shape(const Py_buffer *x, int axes, Py_ssize_t first, const Py_buffer *sums)
{
    if (x->ndim != axes || x->itemsize != sums->itemsize || (uintptr_t)x->buf % (uintptr_t)x->itemsize)
        return 0;
    for (int i = 0; i < axes; i++)
        if (x->strides[i] % x->itemsize || x->shape[i] != (i == axes - 3 ? first : sums->shape[i - axes + 2]))
            return 0;
    return 1;
}

static PyObject *accumulate(PyObject *self, PyObject *args)
{
    PyObject *given[3], *result = NULL;
    int fma, held = 0;
    Py_buffer each[3], *sums = &each[0], *x = &each[1], *y = &each[2];
    if (!PyArg_ParseTuple(args, "OOOp", &given[0], &given[1], &given[2], &fma))
        return NULL;
    for (; held < 3; held++)
        if (PyObject_GetBuffer(given[held], &each[held], held ? PyBUF_STRIDED_RO : PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0)
            goto done;
    if (sums->ndim != 2 || (sums->itemsize != 4 && sums->itemsize != 8) || !has_shape(sums, 2, 0, sums) || x->ndim != 3 ||
        !has_shape(x, 3, x->shape[0], sums) || !has_shape(y, 3, x->shape[0], sums)) {
        PyErr_SetString(PyExc_ValueError, "sums has two axes, of float32 or float64; x and y have one more, the first");
        goto done;
    }
    fenv_t mode;
    Py_BEGIN_ALLOW_THREADS
    fegetenv(&mode);
    fesetenv(FE_DFL_ENV);
    (sums->itemsize == 4 ? accumulate32 : accumulate64)(sums, x, y, fma);
    fesetenv(&mode);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
done:
    while (held--)
        PyBuffer_Release(&each[held]);
    return result;
}

#include "_kernels_table.h"
#include "_kernels_registers.h"
#undef BITS
#include "_kernels_blocks.h"
#include "_kernels_tally.h"

PyDoc_STRVAR(reset_doc,
             "reset_mode() -> mode\n\n"
             "Make this thread round to nearest and keep subnormal numbers; return the previous mode.");

static const char mode_name[] = "floatlab._kernels.mode"; /* of a capsule, which no other code creates */

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

PyDoc_STRVAR(restore_doc, "restore_mode(mode)\n\nRestore the mode that reset_mode returned.");

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
    {"accumulate", accumulate, METH_VARARGS, accumulate_doc},
    {"run", run, METH_VARARGS, run_doc},
    {"look_up_narrow", narrow, METH_VARARGS, narrow_doc},
    {"look_up_wide", wide, METH_VARARGS, wide_doc},
    {"look_up_binades", binades, METH_VARARGS, binades_doc},
    {"look_up_few", few, METH_VARARGS, few_doc},
    {"look_up_bytes", bytes, METH_VARARGS, bytes_doc},
    {"has_registers", registers, METH_NOARGS, registers_doc},
    {"take_words", take_words, METH_VARARGS, take_doc},
    {"largest_finite", take_largest, METH_VARARGS, largest_doc},
    {"scale_elements", scale_elements, METH_VARARGS, multiply_doc},
    {"round_blocks", take_blocks, METH_VARARGS, blocks_doc},
    {"tally", tally, METH_VARARGS, tally_doc},
    {0},
};

/* Once loaded, only the contents of a call's buffers change: a free-threaded Python needs no lock. */
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
    look_at_processor();
    return PyModuleDef_Init(&module);
}
