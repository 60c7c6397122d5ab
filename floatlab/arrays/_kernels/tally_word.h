/* The figures of an array and its rounded copy, for one width of word; included once for binary32 and once for binary64.

   The loops work on pieces that stay in the first-level cache. Conditions are masks, computed from the signs of
   differences: GCC 12 vectorises such masks, but not comparisons. */

/* All ones if a < b, else 0; both numbers must be at most MAGNITUDE. */
#define IS_LESS(a, b) ((Unsigned)((Int)((a) - (b)) >> (BITS - 1)))

#define WIDER (BITS == 32 ? 1023 - 127 : 0) /* the difference of the exponent fields of binary64 and of the word */

/* Count the elements of a piece by what the rounding did to them, and write x and y. If x or y is not finite, both are
   written as zeros. Also write the exponent field that x would have in binary64; for subnormal x, `count_small` corrects
   this field. */
CLONES static void NAME(classify)(const Unsigned *restrict x, const Unsigned *restrict y, const Unsigned *restrict smallest,
                                  const Unsigned *restrict threshold, Unsigned *restrict a, Unsigned *restrict b,
                                  uint16_t *restrict fields, Py_ssize_t count, Figures *restrict f)
{
    Unsigned zeros = 0, exact = 0, lost = 0, saturated = 0, flushed = 0, subnormal = 0, compared = 0, small = 0;
    Unsigned largest = 0, least = ~(Unsigned)0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Unsigned from = x[i] & MAGNITUDE, to = y[i] & MAGNITUDE, nonzero = IS_LESS(0, from), kept = IS_LESS(0, to);
        Unsigned finite = IS_LESS(from, INFINITE), both = finite & IS_LESS(to, INFINITE);
        Unsigned apart = (x[i] ^ y[i]) & (nonzero | kept);
        zeros -= ~nonzero;
        exact -= both & ~(Unsigned)((Int)(apart | (0 - apart)) >> (BITS - 1)); /* a mask is -1 */
        lost -= finite & ~both;
        saturated -= both & ~IS_LESS(from, threshold[i]);
        flushed -= both & nonzero & ~kept;
        subnormal -= both & kept & IS_LESS(to, smallest[i]);
        compared -= both & nonzero;
        small -= nonzero & IS_LESS(from, HIDDEN);
        Unsigned high = from & finite, low = (from - 1) | ~finite; /* zeros become the largest word */
        largest = high > largest ? high : largest;
        least = low < least ? low : least;
        a[i] = both & x[i];
        b[i] = both & y[i];
        fields[i] = (uint16_t)((from >> T) + WIDER);
    }
    const Unsigned counts[] = {zeros, exact, lost, saturated, flushed, subnormal, compared, small};
    for (int i = 0; i < COUNTS; i++)
        f->counts[i] += (int64_t)counts[i];
    NAME(Punned) most = {.bits = largest}, smallest_one = {.bits = least + 1};
    f->largest = most.number > f->largest ? most.number : f->largest;
    if (least != ~(Unsigned)0)
        f->smallest = smallest_one.number < f->smallest ? smallest_one.number : f->smallest;
}

/* Write the terms of the sums as binary64: x, y, their difference, and the difference divided by x (0 if x is 0).
   Return the largest difference and the largest quotient, found by comparing the integers of their bits. */
CLONES static void NAME(measure)(const Float *restrict a, const Float *restrict b, Terms *restrict t, Py_ssize_t count,
                                 uint64_t *restrict extremes)
{
    const uint64_t magnitude = ~((uint64_t)1 << 63), one = (uint64_t)1023 << 52;
    uint64_t farthest = 0, most = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        Punned64 x = {.number = a[i]}, error = {.number = (double)b[i] - (double)a[i]}, size = x, distance = error, ratio;
        size.bits &= magnitude;
        distance.bits &= magnitude;
        uint64_t nonzero = (uint64_t)((int64_t)(0 - size.bits) >> 63);
        size.bits = (size.bits & nonzero) | (one & ~nonzero);
        ratio.bits = distance.bits & nonzero;
        ratio.number /= size.number;
        t->x[i] = x.number;
        t->y[i] = (double)b[i];
        t->error[i] = error.number;
        t->ratio[i] = ratio.number;
        farthest = distance.bits > farthest ? distance.bits : farthest;
        most = ratio.bits > most ? ratio.bits : most;
    }
    extremes[0] = farthest;
    extremes[1] = most;
}

/* The least word of a number that is at least `limit`; `otherwise` if the limit is NaN. */
static Unsigned NAME(limit_of)(double limit, Unsigned otherwise)
{
    if (limit != limit)
        return otherwise;
    NAME(Punned) word = {.number = (Float)limit};
    return limit > 0 ? word.bits + (word.number < limit) : 0;
}

/* Write the limits of each element from `first` on; the call has one limit per run of elements. */
static void NAME(spread)(const TallyCall *c, Py_ssize_t first, Py_ssize_t count, Unsigned *smallest, Unsigned *threshold)
{
    for (Py_ssize_t i = 0; i < count;) {
        const Py_ssize_t run = (first + i) / c->run, end = (run + 1) * c->run - first;
        const Unsigned low = NAME(limit_of)(c->smallest[run], 0), high = NAME(limit_of)(c->threshold[run], INFINITE);
        for (const Py_ssize_t stop = end < count ? end : count; i < stop; i++) {
            smallest[i] = low;
            threshold[i] = high;
        }
    }
}

/* Count subnormal words: all of them have the exponent field 0 in binary32, but they have several fields in
   binary64. */
static void NAME(count_small)(const Unsigned *x, Py_ssize_t count, Bins *bins)
{
    for (Py_ssize_t i = 0; i < count && BITS == 32; i++) {
        Punned64 wide = {.number = (double)((const Float *)x)[i]};
        if ((x[i] & MAGNITUDE) - 1 < HIDDEN - 1) {
            bins->fields[wide.bits << 1 >> 53][0]++;
            bins->fields[WIDER][0]--;
        }
    }
}

static void NAME(tally)(const TallyCall *c, Figures *f)
{
    Unsigned smallest[SOME], threshold[SOME], a[SOME], b[SOME];
    uint16_t fields[SOME], uppers[SOME];
    Terms t;
    double lanes[SUMS][LANES] = {{0}};
    const Unsigned *x = c->x, *y = c->y;
    for (Py_ssize_t at = 0; at < c->count; at += SOME, x += SOME, y += SOME) {
        const Py_ssize_t some = c->count - at < SOME ? c->count - at : SOME;
        const Py_ssize_t padded = (some + LANES - 1) / LANES * LANES;
        const int64_t compared = f->counts[COMPARED], small = f->counts[SMALL];
        if (!at || c->run < c->count)
            NAME(spread)(c, at, some, smallest, threshold);
        NAME(classify)(x, y, smallest, threshold, a, b, fields, some, f);
        memset(a + some, 0, (size_t)(padded - some) * sizeof *a);
        memset(b + some, 0, (size_t)(padded - some) * sizeof *b);
        uint64_t extremes[2];
        NAME(measure)((const Float *)a, (const Float *)b, &t, padded, extremes);
        keep_extremes(f, &t, extremes, at, some, f->counts[COMPARED] > compared);
        add_terms(&t, lanes, padded);
        take_uppers(t.ratio, uppers, some);
        count_bins(c, fields, uppers, some);
        if (f->counts[SMALL] > small)
            NAME(count_small)(x, some, c->bins);
        if ((at + some) % SUM_CHUNK == 0 || at + some == c->count)
            end_chunk(f, lanes);
    }
    correct_bins(c, f, WIDER, (int)(INFINITE >> T) + WIDER);
}

#undef IS_LESS
#undef WIDER
