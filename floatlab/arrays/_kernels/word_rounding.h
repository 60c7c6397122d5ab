/* Rounding words to codes; see word.h. */

/* The parameters of a rounding, in the order in which arrays/lanes/compiled.py packs them. In a pair, the first entry
   is the value for positive numbers; the second is its XOR with the value for negative numbers.  A mask is all ones or
   all zeros. */
typedef struct {
    Unsigned select[2], to_odd, half, odd, up; /* the addend of `cut`: see `_ADDENDS` in arrays/lanes/compiled.py */
    Unsigned sign, negative_zero /* a mask */, payload /* a mask */;
    Unsigned edge[2];       /* the least words that are not tiny, for each sign */
    Unsigned sliver, after; /* `after` (a mask): the draw decides whether words from `sliver` to `normal` are tiny */
    Unsigned lift, no_zero, no_sign, flush_inputs, flush_results; /* masks, except the first */
    Unsigned drops_signs;              /* a mask, for unsigned formats */
    Unsigned marks;                    /* 1: discarded bits below the draw's last bit set the threshold's last bit */
    Unsigned codes[5][2], flags[5][2]; /* overflow, infinities, NaNs, zeros, negatives in unsigned formats */
    Unsigned one;                      /* 1; GCC 12 cannot vectorise shifts of a 64-bit constant */
    Int cut, low, sign_shift, places, normal, top;
} NAME(Rule);

/* Whether the numbers of a rule cause no undefined shift; the results may still be meaningless. */
static int NAME(is_sound)(const void *numbers)
{
    NAME(Rule) r;
    memcpy(&r, numbers, sizeof r);
    return r.half <= 1 && r.lift <= T && r.one == 1 && r.cut >= 0 && r.cut <= T && r.low >= 0 && r.low < 1 << 30 &&
           r.sign_shift >= 0 && r.sign_shift < BITS && r.places >= 0 && r.places < BITS;
}

/* Stochastic rounding steps away from zero if the draw is below floor(2^32 * rest / 2^shift). */
static INLINE Unsigned NAME(steps)(Unsigned rest, Int shift, Unsigned draw, const NAME(Rule) *r)
{
    Int left = 31 - shift > 0 ? 31 - shift : 0, right = shift - 32 > 0 ? shift - 32 : 0;
    right = right < BITS - 1 ? right : BITS - 1;
    Unsigned few = (rest << 1) << left, many = rest >> right, threshold = shift < 32 ? few : many;
    return draw < (threshold | (r->marks & MASK((many << right) != rest) & MASK(right != 0)));
}

/* Drop the lowest `shift` bits of c and round.  The result is (c + A) >> shift, where the addend A expresses the
   decision of numbers/rounding.py. With M = 2^shift - 1, A is 0 toward zero, M away from zero, (M + odd) >> 1 to
   nearest even, and (M + 1) >> 1 to nearest with ties away from zero. To odd, A is M if the kept digits are even, else
   0. `less` is 1 if the code is one less than the kept digits; the parity that counts is that of the code. */
static INLINE Unsigned NAME(cut)(Unsigned c, Int shift, Unsigned less, Unsigned negative, const NAME(Rule) *r, int drawn,
                                 Unsigned draw, Unsigned *lost)
{
    Int near = shift < FAR ? shift : FAR;
    Unsigned mask = (r->one << near) - 1, kept = c >> near, odd = (kept - less) & 1;
    *lost = c & mask;
    if (drawn)
        return kept + NAME(steps)(*lost, shift, draw, r);
    Unsigned select = ((negative & r->select[1]) ^ r->select[0]) & ~(((Unsigned)0 - odd) & r->to_odd);
    return (c + (((mask & select) + ((odd & r->odd) | r->up)) >> r->half)) >> near;
}

/* Tininess after rounding: a number below 2^emin is not tiny if it rounds up to 2^emin with p digits and an unbounded
   exponent. */
static INLINE Unsigned NAME(is_tiny)(Unsigned magnitude, Unsigned negative, const NAME(Rule) *r, int drawn, Unsigned draw)
{
    if (!drawn)
        return MASK((Int)magnitude < (Int)((negative & r->edge[1]) ^ r->edge[0]));
    Unsigned reached = MASK(NAME(steps)(magnitude - r->sliver, r->places, draw, r) != 0) & r->after;
    return MASK((Int)magnitude < (Int)r->edge[0]) & ~(MASK((Int)magnitude >= (Int)r->sliver) & reached);
}

static INLINE Unsigned NAME(raise)(Unsigned lost, Unsigned tiny)
{
    return MASK(lost != 0) & (RAISED_INEXACT | (tiny & RAISED_UNDERFLOW));
}

/* Add the sign, except to a zero if the format has no negative zero. */
static INLINE Unsigned NAME(sign)(Unsigned word, Unsigned rank, const NAME(Rule) *r)
{
    return rank | ((word >> r->sign_shift) & r->sign & (MASK(rank != 0) | r->negative_zero));
}

/* By how much the exponent of a number is below the exponent of the format's smallest normal number, or 0 if it is not
   below. Subnormal words count as having the exponent of the smallest normal word. */
static INLINE Int NAME(under)(Unsigned magnitude, const NAME(Rule) *r)
{
    Int under = r->low + 1 - (Int)(magnitude >> T);
    under = under < r->low ? under : r->low;
    return under > 0 ? under : 0;
}

/* The code of a word in a plain format: one with sign, zero and subnormal numbers, in a context without flushing. The
   word must not be beyond the format's largest number. c holds the significand and, for normal numbers, the code's
   exponent field above it, so that both are rounded at once. */
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
    negative &= ~((zero & r->no_sign) | r->drops_signs);
    Int under = NAME(under)(magnitude, r);
    Unsigned c = magnitude + ((Unsigned)(under - r->low) << T), lower = r->no_zero & 1;
    Unsigned kept = NAME(cut)(c, r->cut + under + (Int)lifted, lower, negative, r, drawn, draw, &lost);
    tiny &= NAME(is_tiny)(magnitude, negative, r, drawn, draw);
    Unsigned flushed = tiny & r->flush_results, raised = NAME(raise)(lost | flushed, tiny);
    Int rank = (Int)((kept << lifted) - lower);
    Unsigned below = negative & r->no_sign & (MASK(rank > 0) | r->no_zero), under_all = MASK(rank < 0);
    rank &= (Int)~flushed;
    raised = CHOOSE(under_all & ~zero, RAISED_UNDERFLOW | RAISED_INEXACT, raised);
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
    *flags = raised | (signaling & RAISED_INVALID);
    return code | (nan & (magnitude & r->payload) >> r->cut);
}

/* Round into a plain format by an addition, in a direction that the processor has. The format has at least two digits,
   and fewer than the word has. M is a power of two with the number's sign, and its last place is that of the format. So
   the processor rounds when M is added, and the bits of the sum minus those of M are the kept digits. */
static INLINE Unsigned NAME(magic)(Unsigned word, const NAME(Rule) *r, int with_flags, int to_value, Unsigned *raised)
{
    const Int low = (Int)((Unsigned)(r->low + 1) << T);
    Unsigned negative = (Unsigned)((Int)word >> (BITS - 1)), magnitude = word & MAGNITUDE;
    Int field = (Int)(magnitude & INFINITE);
    field = field > low ? field : low;
    NAME(Punned) x = {.bits = word}, m = {.bits = ((Unsigned)field + ((Unsigned)r->cut << T)) | (word & ~MAGNITUDE)};
    NAME(Punned) sum = {.number = x.number + m.number}, kept = {.number = sum.number - m.number};
    *raised = with_flags ? NAME(raise)(kept.number != x.number, NAME(is_tiny)(magnitude, negative, r, 0, 0)) : 0;
    kept.bits &= MAGNITUDE; /* x - x is -0 if the direction is toward -inf */
    if (to_value)
        return kept.bits | (word & ~MAGNITUDE & (MASK(kept.bits != 0) | r->negative_zero));
    return NAME(sign)(word, sum.bits - m.bits + (((Unsigned)field - (Unsigned)low) >> r->cut), r);
}

/* Round to nearest even into a format that is a word without its last digits: sign and exponent keep their
   positions. */
static INLINE Unsigned NAME(fixed)(Unsigned word, const NAME(Rule) *r, int with_flags, int to_value, Unsigned *raised)
{
    const Unsigned mask = (r->one << r->cut) - 1, half = mask >> 1, parity = mask & 1, magnitude = word & MAGNITUDE;
    Unsigned code = (word + half + ((word >> r->cut) & parity)) >> r->cut;
    *raised = with_flags ? NAME(raise)(magnitude & mask, MASK((Int)magnitude < (Int)r->edge[0])) : 0;
    return to_value ? code << r->cut : code;
}

/* Loops return the largest magnitude that they met.  If it is beyond the format's, `whole` recomputes the chunk. */
typedef Int (*NAME(Round))(const Unsigned *, const Unsigned *, void *, void *, Py_ssize_t, const void *);

#define ROUND_LOOP(name, Code, Flags, with_flags, code)                                                                \
    CLONES static Int NAME(name)(const Unsigned *restrict words, const Unsigned *restrict draws, void *restrict to,    \
                                 void *restrict raised_to, Py_ssize_t count, const void *restrict numbers)             \
    {                                                                                                                  \
        Code *restrict codes = to;                                                                                     \
        Flags *restrict flags = raised_to;                                                                             \
        const NAME(Rule) *restrict r = numbers;                                                                        \
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

/* The fast paths to codes of one type, each without and with flags. */
#define ROUND_LOOPS(Code, Flags)                                                                                       \
    ROUND_LOOP(any_##Code, Code, Flags, 0, NAME(any)(word, r, 0, 0, 0, &raised))                                       \
    ROUND_LOOP(any_flags_##Code, Code, Flags, 1, NAME(any)(word, r, 1, 0, 0, &raised))                                 \
    ROUND_LOOP(drawn_##Code, Code, Flags, 0, NAME(any)(word, r, 0, 1, draws[i], &raised))                              \
    ROUND_LOOP(drawn_flags_##Code, Code, Flags, 1, NAME(any)(word, r, 1, 1, draws[i], &raised))                        \
    ROUND_LOOP(fixed_##Code, Code, Flags, 0, NAME(fixed)(word, r, 0, 0, &raised))                                      \
    ROUND_LOOP(fixed_flags_##Code, Code, Flags, 1, NAME(fixed)(word, r, 1, 0, &raised))                                \
    ROUND_LOOP(magic_##Code, Code, Flags, 0, NAME(magic)(word, r, 0, 0, &raised))                                      \
    ROUND_LOOP(magic_flags_##Code, Code, Flags, 1, NAME(magic)(word, r, 1, 0, &raised))
#define LOOPS(Code) /* in the order of the paths */                                                                    \
    {{NAME(any_##Code), NAME(any_flags_##Code)}, {NAME(drawn_##Code), NAME(drawn_flags_##Code)},                       \
     {NAME(fixed_##Code), NAME(fixed_flags_##Code)}, {NAME(magic_##Code), NAME(magic_flags_##Code)}}

/* binary32 words are written directly as codes of their size; others are narrowed afterwards, which vectorises better. */
#if BITS == 32
ROUND_LOOPS(uint8_t, uint8_t)
ROUND_LOOPS(uint16_t, uint8_t)
ROUND_LOOPS(uint32_t, uint8_t)
static const NAME(Round) NAME(loops)[3][4][2] = {LOOPS(uint8_t), LOOPS(uint16_t), LOOPS(uint32_t)};
#else
ROUND_LOOPS(uint64_t, uint64_t)
static const NAME(Round) NAME(loops)[1][4][2] = {LOOPS(uint64_t)};
#endif
ROUND_LOOP(whole_given, Unsigned, Unsigned, 1, NAME(whole)(word, r, 0, 0, &raised))
ROUND_LOOP(whole_drawn, Unsigned, Unsigned, 1, NAME(whole)(word, r, 1, draws[i], &raised))
ROUND_LOOP(fixed_values, Unsigned, Unsigned, 0, NAME(fixed)(word, r, 0, 1, &raised))
ROUND_LOOP(magic_values, Unsigned, Unsigned, 0, NAME(magic)(word, r, 0, 1, &raised))

CLONES static void NAME(narrow)(const Unsigned *restrict from, void *restrict to, int64_t size, Py_ssize_t count)
{
    uint8_t *bytes = to;
    uint16_t *halves = to;
    uint32_t *singles = to;
    for (Py_ssize_t i = 0; size == 1 && i < count; i++)
        bytes[i] = (uint8_t)from[i];
    for (Py_ssize_t i = 0; size == 2 && i < count; i++)
        halves[i] = (uint16_t)from[i];
    for (Py_ssize_t i = 0; size == 4 && i < count; i++)
        singles[i] = (uint32_t)from[i];
    if (size == 8)
        memcpy(to, from, (size_t)(count * size));
}

/* Write the draws `first`, first + 1, …: the upper halves of the outputs of SplitMix64(seed), as in
   numbers/rounding.py. The stage's rule converts them to the numbers that are compared with thresholds. */
CLONES static void NAME(draw)(Unsigned *restrict draws, Py_ssize_t count, const Stage *s, uint64_t first)
{
    uint64_t state = s->seed + first * 0x9E3779B97F4A7C15u;
    const uint32_t keep = (uint32_t)s->keep, plus = (uint32_t)s->plus, flip = (uint32_t)s->flip, low = (uint32_t)s->low;
    for (Py_ssize_t i = 0; i < count; i++) {
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        uint32_t upper = (uint32_t)(z >> 32);
        upper ^= upper >> 31; /* of z ^ (z >> 31) */
        draws[i] = (((upper & keep) + plus) ^ flip) + ((upper & low) != 0);
    }
}

/* Round a chunk of words into codes, and write flags unless NULL; return REFUSED if the context makes one an error. */
static unsigned NAME(round)(const Stage *s, const Unsigned *words, void *codes, uint8_t *flags, Py_ssize_t count,
                            uint64_t first)
{
    Unsigned draws[CHUNK], wide[CHUNK], raised[CHUNK], all = 0;
    const int at_once = BITS == 32, size = at_once ? (int)s->code_size / 2 : 0;
    if (s->drawn)
        NAME(draw)(draws, count, s, first);
    if (s->path != WHOLE &&
        NAME(loops)[size][s->path - ANY][flags != NULL](words, draws, at_once ? codes : wide, at_once ? (void *)flags : raised,
                                                       count, s->rule) <= s->largest) {
        if (at_once)
            return 0;
    } else {
        (s->drawn ? NAME(whole_drawn) : NAME(whole_given))(words, draws, wide, raised, count, s->rule);
        for (Py_ssize_t i = 0; i < count && s->refuses; i++)
            all |= raised[i];
    }
    NAME(narrow)(wide, codes, s->code_size, count);
    if (flags)
        NAME(narrow)(raised, flags, 1, count);
    return (unsigned)all & REFUSED;
}
