/* Operations on words, with results rounded to odd. They are computed from the nearest result and the sign of its error
   (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, IEEE TC 57(4), 2008).  Rounding the odd result to
   a format with at least two digits fewer gives the correctly rounded result in every direction. */
static INLINE Unsigned NAME(to_odd)(Float nearest, Float lost)
{
    NAME(Punned) r = {.number = nearest}, rest = {.number = lost};
    Unsigned even = ~r.bits & 1, apart = (Unsigned)((Int)(r.bits ^ rest.bits) >> (BITS - 1));
    return r.bits + ((rest.bits & MAGNITUDE) != 0 ? (even ^ apart) - apart : 0);
}

static INLINE Float NAME(sum_error)(Float x, Float y, Float sum)
{
    Float back = sum - x;
    return (x - (sum - back)) + (y - back);
}

/* Whether x is zero, or neither huge nor tiny. The error of a product or a quotient of two such numbers is exact,
   because a word can represent its last place. */
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
            marks[i] = (exact & ((r.bits & INFINITE) != INFINITE)) ? 0 : SPECIAL;                                      \
            any |= marks[i];                                                                                           \
            (void)y, (void)z;                                                                                          \
        }                                                                                                              \
        return any;                                                                                                    \
    }

/* If the terms of a sum have opposite signs, an exact zero has the sign that the rounding direction defines: `zero`. */
#define SUM                                                                                                            \
    r.number = x.number + y.number;                                                                                    \
    odd = NAME(to_odd)(r.number, NAME(sum_error)(x.number, y.number, r.number));                                       \
    odd = (((r.bits << 1) == 0) & ((Int)(x.bits ^ y.bits) < 0)) ? zero : odd;                                          \
    exact = 1;

OPERATION(add, 2, SUM)
OPERATION(subtract, 2, y.number = -y.number; SUM)
OPERATION(multiply, 2, r.number = x.number * y.number;
          odd = NAME(to_odd)(r.number, NAME(fused)(x.number, y.number, -r.number));
          exact = NAME(error_is_exact)(x) & NAME(error_is_exact)(y);)
OPERATION(divide, 2, r.number = x.number / y.number;
          NAME(Punned) lost = {.number = NAME(fused)(-r.number, y.number, x.number)};
          lost.bits ^= y.bits & ~MAGNITUDE;
          odd = NAME(to_odd)(r.number, lost.number);
          exact = NAME(error_is_exact)(x) & NAME(error_is_exact)(y) & (y.number != 0);)
OPERATION(sqrt, 1, r.number = NAME(root)(x.number);
          odd = NAME(to_odd)(r.number, NAME(fused)(-r.number, r.number, x.number));
          exact = NAME(error_is_exact)(x) & (x.number >= 0);)
OPERATION(fma, 3, Float high = x.number * y.number, low = NAME(fused)(x.number, y.number, -high);
          Float second = z.number + low, third = NAME(sum_error)(z.number, low, second);
          Float first = high + second, fourth = NAME(sum_error)(high, second, first);
          Float rest = third + fourth;
          NAME(Punned) tail = {.bits = NAME(to_odd)(rest, NAME(sum_error)(third, fourth, rest))};
          r.number = first + tail.number;
          odd = NAME(to_odd)(r.number, NAME(sum_error)(first, tail.number, r.number));
          odd = r.number == 0 ? ((Int)(x.bits ^ y.bits ^ z.bits) < 0 ? zero : z.bits & ~MAGNITUDE) : odd;
          exact = NAME(error_is_exact)(x) & NAME(error_is_exact)(y) & NAME(error_is_exact)(z);)

/* The processor's own operations, for results that are words. */
OPERATION(fma_to_nearest, 3, r.number = NAME(fused)(x.number, y.number, z.number); odd = r.bits; exact = 1;)
OPERATION(divide_to_nearest, 2, r.number = x.number / y.number; odd = r.bits; exact = 1;)
OPERATION(sqrt_to_nearest, 1, r.number = NAME(root)(x.number); odd = r.bits; exact = 1;)

typedef Unsigned (*NAME(Operation))(const Unsigned *, const Unsigned *, const Unsigned *, Unsigned *, Unsigned *, Py_ssize_t,
                                    Unsigned);
static const NAME(Operation) NAME(operations)[] = {
    NULL, NAME(add), NAME(subtract), NAME(multiply), NAME(divide), NAME(sqrt), NAME(fma), NAME(fma_to_nearest),
    NAME(divide_to_nearest), NAME(sqrt_to_nearest),
};
