"""Witnesses: operands for which a·b + c rounded once differs from rounding the product and then the sum.

The search begins near the given operands, if there are any. Then it tries factors with few digits, whose product has
just too many digits for the format, with c = −round(a·b). For such operands, a·b + c is the rounding error of the
product. Finally, random operands are tried. Formats with few values are searched exhaustively instead: there, a result
of None proves that no witness exists.
"""

from __future__ import annotations

from itertools import islice
from math import isqrt

from floatlab.arith.fma_contrast import contrast, multiply_then_add
from floatlab.arith.operations import fma
from floatlab.errors import FloatlabError
from floatlab.formats import Format, parse_format
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import round_exact
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.numbers.reading import convert
from floatlab.numbers.rounding import DEFAULT, Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Triple = tuple[Datum, Datum, Datum]

_SEARCHED = 6  # formats of up to this many bits are searched exhaustively
_SEARCHED_POWERS = 8  # the same limit for formats of precision 1, which have few products
_NEARBY = 3  # largest change of a factor or addend, in ulps
_SHORT = 24  # number of odd integers tried as factors
_EVERY = 256  # tries between two progress reports


def find_witness(
    format: Format | str,
    context: Context = DEFAULT,
    seed: int = 0,
    near: Triple | None = None,
    tries: int = 100_000,
    progress: Callable[[int, int], bool] | None = None,
) -> Triple | None:
    """Return finite a, b and c for which fma and multiply-then-add return finite results with different bits.

    Return None if the search finds no such operands. If `is_searched_exhaustively(format)` is true, None proves that
    there are none. The search starts near the operands `near`, if they are given. In formats that are not searched
    exhaustively, the search ends with `tries` random tries, which `seed` determines. `progress` is called at intervals
    with the number of tries done and `tries`. If `progress` returns False, the search stops, and None proves nothing.

    >>> find_witness("fp16")
    (Datum(binary16 0x51a0 = 45), Datum(binary16 0x51e0 = 47), Datum(binary16 0xe822 = -2116))
    """
    fmt = parse_format(format)
    for done, (a, b, c) in enumerate(_candidates(fmt, context, seed, near, tries)):
        if progress is not None and done % _EVERY == 0 and not progress(min(done, tries), tries):
            return None
        if _may_differ(a, b, c, context) and _differ(a, b, c, context):
            return a, b, c
    return None


def is_searched_exhaustively(format: Format | str) -> bool:
    """Return whether the search tries all numbers of a format, so that None proves that no witness exists.

    >>> is_searched_exhaustively("e2m1"), is_searched_exhaustively("fp16")
    (True, False)
    """
    fmt = parse_format(format)
    return fmt.width <= _SEARCHED or (fmt.precision == 1 and fmt.width <= _SEARCHED_POWERS)


def _candidates(fmt: Format, context: Context, seed: int, near: Triple | None, tries: int) -> Iterator[Triple]:
    if near is not None:
        yield from _beside(near, fmt, context)
    yield from _short(fmt, context)
    if is_searched_exhaustively(fmt):
        yield from _all(fmt, context)
    else:
        yield from islice(_random(fmt, context, seed), tries)


def _may_differ(a: Datum, b: Datum, c: Datum, context: Context) -> bool:
    """Return whether a, b and c may be a witness. This test is fast, since it builds no derivations."""
    try:
        exact, addend = a.exact * b.exact, c.exact
        product = _product(exact, a.format, context)
        if product is None:
            return context.flush_inputs
        if not product.is_finite:
            return False
        once, twice = exact + addend, product.exact + addend
        if context.flush_inputs or not once.c or not twice.c:
            return True
        return round_exact(once, a.format, context).code != round_exact(twice, a.format, context).code
    except FloatlabError:  # the context raises an error for a value that the format lacks
        return False


def _differ(a: Datum, b: Datum, c: Datum, context: Context) -> bool:
    try:
        both = contrast(fma(a, b, c, a.format, context), multiply_then_add(a, b, c, a.format, context))
    except FloatlabError:
        return False
    return not both.same and both.fused.result.is_finite and both.separate.result.is_finite


def _product_is_inexact(a: Datum, b: Datum, context: Context) -> bool:
    try:
        return _product(a.exact * b.exact, a.format, context) is not None
    except FloatlabError:
        return False


def _product(exact: Exact, fmt: Format, context: Context) -> Datum | None:
    """Return the rounded product, or None if the product is exact."""
    rounded = round_exact(exact, fmt, context)
    return Datum(fmt, rounded.code) if rounded.flags else None


def _addends(a: Datum, b: Datum, context: Context) -> Iterator[Datum]:
    """Yield the negated rounded product and its neighbours, or nothing if the product is exact or out of range."""
    fmt = a.format
    try:
        rounded = round_exact(a.exact * b.exact, fmt, context)
    except FloatlabError:
        return
    product = Datum(fmt, rounded.code)
    if not rounded.flags or rounded.overflowed or not product.is_finite:
        return
    c = Datum(fmt, fmt.compose(not product.sign_bit and fmt.signed, product.magnitude))
    yield c
    up = down = c
    for _ in range(_NEARBY):
        up, down = up.next_up, down.next_down
        yield from (each for each in (up, down) if each.is_finite)


def _beside(near: Triple, fmt: Format, context: Context) -> Iterator[Triple]:
    """Yield the operands `near`, then operands whose factors a and b are at most a few ulps away from those in `near`.

    Each pair of factors is yielded with each c that `_addends` yields for the pair.
    """
    a, b, c = (each if each.format == fmt else convert(each, fmt, DEFAULT).result for each in near)
    if not (a.is_finite and b.is_finite):
        return
    if c.is_finite:
        yield a, b, c
    for steps in sorted(
        ((i, j) for i in range(-_NEARBY, _NEARBY + 1) for j in range(-_NEARBY, _NEARBY + 1)),
        key=lambda pair: (abs(pair[0]) + abs(pair[1]), pair),
    ):
        x, y = (_stepped(datum, count) for datum, count in zip((a, b), steps, strict=True))
        if x.is_finite and y.is_finite:
            yield from ((x, y, z) for z in _addends(x, y, context))


def _stepped(datum: Datum, count: int) -> Datum:
    for _ in range(abs(count)):
        datum = datum.next_up if count > 0 else datum.next_down
    return datum


def _short(fmt: Format, context: Context) -> Iterator[Triple]:
    """Yield pairs of factors whose product has slightly too many digits, each pair with addends close to −a·b.

    The factors are odd integers at first, and then the same integers scaled to the range from 1 to 2.
    """
    first = isqrt(1 << fmt.precision) | 1
    factors = range(first, first + 2 * _SHORT, 2)
    for whole in (True, False):
        for total in range(2 * first, 2 * first + 4 * _SHORT, 2):
            for i in factors:
                j = total - i
                if j < i or j not in factors:
                    continue
                pair = [_placed(fmt, n, 0 if whole else 1 - n.bit_length()) for n in (i, j)]
                if pair[0] is not None and pair[1] is not None:
                    a, b = pair[0], pair[1]
                    yield from ((a, b, c) for c in _addends(a, b, context))


def _placed(fmt: Format, c: int, q: int) -> Datum | None:
    """Return c·2^q, or None if the format cannot represent it."""
    rounded = round_exact(Exact(False, c, q), fmt)
    return None if rounded.flags else Datum(fmt, rounded.code)


def _all(fmt: Format, context: Context) -> Iterator[Triple]:
    """Yield every a, b and c that could be a witness, with factors near 1 first.

    Factors are left out if their product is exact, unless inputs are flushed. Since only the product matters, a is not
    negative, and each product is tried once.
    """
    data = [each for each in (Datum(fmt, code) for code in range(1 << fmt.width)) if each.is_finite]
    one = round_exact(Exact(False, 1, 0), fmt).code
    data.sort(key=lambda datum: (abs(datum.magnitude - one), datum.sign_bit))
    flushing = context.flush_inputs and fmt.trailing_bits > 0
    seen: set[object] = set()
    for a in data:
        for b in data if not a.sign_bit else ():
            # If subnormal operands are flushed, equal products of different factors can give different results.
            product = (a, b) if flushing else a.exact * b.exact
            if product not in seen:
                seen.add(product)
                if flushing or _product_is_inexact(a, b, context):
                    yield from ((a, b, c) for c in data)


def _random(fmt: Format, context: Context, seed: int) -> Iterator[Triple]:
    """Yield random factors near 1 with addends that nearly cancel their product.

    After each pair of factors and its addends, yield one triple of operands with random codes, or a triple of zeros if
    one of these codes is not finite.
    """
    t, draws = fmt.trailing_bits, RandomIntegers(seed)
    while True:
        factors = [_placed(fmt, 1 << t | draws.below(1 << t), draws.below(7) - 3 - t) for _ in range(2)]
        if factors[0] is not None and factors[1] is not None:
            a, b = factors[0], factors[1]
            yield from ((a, b, c) for c in _addends(a, b, context))
        anywhere = [Datum(fmt, draws.below(1 << fmt.width)) for _ in range(3)]
        if all(each.is_finite for each in anywhere):
            yield anywhere[0], anywhere[1], anywhere[2]
        else:  # zeros count as a try: in some formats hardly any code is finite
            yield (Datum(fmt, 0),) * 3
