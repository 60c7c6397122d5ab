/* The compiled lane: converts arrays of words to codes and back in one pass over memory, without the interpreter's lock.

   It accepts only buffers (the stable ABI, no NumPy headers), and is optional: without it, the NumPy lane is used. It
   implements the rounding decisions of numbers/rounding.py a second time; tests check that both agree bit for bit. All
   parameters that depend only on format and context are computed in Python, by the scalar arithmetic, and are passed as
   packed numbers. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fenv.h>
#include <float.h>
#include <stdint.h>
#include <string.h>

#include "compilers.h"
#include "stages.h"
#include "hardware_conversions.h"

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
#include "word.h"
#undef BITS
#define BITS 64
#include "word.h"

_Static_assert(sizeof(Rule64) == sizeof(((Stage *)0)->rule), "a stage must have room for the longer rule");

#include "run.h"
#include "table.h"
#include "registers.h"
#undef BITS
#include "blocks.h"
#include "tally.h"

PyDoc_STRVAR(reset_doc,
             "reset_mode() -> mode\n\n"
             "Make this thread round to nearest and keep subnormal numbers; return the previous mode.");

static const char mode_name[] = "floatlab._kernels.mode"; /* the name of a capsule that no other code creates */

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
