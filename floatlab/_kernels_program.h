/* Recurrences: what every step does to registers, rows of `count` numbers of binary64 each, one step after the other.

   A step is a straight line of stages, each an operation and a rounding as `run` does them.  What a stage cannot do
   (its marks say so) ends the walk before the step that it stands in: arrays/recurrences.py does that step.  A row that
   is to stay finite ends it after the step in which it does not. */

#define MOST_STEPS ((int64_t)1 << 62) /* so that no number of a step wraps */
enum { MOST_STAGES = 256, MOST_ROWS = 256, MOST_COLUMNS = 32 };

/* arrays/recurrences.py packs these, in this order. */
typedef struct {
    int64_t operation, operands[3], to; /* numbers of rows */
    int64_t code_size;                  /* 8: the result is a word as it is */
    int64_t negative_zero;
    int64_t blank;
    Recipe recipe;
    union {
        Reading fields;
        uint64_t table[256]; /* of codes of one byte */
    } reading;
} Stage;

/* A row that is filled before, or copied after, every step. */
typedef struct {
    int row;
    uint64_t *numbers; /* words of binary64, as everywhere here */
    Py_ssize_t size;
    int is_wide; /* has numbers for every element */
} Column;

static int is_row(int64_t row, Py_ssize_t rows)
{
    return row >= 0 && row < rows;
}

/* Check stages, and turn them into work on the registers; 0 with an exception set. */
static int prepare(const Stage *stages, Py_ssize_t many, Work *to, uint64_t *registers, Py_ssize_t rows, Py_ssize_t count,
                   uint8_t *marks)
{
    for (Py_ssize_t i = 0; i < many; i++) {
        const Stage *s = &stages[i];
        Work *w = &to[i];
        int known = s->operation >= 0 && s->operation < OPERATIONS && is_row(s->to, rows);
        int size = s->code_size == 1 || s->code_size == 2 || s->code_size == 4 || s->code_size == 8;
        memset(w, 0, sizeof *w);
        w->operands = known ? arity[s->operation] : 0;
        for (int j = 0; j < w->operands; j++)
            known &= is_row(s->operands[j], rows);
        if (!known || !size) {
            PyErr_SetString(PyExc_ValueError, "a stage has an operation and rows that there are");
            return 0;
        }
        for (int j = 0; j < w->operands; j++) {
            w->codes[j] = registers + s->operands[j] * count;
            w->sizes[j] = 8;
        }
        int fields = s->code_size != 1 && s->code_size != 8;
        if (!is_sound(&s->recipe, 8, (int)s->code_size) || (fields && !is_readable(&s->reading.fields, 8)))
            return 0;
        w->operation = (int)s->operation;
        w->to = registers + s->to * count;
        w->to_size = 8;
        w->code_size = (int)s->code_size;
        w->to_reading = s->code_size == 8 ? NULL : &s->reading;
        w->marks = marks;
        w->negative_zero = s->negative_zero != 0;
        w->recipe = s->recipe;
    }
    return 1;
}

typedef struct {
    Work work[MOST_STAGES];
    Column in[MOST_COLUMNS], out[MOST_COLUMNS];
    int watched[MOST_COLUMNS], finite[MOST_COLUMNS];
    Py_ssize_t stages, ins, outs, watches, ends;
    uint64_t *registers, *before;
    int64_t *last, *moves;
    Py_ssize_t rows, count, every;
} Walk;

/* Do steps; return how many were done. */
static Py_ssize_t walk(Walk *w, Py_ssize_t steps, uint64_t first)
{
    size_t row = (size_t)w->count * sizeof(uint64_t);
    Py_ssize_t recorded = 0;
    for (Py_ssize_t k = 0; k < steps; k++) {
        memcpy(w->before, w->registers, (size_t)w->rows * row);
        for (Py_ssize_t i = 0; i < w->ins; i++) {
            uint64_t *to = w->registers + w->in[i].row * w->count;
            if (w->in[i].is_wide)
                memmove(to, w->in[i].numbers + k * w->count, row);
            else
                for (Py_ssize_t j = 0; j < w->count; j++)
                    to[j] = w->in[i].numbers[k];
        }
        for (Py_ssize_t i = 0; i < w->stages; i++) {
            w->work[i].first = (first + (uint64_t)k) * (uint64_t)w->count;
            if (run64(&w->work[i], w->count) & (SPECIAL | REFUSED)) {
                memcpy(w->registers, w->before, (size_t)w->rows * row);
                return k;
            }
        }
        int beyond = 0;
        for (Py_ssize_t j = 0; j < w->count; j++) {
            int moved = 0;
            for (Py_ssize_t i = 0; i < w->watches; i++) {
                Py_ssize_t at = w->watched[i] * w->count + j;
                union { uint64_t bits; double number; } now = {w->registers[at]}, then = {w->before[at]};
                moved |= now.number != then.number;
            }
            for (Py_ssize_t i = 0; i < w->ends; i++) {
                union { uint64_t bits; double number; } now = {w->registers[w->finite[i] * w->count + j]};
                beyond |= !(now.number - now.number == 0);
            }
            w->last[j] = moved ? (int64_t)(first + (uint64_t)k + 1) : w->last[j];
            w->moves[j] = (int64_t)((uint64_t)w->moves[j] + (uint64_t)moved);
        }
        if ((first + (uint64_t)k + 1) % (uint64_t)w->every == 0) {
            for (Py_ssize_t i = 0; i < w->outs; i++)
                memmove(w->out[i].numbers + recorded * w->count, w->registers + w->out[i].row * w->count, row);
            recorded++;
        }
        if (beyond)
            return k + 1;
    }
    return steps;
}

/* Take (row, buffer) pairs; return how many, -1 with an exception set. */
static Py_ssize_t take_columns(PyObject *pairs, Column *to, Py_buffer *held, Py_ssize_t *holding, Py_ssize_t rows,
                               int flags)
{
    Py_ssize_t many = PyTuple_Size(pairs);
    if (many > MOST_COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "too many columns");
        return -1;
    }
    for (Py_ssize_t i = 0; i < many; i++) {
        PyObject *pair = PyTuple_GetItem(pairs, i), *buffer;
        if (!PyTuple_Check(pair)) {
            PyErr_SetString(PyExc_TypeError, "a column is a tuple of a row and a buffer");
            return -1;
        }
        if (!PyArg_ParseTuple(pair, "iO", &to[i].row, &buffer))
            return -1;
        if (!is_row(to[i].row, rows)) {
            PyErr_SetString(PyExc_ValueError, "no such row");
            return -1;
        }
        if (PyObject_GetBuffer(buffer, &held[*holding], flags) < 0)
            return -1;
        to[i].numbers = held[*holding].buf;
        to[i].size = held[*holding].len / (Py_ssize_t)sizeof(double);
        ++*holding;
        if (!is_aligned(to[i].numbers, sizeof(double), "a column"))
            return -1;
    }
    return many;
}

/* Whether there are numbers for so many rows, without the product of the two, which may wrap. */
static int has_rows(Py_ssize_t size, Py_ssize_t rows, Py_ssize_t count)
{
    return size % count == 0 && size / count == rows;
}

/* Take numbers of rows; return how many, -1 with an exception set. */
static Py_ssize_t take_rows(PyObject *numbers, int *to, Py_ssize_t rows)
{
    Py_ssize_t many = PyTuple_Size(numbers);
    for (Py_ssize_t i = 0; i < many; i++) {
        long row = i < MOST_COLUMNS ? PyLong_AsLong(PyTuple_GetItem(numbers, i)) : -1;
        if (!is_row(row, rows)) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "no such row, or too many");
            return -1;
        }
        to[i] = (int)row;
    }
    return many;
}

PyDoc_STRVAR(walk_doc,
             "walk(registers, rows, stages, inputs, outputs, every, watched, finite, last, moves, steps, first)\n"
             "    -> steps done\n\n"
             "Do steps of a recurrence on rows of float64: inputs are (row, numbers of every step), outputs (row, room\n"
             "for every `every`th step). For each element, last gets the last step that changed a watched row, and\n"
             "moves how many did. It ends before a step that another lane must do, and after one that leaves a row of\n"
             "`finite` otherwise.");

static PyObject *walk_steps(PyObject *self, PyObject *args)
{
    PyObject *registers, *stages, *inputs, *outputs, *watched, *finite, *last, *moves, *result = NULL;
    Py_buffer held[4 + 2 * MOST_COLUMNS];
    Py_ssize_t holding = 0, rows, every, steps;
    unsigned long long first;
    Walk *w = NULL;
    uint8_t *marks = NULL;
    if (!PyArg_ParseTuple(args, "OnOO!O!nO!O!OOnK", &registers, &rows, &stages, &PyTuple_Type, &inputs, &PyTuple_Type,
                          &outputs, &every, &PyTuple_Type, &watched, &PyTuple_Type, &finite, &last, &moves, &steps, &first))
        return NULL;
    if (!(w = PyMem_Calloc(1, sizeof *w)))
        return PyErr_NoMemory();
    PyObject *whole[] = {registers, last, moves, stages};
    for (int i = 0; i < 4; i++, holding++)
        if (PyObject_GetBuffer(whole[i], &held[holding], i < 3 ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0)
            goto done;
    w->rows = rows;
    w->every = every;
    w->stages = held[3].len / (Py_ssize_t)sizeof(Stage);
    w->count = rows > 0 ? held[0].len / (Py_ssize_t)sizeof(double) / rows : 0;
    w->registers = held[0].buf;
    w->last = held[1].buf;
    w->moves = held[2].buf;
    Py_ssize_t count = w->count;
    if (rows < 1 || rows > MOST_ROWS || every < 1 || steps < 0 || steps > MOST_STEPS || first > MOST_STEPS || count < 1 ||
        w->stages > MOST_STAGES || !is_aligned(held[0].buf, sizeof(double), "registers") ||
        !is_aligned(held[1].buf, sizeof(int64_t), "last") || !is_aligned(held[2].buf, sizeof(int64_t), "moves") ||
        !is_aligned(held[3].buf, sizeof(int64_t), "stages") ||
        !fits(held[0].len, rows * count * (Py_ssize_t)sizeof(double), "registers") ||
        !fits(held[1].len, count * (Py_ssize_t)sizeof(int64_t), "last") ||
        !fits(held[2].len, count * (Py_ssize_t)sizeof(int64_t), "moves") ||
        !fits(held[3].len, w->stages * (Py_ssize_t)sizeof(Stage), "stages")) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "there are rows, elements and steps, and not too many");
        goto done;
    }
    if ((w->watches = take_rows(watched, w->watched, rows)) < 0 || (w->ends = take_rows(finite, w->finite, rows)) < 0)
        goto done;
    w->ins = take_columns(inputs, w->in, held, &holding, rows, PyBUF_SIMPLE);
    if (w->ins < 0)
        goto done;
    w->outs = take_columns(outputs, w->out, held, &holding, rows, PyBUF_WRITABLE);
    if (w->outs < 0)
        goto done;
    Py_ssize_t recorded = (Py_ssize_t)((first + (uint64_t)steps) / (uint64_t)every - first / (uint64_t)every);
    for (Py_ssize_t i = 0; i < w->outs; i++)
        if (!has_rows(w->out[i].size, recorded, count)) {
            PyErr_SetString(PyExc_ValueError, "an output has room for a row of each step that is recorded");
            goto done;
        }
    for (Py_ssize_t i = 0; i < w->ins; i++) {
        w->in[i].is_wide = has_rows(w->in[i].size, steps, count);
        if (!w->in[i].is_wide && w->in[i].size != steps) {
            PyErr_SetString(PyExc_ValueError, "an input has a row of numbers for each step, or one number");
            goto done;
        }
    }
    w->before = PyMem_Malloc((size_t)(rows * count) * sizeof(uint64_t));
    marks = PyMem_Malloc((size_t)count);
    if (!w->before || !marks) {
        PyErr_NoMemory();
        goto done;
    }
    if (!prepare(held[3].buf, w->stages, w->work, w->registers, rows, count, marks))
        goto done;
    Py_ssize_t did;
    fenv_t mode;
    Py_BEGIN_ALLOW_THREADS
    fegetenv(&mode);
    fesetenv(FE_DFL_ENV);
    did = walk(w, steps, first);
    fesetenv(&mode);
    Py_END_ALLOW_THREADS
    result = PyLong_FromSsize_t(did);
done:
    PyMem_Free(marks);
    PyMem_Free(w->before);
    PyMem_Free(w);
    while (holding)
        PyBuffer_Release(&held[--holding]);
    return result;
}
