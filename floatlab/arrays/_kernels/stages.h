/* The program of a call: its stages, and the places of their operands and results. */

enum { WHOLE, ANY, DRAWN, FIXED, MAGIC, READ }; /* paths of rounding; READ: words are written unchanged */
enum { OTHER, IEEE, SHIFTED };                  /* paths of reading, from slow to fast */
/* The values of `Flags`, with a prefix: UNDERFLOW is a macro in the <math.h> of macOS and MinGW. */
enum { RAISED_INVALID = 1, RAISED_UNDERFLOW = 8, RAISED_INEXACT = 16 };
enum { SPECIAL = 64, REFUSED = 128 }; /* further marks, for arrays/lanes/compiled.py */
enum { PIECE = 8192 };                /* bytes of words in a chunk */
enum { OPERATIONS = 10 };             /* in the order of arrays/lanes/compiled.py */
static const int arity[OPERATIONS] = {1, 2, 2, 2, 2, 1, 3, 3, 2, 1};
static const int directions[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

/* The place of the numbers of an operand or a result. In the first step, they are row `row` of a buffer; in each further
   step, they are `stride` rows later.  A row has `count` elements (of the call).  `buffer` is an index into the call's
   buffers, where buffers that are written come first, or -1 for no buffer; `resolve` replaces it by the pointer `start`. */
typedef struct {
    union {
        int64_t buffer;
        char *start; /* in the first step */
    };
    int64_t row, stride;
    int64_t size; /* bytes of an element */
    union {
        int64_t number;
        const void *reading; /* how codes are decoded: a table for codes of one byte, else a Reading; NULL for words */
    };
} Place;

enum { TO = 3, FLAGS, MARKS, PLACES };

/* An operation and a rounding, in the order in which arrays/lanes/compiled.py packs their parameters. */
typedef struct {
    int64_t word_size, operation;
    int64_t negative_zero; /* whether an exact zero sum of opposite signs is negative */
    int64_t code_size;     /* bytes; `to` receives codes of this size, or the words of the codes if it has a reading */
    int64_t path, drawn, refuses; /* the path of rounding; whether it needs draws; whether a result can be an error */
    int64_t direction; /* the processor's direction during the rounding, as an index in `directions` */
    int64_t own;       /* 1 if some processors have an instruction for this conversion */
    int64_t largest;   /* the largest magnitude that the path can round, or -1 */
    uint64_t seed;
    Place places[PLACES]; /* up to three operands, then TO, FLAGS and MARKS */
    uint64_t rule[47];              /* a Rule of the words' width */
    uint64_t keep, plus, flip, low; /* turn a draw into the number that is compared with thresholds: see `draw_rule` */
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
