/* `run` and `accumulate` of the module: arguments are checked before the loops of word.h run. */

/* Whether a place is aligned and, in every step, within its buffer; the buffer must consist of whole rows. */
static int fits(const Call *c, const Place *p)
{
    const Py_buffer *b = &c->held[p->buffer];
    if ((uintptr_t)b->buf % (uintptr_t)p->size || !c->count)
        return !c->count;
    Py_ssize_t row = c->count * (Py_ssize_t)p->size, rows = b->len / row;
    return b->len % row == 0 && p->row >= 0 && p->row < rows && p->stride >= 0 &&
           (c->steps < 2 || p->stride <= (rows - 1 - p->row) / (c->steps - 1));
}

/* Whether a place has no buffer, or fits a buffer that may be written, with elements of this size. */
static int is_room(const Call *c, const Place *p, int64_t size)
{
    return !buffer_of(c, p->buffer) || (p->size == size && p->buffer < c->written && fits(c, p));
}

/* Replace the buffer indices of a valid place by pointers, and convert its `stride` from rows to bytes. */
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

/* Whether a place has no reading, or a table or a Reading for codes of this size. */
static int is_reading(const Call *c, int64_t number, int64_t size, int64_t word_size)
{
    const void *reading = buffer_of(c, number);
    if (!reading)
        return size == word_size;
    size_t need = size == 1 ? 256 * (size_t)word_size : word_size == 4 ? sizeof(Reading32) : sizeof(Reading64);
    return (size_t)c->held[number].len == need && (uintptr_t)reading % (uintptr_t)word_size == 0 &&
           (size == 1 || (word_size == 4 ? is_readable32(reading) : is_readable64(reading)));
}

/* Return an error message for a stage that would cause an undefined shift or access, else NULL. */
static const char *fault_of(const Call *c, Stage *s)
{
    if (s->operation < 0 || s->operation >= OPERATIONS || !has_kernel(s->word_size, s->code_size))
        return "unknown operation, or no kernel for these sizes of words and codes";
    if (s->path < WHOLE || s->path > READ || (s->path == DRAWN && !s->drawn) || s->direction < 0 || s->direction > 3 ||
        (s->own && s->code_size != s->word_size / 2) || !(s->word_size == 4 ? is_sound32(s->rule) : is_sound64(s->rule)))
        return "a stage has a number out of range";
    for (int i = 0; i < arity[s->operation]; i++) {
        const Place *p = &s->places[i];
        if (!has_kernel(s->word_size, p->size) || !is_reading(c, p->number, p->size, s->word_size) ||
            (s->path == READ && !buffer_of(c, p->number)))
            return "a reading does not fit its operand";
        if (!buffer_of(c, p->buffer) || !fits(c, p))
            return "an operand is not an aligned buffer with a whole row for each step";
    }
    const Place *to = &s->places[TO];
    if (buffer_of(c, to->number) && !is_reading(c, to->number, s->code_size, s->word_size))
        return "a reading does not fit the output";
    int in_words = buffer_of(c, to->number) || s->path == READ;
    if (!buffer_of(c, to->buffer) || !is_room(c, to, in_words ? s->word_size : s->code_size) ||
        !is_room(c, &s->places[FLAGS], 1) || !is_room(c, &s->places[MARKS], 1) ||
        (s->operation && !buffer_of(c, s->places[MARKS].buffer)))
        return "an output is not an aligned buffer with a whole row for each step";
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
        fault = "a program is not whole stages, or count or steps is out of range";
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
             "words, applies an operation (0: none), rounds to codes, and writes the codes or their values. The random draws\n"
             "have the indices first, first + 1, …. The run ends after a stage that marks an element, or whose context makes\n"
             "an element an error. The tuples contain buffers, or None.");

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

/* Whether an array is aligned and has `axes` axes. The last two must be as long as those of `sums`; a third axis, before
   them, must have the length `first`. */
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
        PyErr_SetString(PyExc_ValueError,
                        "sums must have two axes, of float32 or float64; x and y must have one more axis, the first");
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
