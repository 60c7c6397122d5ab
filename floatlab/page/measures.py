"""Short texts for measured values: errors, tolerances, percentages, ulps, sizes, times, and the index of an element."""

from __future__ import annotations

from math import inf, isfinite

_LARGE = 1 << 20  # from here on, ulps are written in powers of ten


def number(x: float | None) -> str:
    """Return a number to three significant digits; "none" for None."""
    return "none" if x is None else f"{x:.3g}"


def upward(x: float) -> str:
    """Return a tolerance as text, rounded up to three digits: a tolerance rounded down would be too small.

    >>> upward(3.3301e-05), upward(0.25)
    ('3.34e-05', '0.25')
    """
    text = f"{x:.3g}"
    if float(text) >= x or not isfinite(x):
        return text
    digits, _, exponent = f"{x:.2e}".partition("e")
    return f"{float(f'{round(float(digits) + 0.01, 2)}e{exponent}'):.3g}"


def percent(part: int, whole: int) -> str:
    """Return a ratio in percent; only an exact 0 is shown as 0 %, and only an exact 1 as 100 %.

    >>> percent(1, 3), percent(1, 10**9), percent(10**9 - 1, 10**9), percent(4, 4)
    ('33.3 %', '< 0.01 %', '> 99.9 %', '100 %')
    """
    if part in (0, whole):
        return "100 %" if part else "0 %"
    share = 100 * part / whole
    if share < 0.01:
        return "< 0.01 %"
    return "> 99.9 %" if share >= 99.95 else f"{share:.3g} %"


def multiple(x: float) -> str:
    """Return a ratio as text. From 1000 to 2^20 it is rounded to an integer, otherwise to three significant digits."""
    return f"{x:,.0f}" if 1000 <= x < _LARGE else f"{x:.3g}"


def share_of_tolerance(share: float) -> str:
    """Return the ratio of an error to its tolerance: in percent or, from 10 on, as a multiple ("25 times").

    An infinite ratio means that no error is allowed.

    >>> share_of_tolerance(0.5), share_of_tolerance(25.0), share_of_tolerance(inf)
    ('50 %', '25 times', 'none allowed')
    """
    if share == inf:
        return "none allowed"
    return f"{100 * share:.3g} %" if share < 10 else f"{multiple(share)} times"


def at_index(index: tuple[int, ...]) -> str:
    """Return an index as a sentence fragment (" at (3, 4)"); empty for a scalar.

    >>> at_index((3,)), at_index((3, 4)), at_index(())
    (' at 3', ' at (3, 4)', '')
    """
    if not index:
        return ""
    return f" at {index[0]}" if len(index) == 1 else f" at ({', '.join(map(str, index))})"


def steps_text(ulps: int) -> str:
    """Return a number of ulps as text."""
    return f"{ulps:,}" if ulps < _LARGE else f"{ulps:.3g}"


def bin_label(low: int, high: int) -> str:
    """Return the label of a histogram bin of ulps.

    >>> bin_label(0, 0), bin_label(4, 7), bin_label(1 << 30, (1 << 31) - 1)
    ('0', '4 to 7', 'from 2^30')
    """
    if low == high:
        return f"{low}"
    return f"{low} to {high}" if high < 1024 else f"from 2^{low.bit_length() - 1}"


def shape_text(shape: tuple[int, ...]) -> str:
    """Return the shape of an array as text.

    >>> shape_text((1000, 3)), shape_text(())
    ('1,000 × 3', 'one number')
    """
    return " × ".join(f"{n:,}" for n in shape) if shape else "one number"


def factors_text(*shapes: tuple[int, ...]) -> str:
    """Return the shapes of the factors of a product as text.

    >>> factors_text((1000, 3), (3, 2))
    '(1,000 × 3) · (3 × 2)'
    """
    return " · ".join(f"({shape_text(shape)})" for shape in shapes)


def bytes_text(size: int) -> str:
    """Return the size of a file as text.

    >>> bytes_text(1), bytes_text(2_345), bytes_text(4 * 10**9)
    ('1 byte', '2.35 kB', '4 GB')
    """
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}" if size < 1000 * scale else f"{size // scale:,} {unit}"
    return f"{size} {'byte' if size == 1 else 'bytes'}"


def seconds(time: float) -> str:
    """Return a time in seconds as text, to three digits.

    >>> seconds(0.00123456), seconds(2.5)
    ('1.23 ms', '2.5 s')
    """
    return f"{time:.3g} s" if time >= 1 else f"{time * 1e3:.3g} ms" if time >= 1e-3 else f"{time * 1e6:.3g} µs"
