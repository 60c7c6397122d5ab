/* Rounding, reading and arithmetic for one width of word; included once for binary32 words and once for binary64 words.

   The includer defines BITS (32 or 64), T (trailing significand bits), Int and Unsigned, and makes the processor round
   to nearest and keep subnormal numbers while these functions run.  The loops have no branches and mostly one width of
   element, so that compilers vectorise them; `narrow` packs their results.  Each element is shifted by its own amount,
   which vector instructions can do from AVX2 on. */

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(name) PASTE(name, BITS)

#define HIDDEN ((Unsigned)1 << T)
#define MAGNITUDE (~((Unsigned)1 << (BITS - 1)))
#define INFINITE (MAGNITUDE >> T << T) /* the exponent field all ones */
#define FAR (BITS - 2)                 /* a shift by this much leaves nothing of a significand */
#define CHUNK (PIECE / (BITS / 8))     /* elements */

typedef union {
    NAME(Float) number;
    Unsigned bits;
} NAME(Punned);

/* Conditions are masks, all ones or all zeros: GCC 12 cannot vectorise a comparison combined with a loop-invariant flag. */
#define MASK(condition) ((condition) ? ~(Unsigned)0 : 0)
#define CHOOSE(mask, one, other) (((one) & (mask)) | ((other) & ~(mask)))

/* A recipe in this width; `Recipe` explains the fields.  The second entry of a pair is the XOR of the values for positive
   and negative numbers. */
typedef struct {
    Unsigned one, select[2], to_odd, half, odd, up, sign, negative_zero, payload, edge[2], sliver, after;
    Unsigned lift, no_zero, no_sign, flush_inputs, flush_results, codes[5][2], flags[5][2];
    Int t, cut, low, sign_shift, places, normal, top;
} NAME(Rule);

static INLINE NAME(Rule) NAME(rule)(const Recipe *r)
{
#define PAIR(positive, negative) {(Unsigned)(positive), (Unsigned)((positive) ^ (negative))}
#define SETTLED(pair, what) PAIR(r->pair[0].what, r->pair[1].what)
#define ALL(what)                                                                                                      \
    {SETTLED(overflow, what), SETTLED(infinity, what), SETTLED(nan, what), SETTLED(zeros, what), SETTLED(negatives, what)}
    return (NAME(Rule)) {
        .one = (Unsigned)r->one, .select = PAIR(r->select[0], r->select[1]), .to_odd = (Unsigned)r->to_odd,
        .half = (Unsigned)r->half, .odd = (Unsigned)r->odd, .up = (Unsigned)r->up, .sign = (Unsigned)r->sign,
        .negative_zero = (Unsigned)r->negative_zero, .payload = (Unsigned)r->payload,
        .edge = PAIR(r->edge[0], r->edge[1]), .sliver = (Unsigned)r->sliver, .after = MASK(r->after),
        .lift = (Unsigned)r->lift, .no_zero = MASK(!r->zero), .no_sign = MASK(!r->is_signed),
        .flush_inputs = MASK(r->flush_inputs), .flush_results = MASK(r->flush_results),
        .codes = ALL(code), .flags = ALL(flags), .t = (Int)r->t, .cut = T - (Int)r->t, .low = (Int)r->low - 1,
        .sign_shift = BITS - 1 - (Int)r->sign_place, .places = (Int)r->places, .normal = (Int)r->normal, .top = (Int)r->top,
    };
#undef ALL
#undef SETTLED
#undef PAIR
}

/* Stochastic rounding steps away from zero when the draw is below floor(2^32 * rest / 2^shift). */
static INLINE Unsigned NAME(steps)(Unsigned rest, Int shift, Unsigned draw)
{
    Int left = 31 - shift > 0 ? 31 - shift : 0, right = shift - 32 > 0 ? shift - 32 : 0;
    right = right < BITS - 1 ? right : BITS - 1;
    Unsigned few = (rest << 1) << left, many = rest >> right, threshold = shift < 32 ? few : many;
    return draw < threshold;
}

/* Drop the lowest `shift` bits of c and round.  The decision of numbers/rounding.py, written as an addend: the result is
   (c + A) >> shift, and with M = 2^shift - 1 the addend A is 0 toward zero, M away from zero, (M + odd) >> 1 to nearest
   even, (M + 1) >> 1 to nearest with ties away from zero, and to odd M where the kept digits are even, else 0.  `less` is 1
   where the code is one less than the kept digits, since parity is the code's. */
static INLINE Unsigned NAME(cut)(Unsigned c, Int shift, Unsigned less, Unsigned negative, const NAME(Rule) *r, int drawn,
                                 Unsigned draw, Unsigned *lost)
{
    Int near = shift < FAR ? shift : FAR;
    Unsigned mask = (r->one << near) - 1, kept = c >> near, odd = (kept - less) & 1;
    *lost = c & mask;
    if (drawn)
        return kept + NAME(steps)(*lost, shift, draw);
    Unsigned select = ((negative & r->select[1]) ^ r->select[0]) & ~(((Unsigned)0 - odd) & r->to_odd);
    return (c + (((mask & select) + ((odd & r->odd) | r->up)) >> r->half)) >> near;
}

/* Tininess after rounding: a number below 2^emin is not tiny if p digits, with an unbounded exponent, would round it up
   to 2^emin. */
static INLINE Unsigned NAME(is_tiny)(Unsigned magnitude, Unsigned negative, const NAME(Rule) *r, int drawn, Unsigned draw)
{
    if (!drawn)
        return MASK((Int)magnitude < (Int)((negative & r->edge[1]) ^ r->edge[0]));
    Unsigned reached = MASK(NAME(steps)(magnitude - r->sliver, r->places, draw) != 0) & r->after;
    return MASK((Int)magnitude < (Int)r->edge[0]) & ~(MASK((Int)magnitude >= (Int)r->sliver) & reached);
}

static INLINE Unsigned NAME(raise)(Unsigned lost, Unsigned tiny)
{
    return MASK(lost != 0) & (INEXACT | (tiny & UNDERFLOW));
}

/* Add the sign; not every format has a negative zero. */
static INLINE Unsigned NAME(sign)(Unsigned word, Unsigned rank, const NAME(Rule) *r)
{
    return rank | ((word >> r->sign_shift) & r->sign & (MASK(rank != 0) | r->negative_zero));
}

/* How far a number's exponent lies below the smallest normal one; at most as far as the word's own subnormal numbers. */
static INLINE Int NAME(under)(Unsigned magnitude, const NAME(Rule) *r)
{
    Int under = r->low + 1 - (Int)(magnitude >> T);
    under = under < r->low ? under : r->low;
    return under > 0 ? under : 0;
}

/* The code of a word not beyond the largest number of a plain format: one with sign, zero and subnormal numbers, in a
   context without flushing.  c holds the significand and, for normal numbers, the code's exponent field above it, so
   that both are rounded at once. */
static INLINE Unsigned NAME(any)(Unsigned word, const NAME(Rule) *r, int with_flags, int drawn, Unsigned draw, Unsigned *raised)
{
    Unsigned negative = (Unsigned)((Int)word >> (BITS - 1)), magnitude = word & MAGNITUDE, lost;
    Int under = NAME(under)(magnitude, r);
    Unsigned c = magnitude + ((Unsigned)(under - r->low) << T);
    Unsigned rank = NAME(cut)(c, r->cut + under, 0, negative, r, drawn, draw, &lost);
    *raised = with_flags ? NAME(raise)(lost, NAME(is_tiny)(magnitude, negative, r, drawn, draw)) : 0;
    return NAME(sign)(word, rank, r);
}

/* The code of any word in any format and context. */
static INLINE Unsigned NAME(whole)(Unsigned word, const NAME(Rule) *r, int drawn, Unsigned draw, Unsigned *flags)
{
    Unsigned negative = (Unsigned)((Int)word >> (BITS - 1)), magnitude = word & MAGNITUDE, lost;
    magnitude &= ~(MASK(magnitude < HIDDEN) & r->flush_inputs);
    Unsigned zero = MASK(magnitude == 0), tiny = MASK((Int)magnitude < r->normal) & ~zero, lifted = tiny & r->lift;
    negative &= ~(zero & r->no_sign);
    Int under = NAME(under)(magnitude, r);
    Unsigned c = magnitude + ((Unsigned)(under - r->low) << T), lower = r->no_zero & 1;
    Unsigned kept = NAME(cut)(c, r->cut + under + (Int)lifted, lower, negative, r, drawn, draw, &lost);
    tiny &= NAME(is_tiny)(magnitude, negative, r, drawn, draw);
    Unsigned flushed = tiny & r->flush_results, raised = NAME(raise)(lost | flushed, tiny);
    Int rank = (Int)((kept << lifted) - lower);
    Unsigned below = negative & r->no_sign & (MASK(rank > 0) | r->no_zero), under_all = MASK(rank < 0);
    rank &= (Int)~flushed;
    raised = CHOOSE(under_all & ~zero, UNDERFLOW | INEXACT, raised);
    Unsigned sign = negative & r->sign & (MASK(rank != 0) | r->negative_zero);
    Unsigned code = ((Unsigned)rank & ~under_all) | sign;
    Unsigned nan = MASK(magnitude > INFINITE), signaling = nan & MASK((magnitude & HIDDEN >> 1) == 0);
#define SETTLED(where, pair)                                                                                           \
    do {                                                                                                               \
        Unsigned here = (where);                                                                                       \
        code = CHOOSE(here, (negative & r->codes[pair][1]) ^ r->codes[pair][0], code);                                 \
        raised = CHOOSE(here, (negative & r->flags[pair][1]) ^ r->flags[pair][0], raised);                             \
    } while (0)
    SETTLED(MASK(rank > r->top), 0);
    SETTLED(zero & r->no_zero, 3);
    SETTLED(below, 4);
    SETTLED(MASK(magnitude == INFINITE), 1);
    SETTLED(nan, 2);
#undef SETTLED
    *flags = raised | (signaling & INVALID);
    return code | (nan & (magnitude & r->payload) >> r->cut);
}

/* Round to nearest even into a plain format with more than one digit and fewer than the word: the processor rounds when M
   is added, a power of two whose last place is the format's.  The bits of the sum less those of M are the kept digits. */
static INLINE Unsigned NAME(magic_add)(Unsigned word, const NAME(Rule) *r, int with_flags, int to_value, Unsigned *raised)
{
    const Int low = (Int)((Unsigned)(r->low + 1) << T);
    Int magnitude = (Int)(word & MAGNITUDE), field = magnitude & (Int)INFINITE;
    field = field > low ? field : low;
    NAME(Punned) x = {.bits = (Unsigned)magnitude}, m = {.bits = (Unsigned)field + ((Unsigned)r->cut << T)}, sum, kept;
    sum.number = x.number + m.number;
    kept.number = sum.number - m.number;
    *raised = with_flags ? NAME(raise)(kept.number != x.number, MASK(magnitude < (Int)r->edge[0])) : 0;
    if (to_value)
        return kept.bits | (word & ~MAGNITUDE & (MASK(kept.bits != 0) | r->negative_zero));
    return NAME(sign)(word, sum.bits - m.bits + (((Unsigned)field - (Unsigned)low) >> r->cut), r);
}

/* The same into a format that is the word without its last digits: sign and exponent stay where they are. */
static INLINE Unsigned NAME(fixed_shift)(Unsigned word, const NAME(Rule) *r, int with_flags, int to_value, Unsigned *raised)
{
    const Unsigned mask = (r->one << r->cut) - 1, half = mask >> 1, parity = mask & 1, magnitude = word & MAGNITUDE;
    Unsigned code = (word + half + ((word >> r->cut) & parity)) >> r->cut;
    *raised = with_flags ? NAME(raise)(magnitude & mask, MASK((Int)magnitude < (Int)r->edge[0])) : 0;
    return to_value ? code << r->cut : code;
}

/* Loops return the largest magnitude that they met.  Where that is beyond the format's, `whole` does the chunk again. */
#define ROUND_LOOP(name, Code, Flags, with_flags, code)                                                                \
    CLONES static Int NAME(name)(const Unsigned *restrict words, const Unsigned *restrict draws,                       \
                                 Code *restrict codes, Flags *restrict flags, Py_ssize_t count,                        \
                                 const Recipe *recipe)                                                                 \
    {                                                                                                                  \
        const NAME(Rule) rule = NAME(rule)(recipe), *r = &rule;                                                        \
        Int most = 0;                                                                                                  \
        (void)draws, (void)flags;                                                                                      \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            Unsigned word = words[i], raised;                                                                          \
            Int magnitude = (Int)(word & MAGNITUDE);                                                                   \
            most = magnitude > most ? magnitude : most;                                                                \
            codes[i] = (Code)(code);                                                                                   \
            if (with_flags)                                                                                            \
                flags[i] = (Flags)raised;                                                                              \
        }                                                                                                              \
        return most;                                                                                                   \
    }

ROUND_LOOP(round_any, Unsigned, Unsigned, 0, NAME(any)(word, r, 0, 0, 0, &raised))
ROUND_LOOP(with_flags_any, Unsigned, Unsigned, 1, NAME(any)(word, r, 1, 0, 0, &raised))
ROUND_LOOP(draw_any, Unsigned, Unsigned, 0, NAME(any)(word, r, 0, 1, draws[i], &raised))
ROUND_LOOP(with_flags_draw_any, Unsigned, Unsigned, 1, NAME(any)(word, r, 1, 1, draws[i], &raised))
ROUND_LOOP(round_whole, Unsigned, Unsigned, 1, NAME(whole)(word, r, 0, 0, &raised))
ROUND_LOOP(draw_whole, Unsigned, Unsigned, 1, NAME(whole)(word, r, 1, draws[i], &raised))
ROUND_LOOP(fix, Unsigned, Unsigned, 0, NAME(fixed_shift)(word, r, 0, 0, &raised))
ROUND_LOOP(with_flags_fix, Unsigned, Unsigned, 1, NAME(fixed_shift)(word, r, 1, 0, &raised))
ROUND_LOOP(fix_values, Unsigned, Unsigned, 0, NAME(fixed_shift)(word, r, 0, 1, &raised))
ROUND_LOOP(add_magic, Unsigned, Unsigned, 0, NAME(magic_add)(word, r, 0, 0, &raised))
ROUND_LOOP(with_flags_add_magic, Unsigned, Unsigned, 1, NAME(magic_add)(word, r, 1, 0, &raised))
ROUND_LOOP(add_magic_values, Unsigned, Unsigned, 0, NAME(magic_add)(word, r, 0, 1, &raised))

typedef Int (*NAME(Round))(const Unsigned *, const Unsigned *, Unsigned *, Unsigned *, Py_ssize_t, const Recipe *);

/* Outputs `first`, first + 1, … of SplitMix64(seed), upper halves, as numbers/rounding.py documents. */
CLONES static void NAME(draw)(Unsigned *restrict draws, Py_ssize_t count, uint64_t seed, uint64_t first)
{
    uint64_t state = seed + first * 0x9E3779B97F4A7C15u;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        uint32_t upper = (uint32_t)(z >> 32);
        draws[i] = upper ^ (upper >> 31); /* of z ^ (z >> 31) */
    }
}

#if BITS == 32
/* From float32 to codes of one or two bytes: written directly, since most arrays take these paths. */
#define NARROW_LOOPS(flagged, prefix)                                                                        \
    ROUND_LOOP(prefix##fix_to_16_, uint16_t, uint8_t, flagged, fixed_shift32(word, r, flagged, 0, &raised))     \
    ROUND_LOOP(prefix##magic_to_8_, uint8_t, uint8_t, flagged, magic_add32(word, r, flagged, 0, &raised))       \
    ROUND_LOOP(prefix##magic_to_16_, uint16_t, uint8_t, flagged, magic_add32(word, r, flagged, 0, &raised))     \
    ROUND_LOOP(prefix##any_to_8_, uint8_t, uint8_t, flagged, any32(word, r, flagged, 0, 0, &raised))            \
    ROUND_LOOP(prefix##any_to_16_, uint16_t, uint8_t, flagged, any32(word, r, flagged, 0, 0, &raised))          \
    ROUND_LOOP(prefix##draw_to_8_, uint8_t, uint8_t, flagged, any32(word, r, flagged, 1, draws[i], &raised))    \
    ROUND_LOOP(prefix##draw_to_16_, uint16_t, uint8_t, flagged, any32(word, r, flagged, 1, draws[i], &raised))
NARROW_LOOPS(0, )
NARROW_LOOPS(1, with_flags_)
#undef NARROW_LOOPS

/* Round a chunk with one of these loops; return 0 if there is none, or if a number was too large for it. */
static int round_narrow(const uint32_t *words, void *codes, int size, uint8_t *flags, Py_ssize_t count, const Recipe *r,
                        uint64_t first)
{
    Int most = -1;
    uint32_t draws[CHUNK];
    if (r->way == DRAWN && size < 4)
        draw32(draws, count, r->seed, first);
#define TO(way_, size_, Code, loop)                                                                                    \
    if (r->way == way_ && size == size_)                                                                               \
        most = (flags ? with_flags_##loop##32 : loop##32)(words, draws, (Code *)codes, flags, count, r);
    TO(FIXED, 2, uint16_t, fix_to_16_)
    TO(MAGIC, 1, uint8_t, magic_to_8_)
    TO(MAGIC, 2, uint16_t, magic_to_16_)
    TO(ANY, 1, uint8_t, any_to_8_)
    TO(ANY, 2, uint16_t, any_to_16_)
    TO(DRAWN, 1, uint8_t, draw_to_8_)
    TO(DRAWN, 2, uint16_t, draw_to_16_)
#undef TO
    return most >= 0 && most <= (Int)r->largest;
}
#endif

/* Round a chunk of words into codes; return REFUSED if the context refuses an element.  `flags` always has room for the
   chunk; `again` says that a quicker loop has met a number that is too large. */
static unsigned NAME(round)(const Unsigned *words, Unsigned *codes, Unsigned *flags, int with_flags, Py_ssize_t count,
                            const Recipe *r, uint64_t first, int again)
{
    static const NAME(Round) ways[4][2] = {
        {NAME(round_any), NAME(with_flags_any)}, {NAME(draw_any), NAME(with_flags_draw_any)},
        {NAME(fix), NAME(with_flags_fix)}, {NAME(add_magic), NAME(with_flags_add_magic)},
    };
    Unsigned draws[CHUNK], all = 0;
    if (r->drawn)
        NAME(draw)(draws, count, r->seed, first);
    if (!again && r->way != WHOLE && ways[r->way - 1][with_flags](words, draws, codes, flags, count, r) <= (Int)r->largest)
        return 0;
    (r->drawn ? NAME(draw_whole) : NAME(round_whole))(words, draws, codes, flags, count, r);
    if (r->refuses)
        for (Py_ssize_t i = 0; i < count; i++)
            all |= flags[i];
    return (unsigned)all & REFUSED;
}

#define NARROW(Out, out)                                                                                               \
    CLONES static void NAME(narrow_##out##_)(const Unsigned *restrict from, Out *restrict to, Py_ssize_t count)        \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < count; i++)                                                                         \
            to[i] = (Out)from[i];                                                                                      \
    }

NARROW(uint8_t, 8)
NARROW(uint16_t, 16)
#if BITS == 64
NARROW(uint32_t, 32)
#endif

static void NAME(narrow)(const Unsigned *from, void *to, int size, Py_ssize_t count)
{
    if (size == 1)
        NAME(narrow_8_)(from, (uint8_t *)to, count);
    else if (size == 2)
        NAME(narrow_16_)(from, (uint16_t *)to, count);
#if BITS == 64
    else if (size == 4)
        NAME(narrow_32_)(from, (uint32_t *)to, count);
#endif
    else
        memcpy(to, from, (size_t)count * sizeof *from);
}

/* Return the word of a code, for formats whose numbers the word holds.  Normal numbers only change their bias; subnormal
   ones, integers below 2^T, get their exponent from a subtraction, which no mode of the processor can round or flush.
   `ieee`: every code beyond infinity is a NaN with a payload. */
static INLINE Unsigned NAME(word)(Unsigned code, const Reading *r, int ieee)
{
    Unsigned magnitude = code & (Unsigned)r->magnitudes, sign = (code & (Unsigned)r->sign) << r->sign_shift;
    Unsigned word = (magnitude << r->cut) + ((Unsigned)r->adjust << T);
    NAME(Punned) small = {.bits = (magnitude & (HIDDEN - 1)) | (Unsigned)(T + (1 << (BITS - T - 2)) - 1) << T};
    small.number -= (NAME(Float))HIDDEN;
    Unsigned below = small.bits + ((Unsigned)r->qmin << T);
    below = magnitude ? below & (Unsigned)r->subnormals : 0;
    word = (Int)magnitude < (Int)r->normal ? below : word;
    if (ieee)
        return (word | ((Int)magnitude > (Int)r->top ? INFINITE : 0)) | sign;
    Unsigned nan = INFINITE | HIDDEN >> 1, special = magnitude == (Unsigned)r->infinity ? INFINITE : nan;
    word = (Int)magnitude > (Int)r->top ? special : word;
    return (code == (Unsigned)r->no_zero ? nan : word) | sign;
}

#define READ_LOOP_AS(name, In, word)                                                                                   \
    CLONES static void NAME(name)(const In *restrict codes, Unsigned *restrict words, Py_ssize_t count,                \
                                  const Reading *r)                                                                    \
    {                                                                                                                  \
        const Reading own = *r;                                                                                        \
        for (Py_ssize_t i = 0; i < count; i++)                                                                         \
            words[i] = word;                                                                                           \
    }

#define READ_LOOP(In, in)                                                                                              \
    READ_LOOP_AS(shift_##in##_, In, (Unsigned)codes[i] << own.cut)                                                     \
    READ_LOOP_AS(read_ieee_##in##_, In, NAME(word)((Unsigned)codes[i], &own, 1))                                       \
    READ_LOOP_AS(read_other_##in##_, In, NAME(word)((Unsigned)codes[i], &own, 0))                                      \
    static void NAME(read_##in##_)(const void *codes, Unsigned *words, Py_ssize_t count, const Reading *r)             \
    {                                                                                                                  \
        (r->how == SHIFTED ? NAME(shift_##in##_) : r->how == IEEE ? NAME(read_ieee_##in##_)                            \
                                                                  : NAME(read_other_##in##_))(codes, words, count, r); \
    }

READ_LOOP(uint16_t, 16)
READ_LOOP(uint32_t, 32)
#if BITS == 64
READ_LOOP(uint64_t, 64)
#endif

/* Codes of at most 8 bits are looked up. */
#define LOOK_UP(name, In)                                                                                              \
    static void NAME(name)(const In *restrict codes, Unsigned *restrict words, Py_ssize_t count,                       \
                           const Unsigned *restrict table)                                                             \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < count; i++)                                                                         \
            words[i] = table[(uint8_t)codes[i]];                                                                       \
    }

LOOK_UP(look_up, uint8_t)
LOOK_UP(look_up_wide, Unsigned)

static void NAME(read_codes)(const void *codes, int size, Unsigned *words, Py_ssize_t count, const void *how)
{
    if (size == 1)
        NAME(look_up)((const uint8_t *)codes, words, count, (const Unsigned *)how);
    else if (size == 2)
        NAME(read_16_)(codes, words, count, (const Reading *)how);
    else if (size == 4)
        NAME(read_32_)(codes, words, count, (const Reading *)how);
#if BITS == 64
    else
        NAME(read_64_)(codes, words, count, (const Reading *)how);
#endif
}

/* Operations on words, rounded to odd from the result to nearest and the sign of its error (Boldo and Melquiond,
   Emulation of FMA and correctly rounded sums, IEEE TC 57(4), 2008).  Rounding that to a format with at least two digits
   less is correct in every direction. */
static INLINE Unsigned NAME(to_odd)(NAME(Float) nearest, NAME(Float) lost)
{
    NAME(Punned) r = {.number = nearest}, rest = {.number = lost};
    Unsigned even = ~r.bits & 1, apart = (Unsigned)((Int)(r.bits ^ rest.bits) >> (BITS - 1));
    return r.bits + ((rest.bits & MAGNITUDE) != 0 ? (even ^ apart) - apart : 0);
}

static INLINE NAME(Float) NAME(sum_error)(NAME(Float) x, NAME(Float) y, NAME(Float) sum)
{
    NAME(Float) back = sum - x;
    return (x - (sum - back)) + (y - back);
}

/* Whether the errors of a product or a quotient are exact: zero, or neither huge nor tiny.  The last place of a product
   of two such numbers is one of the word's. */
static INLINE Unsigned NAME(error_is_exact)(NAME(Punned) x)
{
    Int field = (Int)((x.bits & MAGNITUDE) >> T), middle = ((Int)1 << (BITS - T - 2)) - 1;
    return (x.number == 0) | ((field > middle - (middle - 1 - T) / 2) & (field < middle + middle / 2));
}

/* Loops mark the elements that another lane must compute, and return the union of the marks. */
#define OPERATION(name, few, ...)                                                                                      \
    CLONES static Unsigned NAME(name)(const Unsigned *restrict xs, const Unsigned *restrict ys,                        \
                                      const Unsigned *restrict zs, Unsigned *restrict results,                         \
                                      Unsigned *restrict marks, Py_ssize_t count, Unsigned zero)                       \
    {                                                                                                                  \
        Unsigned any = 0;                                                                                              \
        (void)ys, (void)zs, (void)zero;                                                                                \
        for (Py_ssize_t i = 0; i < count; i++) {                                                                       \
            NAME(Punned) x = {.bits = xs[i]}, y = {.bits = few < 2 ? 0 : ys[i]}, z = {.bits = few < 3 ? 0 : zs[i]}, r; \
            Unsigned odd, exact;                                                                                       \
            __VA_ARGS__                                                                                                \
            results[i] = odd;                                                                                          \
            marks[i] = exact & ((r.bits & INFINITE) != INFINITE) ? 0 : SPECIAL;                                        \
            any |= marks[i];                                                                                           \
            (void)y, (void)z;                                                                                          \
        }                                                                                                              \
        return any;                                                                                                    \
    }

/* An exact zero from a sum of opposite signs has the direction's sign: `zero`. */
#define SUM                                                                                                            \
    r.number = x.number + y.number;                                                                                    \
    odd = NAME(to_odd)(r.number, NAME(sum_error)(x.number, y.number, r.number));                                       \
    odd = ((r.bits << 1) == 0) & ((Int)(x.bits ^ y.bits) < 0) ? zero : odd;                                            \
    exact = 1;

OPERATION(add, 2, SUM)
OPERATION(subtract, 2, y.number = -y.number; SUM)
OPERATION(multiply, 2, r.number = x.number * y.number;
          odd = NAME(to_odd)(r.number, NAME(fused)(x.number, y.number, -r.number));
          exact = NAME(error_is_exact)(x) & NAME(error_is_exact)(y);)
OPERATION(divide, 2, r.number = x.number / y.number;
          NAME(Float) rest = NAME(fused)(-r.number, y.number, x.number);
          NAME(Punned) lost = {.number = rest};
          lost.bits ^= y.bits & ~MAGNITUDE;
          odd = NAME(to_odd)(r.number, lost.number);
          exact = NAME(error_is_exact)(x) & NAME(error_is_exact)(y) & (y.number != 0);)
OPERATION(sqrt, 1, r.number = NAME(root)(x.number);
          odd = NAME(to_odd)(r.number, NAME(fused)(-r.number, r.number, x.number));
          exact = NAME(error_is_exact)(x) & (x.number >= 0);)
OPERATION(fma, 3, NAME(Float) high = x.number * y.number, low = NAME(fused)(x.number, y.number, -high);
          NAME(Float) second = z.number + low, third = NAME(sum_error)(z.number, low, second);
          NAME(Float) first = high + second, fourth = NAME(sum_error)(high, second, first);
          NAME(Float) rest = third + fourth;
          NAME(Punned) tail = {.bits = NAME(to_odd)(rest, NAME(sum_error)(third, fourth, rest))};
          r.number = first + tail.number;
          odd = NAME(to_odd)(r.number, NAME(sum_error)(first, tail.number, r.number));
          odd = r.number == 0 ? ((Int)(x.bits ^ y.bits ^ z.bits) < 0 ? zero : z.bits & ~MAGNITUDE) : odd;
          exact = NAME(error_is_exact)(x) & NAME(error_is_exact)(y) & NAME(error_is_exact)(z);)

/* The processor's own, for results that are words. */
OPERATION(fma_to_nearest, 3, r.number = NAME(fused)(x.number, y.number, z.number); odd = r.bits; exact = 1;)
OPERATION(divide_to_nearest, 2, r.number = x.number / y.number; odd = r.bits; exact = 1;)
OPERATION(sqrt_to_nearest, 1, r.number = NAME(root)(x.number); odd = r.bits; exact = 1;)

typedef Unsigned (*NAME(Operation))(const Unsigned *, const Unsigned *, const Unsigned *, Unsigned *, Unsigned *,
                                    Py_ssize_t, Unsigned);
static const NAME(Operation) NAME(operations)[] = {
    NULL, NAME(add), NAME(subtract), NAME(multiply), NAME(divide), NAME(sqrt), NAME(fma), NAME(fma_to_nearest),
    NAME(divide_to_nearest), NAME(sqrt_to_nearest),
};

/* Do a run of elements in chunks that stay in the first-level cache: read operands as words, apply the operation, round,
   and write codes or values.  Returns the union of marks and refusals. */
static unsigned NAME(run)(const Work *w, Py_ssize_t count)
{
    unsigned all = 0;
    Unsigned operands[3][CHUNK], results[CHUNK], codes[CHUNK], flags[CHUNK];
    const Recipe *r = &w->recipe;
    const int size = (int)sizeof(Unsigned), with_flags = w->flags != NULL, own = r->own && !with_flags && !w->to_reading && NAME(has_own)();
    const NAME(Round) to_values = r->way == FIXED ? NAME(fix_values) : r->way == MAGIC ? NAME(add_magic_values) : NULL;
    if (w->reads_only)
        NAME(read_codes)(w->codes[0], w->sizes[0], (Unsigned *)w->to, count, w->readings[0]);
    for (Py_ssize_t at = 0; at < count && !w->reads_only; at += CHUNK) {
        Py_ssize_t some = count - at < CHUNK ? count - at : CHUNK;
        const Unsigned *words[3] = {NULL, NULL, NULL};
        for (int i = 0; i < w->operands; i++) {
            const char *from = (const char *)w->codes[i] + at * w->sizes[i];
            words[i] = w->readings[i] ? operands[i] : (const Unsigned *)from;
            if (w->readings[i])
                NAME(read_codes)(from, w->sizes[i], operands[i], some, w->readings[i]);
        }
        if (w->operation) {
            unsigned marked = (unsigned)NAME(operations)[w->operation](
                words[0], words[1], words[2], results, flags, some, (Unsigned)w->negative_zero << (BITS - 1));
            if (marked)
                NAME(narrow_8_)(flags, w->marks + at, some);
            else
                memset(w->marks + at, 0, (size_t)some);
            all |= marked;
            words[0] = results;
        }
        char *to = (char *)w->to + at * w->to_size;
        if (w->to_reading && !with_flags && to_values && (const void *)words[0] != (const void *)to &&
            to_values(words[0], NULL, (Unsigned *)to, NULL, some, r) <= (Int)r->largest)
            continue;
        if (own) {
            NAME(convert)(words[0], (NAME(Half) *)to, some, (int)r->own);
            continue;
        }
        int again = 0;
#if BITS == 32
        if (!w->to_reading && w->to_size < 4 && r->way != WHOLE) {
            if (round_narrow(words[0], to, w->to_size, with_flags ? w->flags + at : NULL, some, r, w->first + (uint64_t)at))
                continue;
            again = r->way != FIXED || w->to_size == 2;
        }
#endif
        int direct = !w->to_reading && w->to_size == size && (const void *)words[0] != (const void *)to;
        Unsigned *coded = direct ? (Unsigned *)to : codes;
        all |= NAME(round)(words[0], coded, flags, with_flags || r->refuses, some, r, w->first + (uint64_t)at,
                           again);
        if (with_flags)
            NAME(narrow_8_)(flags, w->flags + at, some);
        if (w->to_reading && w->code_size == 1)
            NAME(look_up_wide)(codes, (Unsigned *)to, some, (const Unsigned *)w->to_reading);
        else if (w->to_reading)
            NAME(read_codes)(codes, size, (Unsigned *)to, some, w->to_reading);
        else if (!direct)
            NAME(narrow)(codes, to, w->to_size, some);
    }
    return all;
}

/* Add products to sums, one after the other: sums[i, j] takes x[k, i, j] * y[k, i, j] for k = 0, 1, …, each product
   rounded and then each sum, or both at once.  Strides are of elements, and 0 where an operand is broadcast. */
#define ACCUMULATE(name, ADDED)                                                                                        \
    CLONES static void NAME(name)(NAME(Float) *restrict sums, const NAME(Float) *xs, const NAME(Float) *ys,            \
                                  const Strides *x, const Strides *y, Py_ssize_t inner, Py_ssize_t rows,               \
                                  Py_ssize_t columns)                                                                  \
    {                                                                                                                  \
        for (Py_ssize_t i = 0; i < rows; i++) {                                                                        \
            NAME(Float) *restrict sum = sums + i * columns;                                                            \
            for (Py_ssize_t k = 0; k < inner; k++) {                                                                   \
                const NAME(Float) *restrict a = xs + k * x->inner + i * x->row;                                        \
                const NAME(Float) *restrict b = ys + k * y->inner + i * y->row;                                        \
                if (x->column == 0 && y->column == 1) {                                                                \
                    NAME(Float) p = *a;                                                                                \
                    for (Py_ssize_t j = 0; j < columns; j++) {                                                         \
                        NAME(Float) q = b[j], s = sum[j];                                                              \
                        sum[j] = ADDED;                                                                                \
                    }                                                                                                  \
                } else if (x->column == 1 && y->column == 1) {                                                         \
                    for (Py_ssize_t j = 0; j < columns; j++) {                                                         \
                        NAME(Float) p = a[j], q = b[j], s = sum[j];                                                    \
                        sum[j] = ADDED;                                                                                \
                    }                                                                                                  \
                } else {                                                                                               \
                    for (Py_ssize_t j = 0; j < columns; j++) {                                                         \
                        NAME(Float) p = a[j * x->column], q = b[j * y->column], s = sum[j];                            \
                        sum[j] = ADDED;                                                                                \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

ACCUMULATE(add_products, s + p * q)
ACCUMULATE(add_fused, NAME(fused)(p, q, s))

#undef PASTE_
#undef PASTE
#undef NAME
#undef MASK
#undef CHOOSE
#undef HIDDEN
#undef MAGNITUDE
#undef INFINITE
#undef FAR
#undef CHUNK
#undef ROUND_LOOP
#undef NARROW
#undef READ_LOOP
#undef READ_LOOP_AS
#undef LOOK_UP
#undef OPERATION
#undef SUM
#undef ACCUMULATE
#undef BITS
#undef T
#undef Int
#undef Unsigned
