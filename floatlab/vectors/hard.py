"""Operands in hard cases of rounding: on ties, close to ties, at cancellations, at the ends of the range.

A random product is almost never close to a tie. For products and quotients, a congruence (modulo a power of two, or
modulo the divisor) gives an operand for which the result is close to a tie. For square roots, a search finds an integer
of p + 1 binary digits, digit by digit, where p is the precision. The square of this integer is close to a multiple of a
large power of two. This multiple, scaled by a power of two, is the operand.
"""

from __future__ import annotations

from floatlab.arith import Integer
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import round_exact
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.numbers.rounding import Context

_CLOSE = Context(overflow="saturate")


def nearest(kind: Format, negative: bool, c: int, q: int) -> int:
    """Return the code of the number nearest to ±c·2^q; beyond the range, return the code of the largest number."""
    return round_exact(Exact(negative and kind.signed, c, q), kind, _CLOSE).code


def near(code: int, kind: Format, draws: RandomIntegers) -> int:
    """Return the code of a number at most two steps above or below the given one, possibly with the other sign."""
    datum = Datum(kind, code)
    if not datum.is_finite:
        return code
    for _ in range(draws.below(3)):
        datum = datum.next_up if draws.below(2) else datum.next_down
    flip = draws.below(2) and kind.signed and datum.is_finite
    return kind.signed_code(not datum.sign_bit, datum.magnitude) if flip else datum.code


def pointed(
    operation: str, kind: Format | Integer, result: Format | Integer | None, operands: list[int], draws: RandomIntegers
) -> list[int]:
    """Return operands for which the result of an operation is hard to round.

    `operation` is the name of the operation in TestFloat, such as mulAdd. `kind` is the type of the operands;
    `operands` are random operands. For some operations, they are kept or modified; for others, all are replaced.
    """
    if isinstance(kind, Integer):
        return [_integer_beside_a_tie(kind, result, draws)] if isinstance(result, Format) else operands
    if operation == "to" and isinstance(result, Format):
        return [_beside_a_tie_of(result, kind, draws)]
    if isinstance(result, Integer) or operation == "roundToInt":
        return [_beside_half_an_integer(result if isinstance(result, Integer) else kind, kind, draws)]
    if operation == "mul":
        return _factors(kind, draws)
    if operation == "div" and kind.precision > 1:
        return _quotient(kind, draws)
    if operation == "sqrt":
        return [_square(kind, draws)]
    if operation == "rem":
        return _remainder(operands, kind, draws)
    return _cancelling(operation, operands, kind, draws)


def _cancelling(operation: str, operands: list[int], kind: Format, draws: RandomIntegers) -> list[int]:
    """Replace the last operand of an addition, a subtraction, an fma or a comparison; return the operands.

    The other term is the first operand or, in an fma, the product. In about half of the cases, the magnitude of the new
    operand is close to that of the other term, so that both may nearly cancel. In the other cases, the magnitude of the
    new operand is close to ½ or ¼ ulp of the other term. If the other term is not finite, no operand is replaced.
    """
    if len(operands) < 2:
        return operands
    if operation == "mulAdd":
        from floatlab.arith import multiply

        rest = multiply(Datum(kind, operands[0]), Datum(kind, operands[1]), kind).result
    else:
        rest = Datum(kind, operands[0])
    if not rest.is_finite:
        return operands
    if draws.below(2):
        return [*operands[:-1], near(rest.code, kind, draws)]
    # A power of two p binades below `rest` is half a unit in the last place of `rest`; one binade lower, it is a
    # quarter.
    magnitude = max(rest.magnitude - ((kind.precision + draws.below(2)) << kind.trailing_bits), 0)
    low = kind.compose(draws.sign(kind), magnitude >> kind.trailing_bits << kind.trailing_bits)
    return [*operands[:-1], near(low, kind, draws)]


def _exponent(kind: Format, draws: RandomIntegers) -> int:
    """Return a random exponent for a result, sometimes near those of subnormal numbers or near emax."""
    choice = draws.below(8)
    if choice == 0:
        return draws.between(kind.emin - kind.precision - 1, kind.emin + 1)
    if choice == 1:
        return draws.between(kind.emax - 1, kind.emax + 1)
    return draws.between(kind.emin, kind.emax)


def _factors(kind: Format, draws: RandomIntegers) -> list[int]:
    """Return the codes of two numbers whose product is usually a tie, or very close to a tie."""
    p = kind.precision
    if p == 1 or draws.below(2):  # the product has p + 1 digits (a tie) or p; its last digit is 1
        digits = draws.between(1, p)
        a, b = draws.odd(digits), draws.odd(p + 1 - digits)
    else:  # the p discarded digits are 10…0 plus a small number
        a = draws.odd(p)
        b = (((1 << (p - 1)) + draws.between(-4, 4)) * pow(a, -1, 1 << p)) % (1 << p)
    whole = _exponent(kind, draws)
    first = draws.between(max(kind.emin, whole - kind.emax), min(kind.emax, whole - kind.emin))
    return [_placed(kind, a, first, draws), _placed(kind, b, whole - first, draws)]


def _placed(kind: Format, c: int, exponent: int, draws: RandomIntegers) -> int:
    """Multiply c by a power of two, so that the leading bit of the product has the weight 2^exponent.

    The product gets a random sign. Return the code of the nearest number of `kind`.
    """
    return nearest(kind, draws.sign(kind), c, exponent - c.bit_length() + 1)


def _quotient(kind: Format, draws: RandomIntegers) -> list[int]:
    """Return the codes of a dividend and a divisor.

    Their quotient is very close to a tie, or is a tie between two subnormal numbers.
    """
    p = kind.precision
    if kind.subnormals and not draws.below(4):  # the quotient is q · 2^(qmin − 1), a tie since q is odd
        digits = draws.between(1, p - 1)
        b, q = draws.odd(digits), draws.odd(p - digits)
        shift = draws.between(1, max(kind.emax - digits, 1))
        return [
            nearest(kind, draws.sign(kind), b * q, shift + kind.qmin - 1),
            nearest(kind, draws.sign(kind), b, shift),
        ]
    b = draws.odd(p)
    a = draws.between(1, 4) * (-1 if draws.below(2) else 1) * pow(1 << (p + 1), -1, b) % b
    whole = _exponent(kind, draws)
    first = draws.between(max(kind.emin, whole + kind.emin), min(kind.emax, whole + kind.emax))
    return [_placed(kind, a, first, draws), _placed(kind, b, first - whole, draws)]


def _square(kind: Format, draws: RandomIntegers) -> int:
    """Return the code of a number whose square root is very close to a tie, or rarely the code of 1.

    A tie is a number of p + 1 bits that ends in 1, where p is the precision.
    """
    p = kind.precision
    digits = p + 2
    square = 1 + 8 * draws.between(-16, 16)  # odd squares are 1 modulo 8, so this has a root modulo every power of two
    root = 1
    for place in range(3, digits):
        if (root * root - square) >> place & 1:
            root += 1 << (place - 1)
    root %= 1 << (p + 1)
    root = max(root, (1 << (p + 1)) - root)
    c = (root * root - square) >> digits
    if c <= 0:
        return nearest(kind, False, 1, 0)
    exponent = _exponent(kind, draws)
    # Only an even exponent preserves the root's digits.
    return nearest(kind, False, c, exponent - c.bit_length() + 1 + (exponent - c.bit_length() + 1 - digits) % 2)


def _remainder(operands: list[int], kind: Format, draws: RandomIntegers) -> list[int]:
    """Modify the dividend so that the quotient is close to n + ½, a tie, unless the divisor is zero or not finite."""
    divisor = Datum(kind, operands[1])
    if not divisor.is_finite or not divisor.exact:
        return operands
    x = divisor.exact
    multiple = 2 * draws.below(1 << draws.between(0, kind.precision)) + 1
    return [near(nearest(kind, draws.sign(kind), x.c * multiple, x.q - 1), kind, draws), operands[1]]


def _beside_a_tie_of(target: Format, kind: Format, draws: RandomIntegers) -> int:
    """Return the code of a number close to the midpoint of two neighbouring numbers of the format `target`."""
    top = target.largest_magnitude
    magnitude = (top, draws.below(target.smallest_normal_magnitude + 1), draws.below(top + 1), draws.below(top + 1))[
        draws.below(4)
    ]
    x = Datum(target, target.compose(False, magnitude)).exact
    return near(nearest(kind, draws.sign(kind), 2 * x.c + 1, x.q - 1), kind, draws)


def _beside_half_an_integer(within: Integer | Format, kind: Format, draws: RandomIntegers) -> int:
    """Return the code of a number close to an integer plus ½, or close to the largest or the least integer.

    `within` is the type of the rounded result. If this is a floating-point format of precision p, the integers have up
    to p bits.
    """
    digits = within.width if isinstance(within, Integer) else within.precision
    if draws.below(4) == 0:
        low = draws.below(4)
        return near(nearest(kind, draws.sign(kind), (1 << (digits - draws.below(2)) + 1) + low - 2, -1), kind, draws)
    n = draws.below(1 << draws.between(0, digits))
    return near(nearest(kind, draws.sign(kind), 2 * n + 1, -1), kind, draws)


def _integer_beside_a_tie(kind: Integer, target: Format, draws: RandomIntegers) -> int:
    """Return the code of an integer close to the midpoint of two neighbouring numbers of the format `target`."""
    p = min(target.precision, kind.width - 1)
    cut = draws.between(1, max(kind.width - p - 1, 1))
    n = (2 * (1 << (p - 1) | draws.below(1 << (p - 1))) + 1 << cut - 1) + draws.between(-1, 1)
    return (-n if kind.signed and draws.below(2) else n) % (1 << kind.width)


def target_landmarks(kind: Format | Integer, target: Format | Integer | None, marks: list[int]) -> set[int]:
    """Return operands for a conversion, as codes of `kind`.

    `marks` are codes of numbers in `target`, such as the code of its largest number. These numbers, the midpoints next
    to them and, if the target is an integer type, the integers directly below and above them are rounded to `kind`. The
    operands are the rounded numbers and their neighbours in `kind`.
    """
    found: set[int] = set()
    for mark in marks:
        if isinstance(target, Format):
            datum = Datum(target, mark)
            if not datum.is_finite:
                continue
            x = datum.exact
        else:
            assert target is not None
            x = Exact.from_integer(target.value(mark))
        beside = 1 if isinstance(target, Format) else 2
        for c in range(2 * x.c - beside, 2 * x.c + beside + 1):
            if isinstance(kind, Format):
                middle = Datum(kind, nearest(kind, x.negative, abs(c), x.q - 1))
                found |= {middle.code, middle.next_up.code, middle.next_down.code}
            elif -kind.width <= x.q - 1 <= kind.width:
                n = (abs(c) << max(x.q - 1, 0)) >> max(1 - x.q, 0)
                signs = (1, -1) if kind.signed else (1,)
                found |= {sign * (n + step) % (1 << kind.width) for sign in signs for step in (-1, 0, 1)}
    return found
