/* Rounding and reading, for one width of word; included once for binary32 words and once for binary64 words.

   The includer defines BITS (32 or 64), T (trailing significand bits), Int and Unsigned, and sees to it that the
   processor rounds to nearest and keeps subnormal numbers while these run.  Most is arithmetic of integers, without
   branches, so that compilers turn the loops into vectors. */

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(name) PASTE(name, BITS)

#define HIDDEN ((Int)1 << T)
#define MAGNITUDE (~((Unsigned)1 << (BITS - 1)))
#define INFINITE ((Int)(MAGNITUDE >> T << T)) /* the exponent field all ones */
#define FAR (BITS - 2)                        /* a cut this high keeps nothing of a significand */

typedef union {
    NAME(Float) number;
    Int bits;
} NAME(Punned);

/* Cut c `shift` places up and round; `base` is the code's distance to the kept digits, for its parity.
   Sets *lost where the tail is not zero.  The decision of numbers/rounding.py, as an addend: with U = 2^shift,
   (2c + A) >> (shift + 1) where A = 0 keeps, U adds half, 2U - 1 goes away from zero whatever is lost. */
static INLINE Int NAME(cut)(Int c, Int shift, Int base, Int negative, const Recipe *r, int how, uint64_t draw,
                            Int *lost)
{
    Int near = shift < FAR ? shift : FAR;
    Unsigned unit = (Unsigned)r->one << near, u = (Unsigned)c, kept = u >> near;
    Unsigned rest = u & (unit - 1), addend;
    *lost = rest != 0;
    if (how == STOCHASTIC) {
        /* floor(2^32 * rest / unit), whatever the shift, without leaving 64 bits */
        uint64_t wide = (uint64_t)rest, at = (uint64_t)shift;
        uint64_t threshold = at <= 32 ? (wide << 1) << ((31 - at) & 63) : wide >> (at - 32 < 63 ? at - 32 : 63);
        threshold = at == 32 ? wide : threshold;
        return (Int)(kept + (draw < threshold));
    }
    Unsigned odd = ((Unsigned)base + kept) & 1;
    if (how == NEAREST_EVEN)
        addend = unit - 1 + odd;
    else {
        /* One of eight addends, by sign and parity: (unit << doubled) - less, or none. */
        Int which = (negative & 2) | (Int)odd;
        Unsigned doubled = (Unsigned)(r->doubled >> which) & 1, less = (Unsigned)(r->less >> which) & 1;
        Unsigned any = (Unsigned)0 - ((Unsigned)(r->any >> which) & 1);
        addend = ((unit << doubled) - less) & any;
    }
    return (Int)(((u << 1) + addend) >> (near + 1));
}

/* Return the code of one word.  `plain` formats have a sign, a zero and subnormals, and nothing is flushed or
   told; the others pay for the rest, and *flags gets what was raised, with REFUSED where the context refuses. */
static INLINE uint64_t NAME(code)(Unsigned word, const Recipe *r, int plain, int how, uint64_t draw, uint8_t *flags)
{
    Int negative = (Int)word >> (BITS - 1), magnitude = (Int)(word & MAGNITUDE);
    Int field = magnitude >> T, low = (Int)r->low, t = (Int)r->t;
    Int c = (magnitude & (HIDDEN - 1)) | (field ? HIDDEN : 0);
    /* What a format or a context lacks is asked with masks, not branches, or the loop is no loop of vectors. */
    if (!plain) {
        c = (field != 0) | !r->flush_inputs ? c : 0;
        magnitude = (field != 0) | !r->flush_inputs ? magnitude : 0;
        negative = (c != 0) | !!r->is_signed ? negative : 0;
    }
    Int e = field ? field : 1, over = e - low, under = over < 0 ? -over : 0, lost;
    Int tiny = 0, lifted = 0, shift = (Int)r->cut + under, base = (over > 0 ? over : 0) << t;
    if (!plain) {
        tiny = (magnitude < low << T) & (c != 0);
        lifted = tiny ? (Int)r->lift : 0;
        shift += lifted;
        base = lifted ? 0 : base - !r->zero;
    }
    Int rank = base + (NAME(cut)(c, shift, base, negative, r, how, draw, &lost) << lifted);
    if (plain) {
        Unsigned sign = (Unsigned)negative & (Unsigned)r->sign & (rank ? ~(Unsigned)0 : (Unsigned)r->negative_zero);
        Unsigned code = (Unsigned)rank | sign;
        code = rank > (Int)r->top ? (Unsigned)(negative ? r->overflow[1].code : r->overflow[0].code) : code;
        Unsigned nan = (Unsigned)(negative ? r->nan[1].code : r->nan[0].code);
        nan |= ((Unsigned)magnitude & (Unsigned)r->payload) >> r->cut;
        Unsigned infinity = (Unsigned)(negative ? r->infinity[1].code : r->infinity[0].code);
        Unsigned special = magnitude > INFINITE ? nan : infinity;
        return magnitude >= INFINITE ? special : code;
    }
    /* A tiny number that p digits, were there room below emin, would round up to 2^emin may not be tiny. */
    Int lowest = low <= 1, binade = ((magnitude >= (low - 1) << T) & !lowest) | ((c >= HIDDEN >> 1) & lowest);
    Int doubled = r->cut == 0, places = (Int)r->cut + doubled - lowest, beneath = -((Int)1 << t) - !r->zero, _;
    Int reached = NAME(cut)(c << doubled, places, beneath, negative, r, how, draw, &_) >> (t + 1);
    tiny &= !(binade & (reached != 0) & !!r->after);
    Int raised = lost ? (tiny ? UNDERFLOW | INEXACT : INEXACT) : 0;
    Int below = (negative != 0) & !r->is_signed & ((rank > 0) | !r->zero), flushed = tiny & !!r->flush_results;
    rank = flushed ? 0 : rank;
    raised = flushed ? UNDERFLOW | INEXACT : raised;
    raised = (rank < 0) & (c != 0) & !r->zero ? UNDERFLOW | INEXACT : raised;
    Unsigned sign = (Unsigned)negative & (Unsigned)r->sign & (rank ? ~(Unsigned)0 : (Unsigned)r->negative_zero);
    Unsigned code = (Unsigned)(rank > 0 ? rank : 0) | sign;
    /* Both are loaded before one is chosen: a load under a condition would be a branch. */
#define SETTLED(where, pair)                                                             \
    do {                                                                                 \
        Int here = (where);                                                              \
        Unsigned positive_code = (Unsigned)(pair)[0].code, negative_code = (Unsigned)(pair)[1].code; \
        Int positive_flags = (Int)(pair)[0].flags, negative_flags = (Int)(pair)[1].flags; \
        code = here ? (negative ? negative_code : positive_code) : code;                 \
        raised = here ? (negative ? negative_flags : positive_flags) : raised;           \
    } while (0)
    SETTLED(rank > (Int)r->top, r->overflow);
    SETTLED((c == 0) & !r->zero, r->zeros);
    SETTLED(below, r->negatives);
    SETTLED(magnitude == INFINITE, r->infinity);
    SETTLED(magnitude > INFINITE, r->nan);
#undef SETTLED
    Int nan = magnitude > INFINITE, quiet = (magnitude & (HIDDEN >> 1)) != 0;
    code |= nan ? ((Unsigned)magnitude & (Unsigned)r->payload) >> r->cut : 0;
    raised |= nan & !quiet ? INVALID : 0;
    *flags = (uint8_t)raised;
    return code;
}

#define ROUND_LOOP(name, Out, plain, how)                                                                    \
    CLONES static void NAME(name)(const Unsigned *restrict words, Out *restrict codes, uint8_t *restrict flags, \
                                  Py_ssize_t count, const Recipe *r, uint64_t first)                           \
    {                                                                                                          \
        const Recipe own = *r;                                                                                 \
        for (Py_ssize_t i = 0; i < count; i++) {                                                               \
            uint8_t raised = 0;                                                                                \
            uint64_t drawn = how == STOCHASTIC ? draw(own.seed, first + (uint64_t)i) : 0;                      \
            codes[i] = (Out)NAME(code)(words[i], &own, plain, how, drawn, &raised);                            \
            if (!plain)                                                                                        \
                flags[i] = raised;                                                                             \
        }                                                                                                      \
    }

#define ROUND_LOOPS(Out, out)                             \
    ROUND_LOOP(even_##out##_, Out, 1, NEAREST_EVEN)       \
    ROUND_LOOP(directed_##out##_, Out, 1, DIRECTED)       \
    ROUND_LOOP(drawn_##out##_, Out, 1, STOCHASTIC)        \
    ROUND_LOOP(told_even_##out##_, Out, 0, NEAREST_EVEN)  \
    ROUND_LOOP(told_##out##_, Out, 0, DIRECTED)           \
    ROUND_LOOP(told_drawn_##out##_, Out, 0, STOCHASTIC)   \
    SWIFT_LOOP(Out, out)

/* To nearest even, into a plain format, below its largest number: the way that most arrays go.  Adding M, a power of
   two whose last place is the format's, lets the processor round; the integer between the sum's bits and M's is what
   is kept (at precision 1 the code's parity is not the integer's).  A format with the word's own range needs no M: every number is cut at the same place.  Return whether
   all of the run was below the largest number; if not, it is to be done again by the other way. */
#define SWIFT_LOOP(Out, out)                                                                                      \
    CLONES static int NAME(swift_##out##_)(const Unsigned *restrict words, Out *restrict codes, Py_ssize_t count, \
                                           const Recipe *r)                                                       \
    {                                                                                                             \
        const Int low = (Int)(r->low << T), raise = (Int)(r->cut << T), back = T - (Int)r->t;                     \
        const Unsigned sign = (Unsigned)r->sign, zero = (Unsigned)r->negative_zero;                               \
        const int shift = BITS - 1 - r->sign_place;                                                               \
        Int most = 0;                                                                                             \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                  \
            Unsigned word = words[i];                                                                             \
            Int magnitude = (Int)(word & MAGNITUDE), field = magnitude & INFINITE;                                \
            NAME(Punned) x, m, sum;                                                                               \
            field = field > low ? field : low;                                                                    \
            x.bits = magnitude;                                                                                   \
            m.bits = field + raise;                                                                               \
            sum.number = x.number + m.number;                                                                     \
            Int rank = sum.bits - m.bits + ((field - low) >> back);                                               \
            most = magnitude > most ? magnitude : most;                                                           \
            codes[i] = (Out)((Unsigned)rank | ((word >> shift) & sign & (rank ? ~(Unsigned)0 : zero)));           \
        }                                                                                                         \
        return most <= (Int)r->largest;                                                                           \
    }                                                                                                             \
    CLONES static int NAME(level_##out##_)(const Unsigned *restrict words, Out *restrict codes, Py_ssize_t count, \
                                           const Recipe *r)                                                       \
    {                                                                                                             \
        const int cut = (int)r->cut, shift = BITS - 1 - r->sign_place;                                            \
        const Unsigned sign = (Unsigned)r->sign, zero = (Unsigned)r->negative_zero;                               \
        const Unsigned half = ((Unsigned)1 << cut >> 1) - (cut > 0), parity = cut > 0;                            \
        Int most = 0;                                                                                             \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                  \
            Unsigned word = words[i], magnitude = word & MAGNITUDE;                                               \
            Unsigned rank = (magnitude + half + ((magnitude >> cut) & parity)) >> cut;                            \
            most = (Int)magnitude > most ? (Int)magnitude : most;                                                 \
            codes[i] = (Out)(rank | ((word >> shift) & sign & (rank ? ~(Unsigned)0 : zero)));                     \
        }                                                                                                         \
        return most <= (Int)r->largest;                                                                           \
    }

#define ROUND_LOOP_FOR(Out, out)                                                                              \
    for (Py_ssize_t at = 0; at < count; at += CHUNK) {                                                        \
        Py_ssize_t some = count - at < CHUNK ? count - at : CHUNK;                                            \
        Out *to = (Out *)codes + at;                                                                          \
        if (r->plain && !flags) {                                                                             \
            if (way == LEVEL && NAME(level_##out##_)(words + at, to, some, r))                                \
                continue;                                                                                     \
            if (way == SWIFT && NAME(swift_##out##_)(words + at, to, some, r))                                \
                continue;                                                                                     \
            (how == NEAREST_EVEN ? NAME(even_##out##_) : how == DIRECTED ? NAME(directed_##out##_)            \
                                                                         : NAME(drawn_##out##_))(             \
                words + at, to, NULL, some, r, first + (uint64_t)at);                                         \
            continue;                                                                                         \
        }                                                                                                     \
        uint8_t aside[CHUNK], *here = flags ? flags + at : aside;                                             \
        (how == NEAREST_EVEN ? NAME(told_even_##out##_) : how == DIRECTED ? NAME(told_##out##_)               \
                                                                          : NAME(told_drawn_##out##_))(       \
            words + at, to, here, some, r, first + (uint64_t)at);                                             \
        for (Py_ssize_t i = 0; i < some; i++)                                                                 \
            all |= here[i];                                                                                   \
    }

ROUND_LOOPS(uint8_t, 8)
ROUND_LOOPS(uint16_t, 16)
ROUND_LOOPS(uint32_t, 32)
#if BITS == 64
ROUND_LOOPS(uint64_t, 64)
#endif

/* The same two ways to values instead of codes: what is kept, where it was. */
CLONES static int NAME(swift_values)(const Unsigned *restrict words, Unsigned *restrict values, Py_ssize_t count,
                                     const Recipe *r)
{
    const Int low = (Int)(r->low << T), raise = (Int)(r->cut << T);
    const Unsigned zero = (Unsigned)r->negative_zero;
    Int most = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Unsigned word = words[i];
        Int magnitude = (Int)(word & MAGNITUDE), field = magnitude & INFINITE;
        NAME(Punned) x, m, kept;
        field = field > low ? field : low;
        x.bits = magnitude;
        m.bits = field + raise;
        kept.number = (x.number + m.number) - m.number;
        most = magnitude > most ? magnitude : most;
        values[i] = (Unsigned)kept.bits | (word & ~MAGNITUDE & (kept.bits ? ~(Unsigned)0 : zero));
    }
    return most <= (Int)r->largest;
}

CLONES static int NAME(level_values)(const Unsigned *restrict words, Unsigned *restrict values, Py_ssize_t count,
                                     const Recipe *r)
{
    const int cut = (int)r->cut;
    const Unsigned zero = (Unsigned)r->negative_zero;
    const Unsigned half = ((Unsigned)1 << cut >> 1) - (cut > 0), parity = cut > 0;
    Int most = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Unsigned word = words[i], magnitude = word & MAGNITUDE;
        Unsigned kept = (magnitude + half + ((magnitude >> cut) & parity)) >> cut << cut;
        most = (Int)magnitude > most ? (Int)magnitude : most;
        values[i] = kept | (word & ~MAGNITUDE & (kept ? ~(Unsigned)0 : zero));
    }
    return most <= (Int)r->largest;
}

/* Return whether a run was rounded to values at once; it was not where this way does not serve, or a number is large. */
static int NAME(round_values)(const Unsigned *words, Unsigned *values, Py_ssize_t count, const Recipe *r)
{
    if (!r->plain || r->how != NEAREST_EVEN || !r->t || words == values)
        return 0;
    return (r->low == 1 ? NAME(level_values) : NAME(swift_values))(words, values, count, r);
}

/* Round a run of words into codes of `size` bytes; return the union of what was raised where it was looked at. */
static unsigned NAME(round_words)(const Unsigned *words, void *codes, int size, uint8_t *flags, Py_ssize_t count,
                                  const Recipe *r, uint64_t first)
{
    unsigned all = 0;
    if (r->own && !flags) {
        Py_ssize_t done = BITS == 32 ? halves((const uint32_t *)words, (uint16_t *)codes, count)
                                     : singles((const uint64_t *)words, (uint32_t *)codes, count);
        words += done, count -= done, codes = (char *)codes + done * size;
    }
    int how = (int)r->how, way = how != NEAREST_EVEN ? ANY : r->low == 1 ? LEVEL : r->t ? SWIFT : ANY;
    if (size == 1) {
        ROUND_LOOP_FOR(uint8_t, 8)
    } else if (size == 2) {
        ROUND_LOOP_FOR(uint16_t, 16)
    } else if (size == 4) {
        ROUND_LOOP_FOR(uint32_t, 32)
    }
#if BITS == 64
    else {
        ROUND_LOOP_FOR(uint64_t, 64)
    }
#endif
    return all;
}

/* Return the word of a code, for formats whose numbers are all words.  A normal number only changes its bias; a
   subnormal one, an integer below 2^T, gets its exponent from a conversion, which no mode of the processor can round
   or flush.  `how` is SHIFTED where the fields lie as the word's do, and IEEE where every code past infinity is a NaN
   with a payload. */
static INLINE Unsigned NAME(word)(Unsigned code, const Reading *r, int how)
{
    if (how == SHIFTED)
        return code << r->cut;
    Int magnitude = (Int)(code & (Unsigned)r->magnitudes);
    Unsigned sign = (code & (Unsigned)r->sign) << r->sign_shift;
    Unsigned word = ((Unsigned)magnitude << r->cut) + ((Unsigned)r->adjust << T);
    NAME(Punned) small;
    small.bits = (magnitude & (HIDDEN - 1)) | ((Int)(T + (1 << (BITS - T - 2)) - 1) << T);
    small.number -= (NAME(Float))HIDDEN;
    Unsigned below = (Unsigned)small.bits + ((Unsigned)r->qmin << T);
    below = magnitude ? below & (Unsigned)r->subnormals : 0;
    word = magnitude < (Int)r->normal ? below : word;
    if (how == IEEE)
        return (word | (magnitude > (Int)r->top ? (Unsigned)INFINITE : 0)) | sign;
    Unsigned nan = (Unsigned)INFINITE | HIDDEN >> 1, special = magnitude == (Int)r->infinity ? (Unsigned)INFINITE : nan;
    word = magnitude > (Int)r->top ? special : word;
    return (r->nan_for_negative_zero && code == (Unsigned)r->sign ? nan : word) | sign;
}

#define READ_LOOP_AS(name, In, how)                                                                               \
    CLONES static void NAME(name)(const In *restrict codes, Unsigned *restrict words, Py_ssize_t count,           \
                                  const Reading *r)                                                               \
    {                                                                                                             \
        const Reading own = *r;                                                                                   \
        for (Py_ssize_t i = 0; i < count; i++)                                                                    \
            words[i] = NAME(word)((Unsigned)codes[i], &own, how);                                                 \
    }

#define READ_LOOP(In, in)                                                                                       \
    READ_LOOP_AS(shift_##in##_, In, SHIFTED)                                                                     \
    READ_LOOP_AS(read_ieee_##in##_, In, IEEE)                                                                    \
    READ_LOOP_AS(read_other_##in##_, In, OTHER)                                                                  \
    static void NAME(read_##in##_)(const In *codes, Unsigned *words, Py_ssize_t count, const Reading *r)        \
    {                                                                                                            \
        (r->how == SHIFTED ? NAME(shift_##in##_) : r->how == IEEE ? NAME(read_ieee_##in##_)                     \
                                                                  : NAME(read_other_##in##_))(codes, words, count, r); \
    }

READ_LOOP(uint16_t, 16)
READ_LOOP(uint32_t, 32)
#if BITS == 64
READ_LOOP(uint64_t, 64)
#endif

/* Codes of at most 8 bits are looked up. */
static void NAME(look_up)(const uint8_t *restrict codes, Unsigned *restrict words, Py_ssize_t count,
                          const Unsigned *restrict table)
{
    for (Py_ssize_t i = 0; i < count; i++)
        words[i] = table[codes[i]];
}

static void NAME(read_codes)(const void *codes, int size, Unsigned *words, Py_ssize_t count, const Reading *r)
{
    if (size == 2)
        NAME(read_16_)((const uint16_t *)codes, words, count, r);
    else if (size == 4)
        NAME(read_32_)((const uint32_t *)codes, words, count, r);
#if BITS == 64
    else
        NAME(read_64_)((const uint64_t *)codes, words, count, r);
#endif
}

/* Operations on words, rounded to odd: the processor's rounding to nearest, and the sign of what it lost
   (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, IEEE TC 57(4), 2008).  A rounding to a format
   with two digits less is then right in every direction. */
static INLINE Int NAME(to_odd)(NAME(Float) nearest, NAME(Float) lost)
{
    NAME(Punned) r, rest;
    r.number = nearest;
    rest.number = lost;
    Int even = ~r.bits & 1, apart = (r.bits ^ rest.bits) >> (BITS - 1);
    return r.bits + (((Unsigned)rest.bits & MAGNITUDE) != 0 ? (even ^ apart) - apart : 0);
}

static INLINE NAME(Float) NAME(sum_error)(NAME(Float) x, NAME(Float) y, NAME(Float) sum)
{
    NAME(Float) back = sum - x;
    return (x - (sum - back)) + (y - back);
}

/* Whether the errors of a product or a quotient are exact: zero, or neither huge nor tiny.  The last place of a product
   of two such numbers is one of the word's. */
static INLINE Int NAME(is_tame)(NAME(Punned) x)
{
    Int field = (Int)((Unsigned)x.bits & MAGNITUDE) >> T, middle = ((Int)1 << (BITS - T - 2)) - 1;
    return (x.number == 0) | ((field > middle - (middle - 1 - T) / 2) & (field < middle + middle / 2));
}

#define OPERATION(name, few, ...)                                                                                 \
    CLONES static void NAME(name)(const Unsigned *restrict xs, const Unsigned *restrict ys,                       \
                                  const Unsigned *restrict zs, Unsigned *restrict results,                       \
                                  uint8_t *restrict marks, Py_ssize_t count, Unsigned zero)                       \
    {                                                                                                             \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                  \
            NAME(Punned) x, y, z, r;                                                                              \
            Int odd, tame;                                                                                        \
            (void)y, (void)z;                                                                                     \
            x.bits = (Int)xs[i];                                                                                  \
            y.bits = few < 2 ? 0 : (Int)ys[i];                                                                    \
            z.bits = few < 3 ? 0 : (Int)zs[i];                                                                    \
            __VA_ARGS__                                                                                           \
            results[i] = (Unsigned)odd;                                                                           \
            marks[i] = (uint8_t)(tame & ((r.bits & INFINITE) != INFINITE) ? 0 : SPECIAL);                          \
        }                                                                                                         \
    }

/* An exact zero from a sum of opposite signs has the direction's sign: `zero`. */
#define SUM                                                                          \
    r.number = x.number + y.number;                                                  \
    odd = NAME(to_odd)(r.number, NAME(sum_error)(x.number, y.number, r.number));     \
    odd = (((Unsigned)r.bits << 1) == 0) & ((x.bits ^ y.bits) < 0) ? (Int)zero : odd;               \
    tame = 1;

OPERATION(add, 2, SUM)
OPERATION(subtract, 2, y.number = -y.number; SUM)
OPERATION(multiply, 2, r.number = x.number * y.number;
          odd = NAME(to_odd)(r.number, NAME(fused)(x.number, y.number, -r.number));
          tame = NAME(is_tame)(x) & NAME(is_tame)(y);)
OPERATION(divide, 2, r.number = x.number / y.number;
          NAME(Float) rest = NAME(fused)(-r.number, y.number, x.number);
          odd = NAME(to_odd)(r.number, y.number > 0 ? rest : -rest);
          tame = NAME(is_tame)(x) & NAME(is_tame)(y) & (y.number != 0);)
OPERATION(sqrt, 1, r.number = NAME(root)(x.number);
          odd = NAME(to_odd)(r.number, NAME(fused)(-r.number, r.number, x.number));
          tame = NAME(is_tame)(x) & (x.number >= 0);)
OPERATION(fma, 3, NAME(Float) high = x.number * y.number, low = NAME(fused)(x.number, y.number, -high);
          NAME(Float) second = z.number + low, third = NAME(sum_error)(z.number, low, second);
          NAME(Float) first = high + second, fourth = NAME(sum_error)(high, second, first);
          NAME(Float) rest = third + fourth;
          NAME(Punned) tail;
          tail.bits = NAME(to_odd)(rest, NAME(sum_error)(third, fourth, rest));
          r.number = first + tail.number;
          odd = NAME(to_odd)(r.number, NAME(sum_error)(first, tail.number, r.number));
          odd = r.number == 0 ? ((x.bits ^ y.bits ^ z.bits) < 0 ? (Int)zero : z.bits & (Int)~MAGNITUDE) : odd;
          tame = NAME(is_tame)(x) & NAME(is_tame)(y) & NAME(is_tame)(z);)

/* The processor's own, for results that are words. */
OPERATION(fma_to_nearest, 3, r.number = NAME(fused)(x.number, y.number, z.number); odd = r.bits; tame = 1; (void)zero;)
OPERATION(divide_to_nearest, 2, r.number = x.number / y.number; odd = r.bits; tame = 1; (void)zero;)
OPERATION(sqrt_to_nearest, 1, r.number = NAME(root)(x.number); odd = r.bits; tame = 1; (void)zero;)

typedef void (*NAME(Operation))(const Unsigned *, const Unsigned *, const Unsigned *, Unsigned *, uint8_t *, Py_ssize_t,
                                Unsigned);
static const NAME(Operation) NAME(operations)[] = {
    NULL, NAME(add), NAME(subtract), NAME(multiply), NAME(divide), NAME(sqrt), NAME(fma), NAME(fma_to_nearest),
    NAME(divide_to_nearest), NAME(sqrt_to_nearest),
};

/* Everything that is done to a run, in pieces that stay in the nearest cache: operands read as words, the operation,
   the rounding, and codes read as values.  Returns the union of flags and marks. */
static unsigned NAME(run)(const Work *w, Py_ssize_t count)
{
    unsigned all = 0;
    Unsigned operands[3][CHUNK], results[CHUNK];
    uint64_t codes[CHUNK];
    for (Py_ssize_t at = 0; at < count; at += CHUNK) {
        Py_ssize_t some = count - at < CHUNK ? count - at : CHUNK;
        const Unsigned *words[3] = {NULL, NULL, NULL};
        for (int i = 0; i < w->operands; i++) {
            const char *from = (const char *)w->codes[i] + at * w->sizes[i];
            words[i] = operands[i];
            if (!w->readings[i])
                words[i] = (const Unsigned *)from;
            else if (w->sizes[i] == 1)
                NAME(look_up)((const uint8_t *)from, operands[i], some, (const Unsigned *)w->readings[i]);
            else
                NAME(read_codes)(from, w->sizes[i], operands[i], some, (const Reading *)w->readings[i]);
        }
        if (w->operation) {
            NAME(operations)[w->operation](words[0], words[1], words[2], results, w->marks + at, some,
                                           (Unsigned)w->negative_zero << (BITS - 1));
            words[0] = results;
            for (Py_ssize_t i = 0; i < some; i++)
                all |= w->marks[at + i];
        }
        char *to = (char *)w->to + at * w->to_size;
        if (w->to_reading && !w->flags && NAME(round_values)(words[0], (Unsigned *)to, some, &w->recipe))
            continue;
        void *coded = w->to_reading ? (void *)codes : (void *)to;
        uint8_t *flags = w->flags ? w->flags + at : NULL;
        all |= NAME(round_words)(words[0], coded, w->code_size, flags, some, &w->recipe, w->first + (uint64_t)at);
        if (w->to_reading && w->code_size == 1)
            NAME(look_up)((const uint8_t *)codes, (Unsigned *)to, some, (const Unsigned *)w->to_reading);
        else if (w->to_reading)
            NAME(read_codes)(codes, w->code_size, (Unsigned *)to, some, (const Reading *)w->to_reading);
    }
    return all;
}

/* Add products to sums, one after the other: sums[i, j] takes x[k, i, j] * y[k, i, j] for k = 0, 1, …, each product
   rounded and then each sum, or both at once.  Strides are of elements, and 0 where an operand is broadcast. */
#define ACCUMULATE(name, ADDED)                                                                                   \
    CLONES static void NAME(name)(NAME(Float) *restrict sums, const NAME(Float) *xs, const NAME(Float) *ys,       \
                                  const Strides *x, const Strides *y, Py_ssize_t inner, Py_ssize_t rows,          \
                                  Py_ssize_t columns)                                                             \
    {                                                                                                             \
        for (Py_ssize_t i = 0; i < rows; i++) {                                                                   \
            NAME(Float) *restrict sum = sums + i * columns;                                                       \
            for (Py_ssize_t k = 0; k < inner; k++) {                                                              \
                const NAME(Float) *restrict a = xs + k * x->inner + i * x->row;                                   \
                const NAME(Float) *restrict b = ys + k * y->inner + i * y->row;                                   \
                if (x->column == 0 && y->column == 1) {                                                           \
                    NAME(Float) p = *a;                                                                           \
                    for (Py_ssize_t j = 0; j < columns; j++) {                                                    \
                        NAME(Float) q = b[j], s = sum[j];                                                         \
                        sum[j] = ADDED;                                                                           \
                    }                                                                                             \
                } else if (x->column == 1 && y->column == 1) {                                                    \
                    for (Py_ssize_t j = 0; j < columns; j++) {                                                    \
                        NAME(Float) p = a[j], q = b[j], s = sum[j];                                               \
                        sum[j] = ADDED;                                                                           \
                    }                                                                                             \
                } else {                                                                                          \
                    for (Py_ssize_t j = 0; j < columns; j++) {                                                    \
                        NAME(Float) p = a[j * x->column], q = b[j * y->column], s = sum[j];                       \
                        sum[j] = ADDED;                                                                           \
                    }                                                                                             \
                }                                                                                                 \
            }                                                                                                     \
        }                                                                                                         \
    }

ACCUMULATE(add_products, s + p * q)
ACCUMULATE(add_fused, NAME(fused)(p, q, s))

#undef PASTE_
#undef PASTE
#undef NAME
#undef HIDDEN
#undef MAGNITUDE
#undef INFINITE
#undef FAR
#undef ROUND_LOOP
#undef ROUND_LOOPS
#undef ROUND_LOOP_FOR
#undef READ_LOOP
#undef READ_LOOP_AS
#undef SWIFT_LOOP
#undef OPERATION
#undef SUM
#undef ACCUMULATE
#undef BITS
#undef T
#undef Int
#undef Unsigned
