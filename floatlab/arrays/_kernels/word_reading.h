/* Reading codes as words; see word.h. */

/* The parameters for decoding codes to words, in the order in which arrays/lanes/compiled.py packs them. */
typedef struct {
    Unsigned how; /* IEEE: all codes above infinity are NaNs with payloads; SHIFTED: codes are truncated words */
    Unsigned cut, adjust, qmin, magnitudes, sign, sign_shift;
    Int top, infinity;
    Int normal;          /* from this magnitude on, decoding only changes the bias */
    Unsigned subnormals; /* a mask */
    Unsigned no_zero;    /* the code of -0 if it is a NaN, else -1 */
} NAME(Reading);

static int NAME(is_readable)(const void *numbers)
{
    NAME(Reading) r;
    memcpy(&r, numbers, sizeof r);
    return r.cut < BITS && r.sign_shift < BITS;
}

/* Return the word of a code, for formats that the word contains. Normal numbers only need another bias. The
   significands of subnormal numbers are integers below 2^T; a subtraction gives them their exponent, and no mode of the
   processor rounds or flushes its result. `how` is the path of the reading, or a slower one. */
static INLINE Unsigned NAME(word)(Unsigned code, const NAME(Reading) *r, int how)
{
    if (how == SHIFTED)
        return code << r->cut;
    Unsigned magnitude = code & r->magnitudes, sign = (code & r->sign) << r->sign_shift;
    Unsigned word = (magnitude << r->cut) + (r->adjust << T);
    NAME(Punned) small = {.bits = (magnitude & (HIDDEN - 1)) | (Unsigned)(T + (1 << (BITS - T - 2)) - 1) << T};
    small.number -= (Float)HIDDEN;
    Unsigned below = small.bits + (r->qmin << T);
    below = magnitude ? below & r->subnormals : 0;
    word = (Int)magnitude < r->normal ? below : word;
    if (how == IEEE)
        return (word | ((Int)magnitude > r->top ? INFINITE : 0)) | sign;
    Unsigned nan = INFINITE | HIDDEN >> 1, special = (Int)magnitude == r->infinity ? INFINITE : nan;
    word = (Int)magnitude > r->top ? special : word;
    return (code == r->no_zero ? nan : word) | sign;
}

#define READ_LOOP(name, Code, how)                                                                                     \
    CLONES static void NAME(name)(const void *from, Unsigned *restrict words, Py_ssize_t count, const void *numbers)   \
    {                                                                                                                  \
        const Code *restrict codes = from;                                                                             \
        NAME(Reading) reading;                                                                                         \
        memcpy(&reading, numbers, sizeof reading);                                                                     \
        for (Py_ssize_t i = 0; i < count; i++)                                                                         \
            words[i] = NAME(word)(codes[i], &reading, how);                                                            \
    }
READ_LOOP(shift_16, uint16_t, SHIFTED)
READ_LOOP(read_ieee_16, uint16_t, IEEE)
READ_LOOP(read_other_16, uint16_t, OTHER)
READ_LOOP(read_ieee_32, uint32_t, IEEE)
READ_LOOP(read_other_32, uint32_t, OTHER)
#if BITS == 64
READ_LOOP(read_ieee_64, uint64_t, IEEE)
READ_LOOP(read_other_64, uint64_t, OTHER)
#endif

static void NAME(look_up)(const uint8_t *restrict codes, Unsigned *restrict words, Py_ssize_t count,
                          const Unsigned *restrict table)
{
    for (Py_ssize_t i = 0; i < count; i++)
        words[i] = table[codes[i]];
}

/* Decode codes of one byte by a table, and wider codes by their fields. */
static void NAME(read)(const void *codes, int64_t size, Unsigned *words, Py_ssize_t count, const void *reading)
{
    const Unsigned how = size == 1 ? SHIFTED : ((const NAME(Reading) *)reading)->how;
    if (size == 1)
        NAME(look_up)(codes, words, count, reading);
    else if (size == 2 && how == SHIFTED)
        NAME(shift_16)(codes, words, count, reading);
    else if (size == 2)
        (how == IEEE ? NAME(read_ieee_16) : NAME(read_other_16))(codes, words, count, reading);
    else if (size == 4)
        (how != OTHER ? NAME(read_ieee_32) : NAME(read_other_32))(codes, words, count, reading);
#if BITS == 64
    else
        (how != OTHER ? NAME(read_ieee_64) : NAME(read_other_64))(codes, words, count, reading);
#endif
}
