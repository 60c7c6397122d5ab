/* `tally`: counts, extremes, sums and histograms of an array and its rounded copy (arrays/round_trips/tally.py defines them). */

enum { SOME = 512, SUM_CHUNK = 2048, LANES = 16, SUMS = 5 };
enum { ZEROS, EXACT, LOST, SATURATED, FLUSHED, SUBNORMAL, COMPARED, SMALL, COUNTS };
enum { FIELDS = 1 << 11, UPPERS = 1 << 15 };

/* A bin has several counters, which neighbouring elements use in turn: if they used the same counter, each increment
   would wait for the previous one. */
typedef struct {
    uint32_t fields[FIELDS][4], uppers[UPPERS][2];
} Bins;

typedef struct {
    const void *x, *y;
    Py_ssize_t count, run;
    const double *smallest, *threshold; /* for each run */
    Bins *bins;
} TallyCall;

typedef struct {
    int64_t nonfinite, counts[COUNTS];
    double largest, smallest, largest_error, largest_relative;
    Py_ssize_t largest_relative_at;
    double sums[SUMS]; /* the sums of error², x², y², x·y, and of the relative errors */
} Figures;

/* The numbers that each element of a piece adds to the sums. */
typedef struct {
    double x[SOME], y[SOME], error[SOME], ratio[SOME];
} Terms;

/* Keep the largest error and the largest relative error, and find the first element with that relative error. */
static void keep_extremes(Figures *f, const Terms *t, const uint64_t *extremes, Py_ssize_t first, Py_ssize_t count,
                          int has_relative)
{
    Punned64 distance = {.bits = extremes[0]}, ratio = {.bits = extremes[1]};
    f->largest_error = distance.number > f->largest_error ? distance.number : f->largest_error;
    if (!has_relative || (f->largest_relative_at >= 0 && ratio.number <= f->largest_relative))
        return;
    Py_ssize_t i = 0;
    while (i < count && (t->x[i] == 0 || t->ratio[i] != ratio.number))
        i++;
    f->largest_relative = ratio.number;
    f->largest_relative_at = first + i;
}

/* Add the terms to the sums of their lanes. */
CLONES static void add_terms(const Terms *restrict t, double (*restrict lanes)[LANES], Py_ssize_t count)
{
    double sums[SUMS][LANES];
    memcpy(sums, lanes, sizeof sums);
    for (Py_ssize_t i = 0; i < count; i += LANES) {
#pragma GCC unroll 1
        for (int j = 0; j < LANES; j++) {
            const double x = t->x[i + j], y = t->y[i + j], error = t->error[i + j];
            sums[0][j] += error * error;
            sums[1][j] += x * x;
            sums[2][j] += y * y;
            sums[3][j] += x * y;
            sums[4][j] += t->ratio[i + j];
        }
    }
    memcpy(lanes, sums, sizeof sums);
}

/* Add the lanes of a chunk (the second half to the first, until one lane is left), and add the result to the sums. */
static void end_chunk(Figures *f, double (*lanes)[LANES])
{
    for (int k = 0; k < SUMS; k++) {
        for (int half = LANES / 2; half; half /= 2)
            for (int j = 0; j < half; j++)
                lanes[k][j] += lanes[k][j + half];
        f->sums[k] += lanes[k][0];
    }
    memset(lanes, 0, SUMS * sizeof *lanes);
}

/* Write the upper halves of the relative errors in binary32. */
CLONES static void take_uppers(const double *restrict ratios, uint16_t *restrict uppers, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        Punned32 single = {.number = (float)ratios[i]};
        uppers[i] = (uint16_t)(single.bits >> 16);
    }
}

SCALAR static void count_bins(const TallyCall *c, const uint16_t *restrict fields, const uint16_t *restrict uppers,
                              Py_ssize_t count)
{
    uint32_t(*restrict of_fields)[4] = c->bins->fields, (*restrict of_uppers)[2] = c->bins->uppers;
    Py_ssize_t i = 0;
    for (; i + 4 <= count; i += 4) {
        of_fields[fields[i]][0]++;
        of_fields[fields[i + 1]][1]++;
        of_fields[fields[i + 2]][2]++;
        of_fields[fields[i + 3]][3]++;
        of_uppers[uppers[i]][0]++;
        of_uppers[uppers[i + 1]][1]++;
        of_uppers[uppers[i + 2]][0]++;
        of_uppers[uppers[i + 3]][1]++;
    }
    for (; i < count; i++) {
        of_fields[fields[i]][0]++;
        of_uppers[uppers[i]][0]++;
    }
}

/* Subtract the zeros from the bin `first`, the infinities and NaNs from the bin `last`, and the elements without a
   relative error from the bin of 0. A single counter may become negative; only the sum of a bin's counters, modulo
   2^32, is used. */
static void correct_bins(const TallyCall *c, Figures *f, int first, int last)
{
    uint32_t *beyond = c->bins->fields[last];
    f->nonfinite = beyond[0] + beyond[1] + beyond[2] + beyond[3];
    beyond[0] -= (uint32_t)f->nonfinite;
    c->bins->fields[first][0] -= (uint32_t)f->counts[ZEROS];
    c->bins->uppers[0][0] -= (uint32_t)(c->count - f->counts[COMPARED]);
}

CLONES static int has_counts(const uint32_t *counters, int count)
{
    uint32_t any = 0;
    for (int i = 0; i < count; i++)
        any |= counters[i];
    return any != 0;
}

#define BITS 32
#include "tally_word.h"
#undef BITS
#define BITS 64
#include "tally_word.h"
#undef BITS

/* Return the indices of the nonempty bins as bytes of uint16, and their counts as bytes of int64. A bin has `step`
   counters. */
static PyObject *histogram(const uint32_t *counters, int step, int length)
{
    enum { AT_ONCE = 64 };
    uint8_t filled[UPPERS / AT_ONCE];
    Py_ssize_t most = 0, many = 0;
    for (int i = 0; i < length / AT_ONCE; i++)
        most += AT_ONCE * (filled[i] = (uint8_t)has_counts(counters + step * AT_ONCE * i, step * AT_ONCE));
    uint16_t *bins = PyMem_Malloc((size_t)most * sizeof *bins);
    int64_t *counts = PyMem_Malloc((size_t)most * sizeof *counts);
    for (int i = 0; i < length && bins && counts; i++) {
        if (!filled[i / AT_ONCE])
            continue;
        uint32_t count = 0;
        for (int j = 0; j < step; j++)
            count += counters[step * i + j];
        if (count) {
            bins[many] = (uint16_t)i;
            counts[many++] = count;
        }
    }
    PyObject *result = bins && counts ? Py_BuildValue("y#y#", (char *)bins, many * (Py_ssize_t)sizeof *bins, (char *)counts,
                                                      many * (Py_ssize_t)sizeof *counts)
                                      : PyErr_NoMemory();
    PyMem_Free(bins);
    PyMem_Free(counts);
    return result;
}

PyDoc_STRVAR(tally_doc,
             "tally(word_size, x, y, run, smallest, threshold) -> counts, extremes, sums and histograms\n\n"
             "Measure words of binary32 or binary64 and their rounded copies. Two float64 buffers have the limits of each run\n"
             "of elements. The result is a tuple in the order of `Raw` (arrays/lanes/tally_lanes.py); a histogram has two\n"
             "bytes objects: the bins as uint16, and their counts as int64.");

/* Whether all buffers have the lengths of a call. */
static int is_call(const TallyCall *c, const Py_buffer *held, Py_ssize_t word_size)
{
    const Py_ssize_t runs = c->run < 1 || c->count == 0 ? 0 : (c->count - 1) / c->run + 1;
    const Py_ssize_t lengths[] = {c->count * word_size, c->count * word_size, runs * 8, runs * 8};
    int fits = c->run > 0 && c->count < UINT32_MAX && (word_size == 4 || word_size == 8);
    for (int i = 0; i < 4 && fits; i++)
        fits = held[i].len == lengths[i] && (uintptr_t)held[i].buf % (uintptr_t)(i < 2 ? word_size : 8) == 0;
    return fits;
}

static PyObject *tally(PyObject *self, PyObject *args)
{
    Py_buffer held[4] = {{0}};
    Py_ssize_t word_size;
    PyObject *result = NULL;
    TallyCall c = {0};
    Figures f = {.smallest = Py_HUGE_VAL, .largest_relative_at = -1};
    if (!PyArg_ParseTuple(args, "ny*y*ny*y*", &word_size, &held[0], &held[1], &c.run, &held[2], &held[3]))
        return NULL;
    c.x = held[0].buf, c.y = held[1].buf, c.smallest = held[2].buf, c.threshold = held[3].buf;
    c.count = word_size == 4 || word_size == 8 ? held[0].len / word_size : 0;
    if (!is_call(&c, held, word_size))
        PyErr_SetString(PyExc_ValueError, "needs aligned words, fewer than 2^32, and limits for each run");
    else if (!(c.bins = PyMem_Calloc(1, sizeof *c.bins)))
        PyErr_NoMemory();
    else {
        fenv_t mode;
        Py_BEGIN_ALLOW_THREADS
        fegetenv(&mode);
        fesetenv(FE_DFL_ENV);
        (word_size == 4 ? tally32 : tally64)(&c, &f);
        fesetenv(&mode);
        Py_END_ALLOW_THREADS
        const int64_t *n = f.counts;
        result = Py_BuildValue(
            "LLLLLLLddddn(ddddd)NN", (long long)f.nonfinite, (long long)n[ZEROS], (long long)n[EXACT], (long long)n[LOST],
            (long long)n[SATURATED], (long long)n[FLUSHED], (long long)n[SUBNORMAL], f.largest, f.smallest, f.largest_error,
            f.largest_relative, f.largest_relative_at, f.sums[0], f.sums[1], f.sums[2], f.sums[3], f.sums[4],
            histogram(c.bins->fields[0], 4, FIELDS),
            histogram(c.bins->uppers[0], 2, UPPERS));
    }
    PyMem_Free(c.bins);
    for (int i = 0; i < 4; i++)
        PyBuffer_Release(&held[i]);
    return result;
}
