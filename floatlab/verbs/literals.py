"""Write a number as text for programs: decimal, hexadecimal, as a code, or as a literal of C, NumPy or Python."""

from __future__ import annotations

from floatlab.numbers import Datum, hexadecimal_code
from floatlab.numbers.datum import hexadecimal, shortest
from floatlab.numbers.printing import exact_decimal
from floatlab.other_libraries import LIBRARIES

# The suffixes of floating constants in C23 and C++23. A constant without a suffix is a `double`.
_SUFFIXES = {"binary16": "f16", "bfloat16": "bf16", "binary32": "f", "binary64": "", "x87": "L", "binary128": "f128"}


def literals_of(datum: Datum) -> dict[str, tuple[str, str]]:
    """Return the notations that denote a number exactly in its format: for each name, a description and the text.

    Parameters
    ----------
    datum : Datum
        The number.

    Returns
    -------
    dict[str, tuple[str, str]]
        `exact`, `shortest`, `hex` (C's `%a`; finite numbers only), `bits` (the code) and `python`; `c` and `numpy` if
        C and NumPy can denote the number. Irrational numbers have only the shortest decimal and the code.

    Notes
    -----
    `c` has the suffixes of C23 (`f16`, `f128`) and C++23 (`bf16`). If a format has no suffix, its numbers are written
    as `double` literals, if `double` can represent them. `numpy` views the code as the NumPy or ml_dtypes type of the
    format, so that NaNs keep their payloads.

    Examples
    --------
    >>> from floatlab import encode
    >>> for description, text in literals_of(encode("1.1", "fp16")).values():
    ...     print(f"{description:<24} {text}")
    the exact decimal        1.099609375
    the shortest decimal     1.1
    the hexadecimal number   0x1.198p+0
    the code                 0x3c66
    the Python literal       1.099609375
    the C literal            0x1.198p+0f16
    the NumPy expression     np.uint16(0x3c66).view(np.float16)
    """
    name = datum.format.name
    found = {"shortest": ("the shortest decimal", shortest(datum)), "bits": ("the code", hexadecimal_code(datum))}
    if not datum.symbol:
        exact = exact_decimal(datum.exact) if datum.is_finite else shortest(datum)
        hexadecimals = {"hex": ("the hexadecimal number", hexadecimal(datum))} if datum.is_finite else {}
        found = {"exact": ("the exact decimal", exact), "shortest": found["shortest"], **hexadecimals, **found}
        found["python"] = ("the Python literal", _python(datum))
        if literal := _c(datum):
            found["c"] = ("the C literal", literal)
    for library, prefix in (("numpy", "np"), ("ml_dtypes", "ml_dtypes")):
        if type_name := LIBRARIES[library].get(name):
            bits = max(datum.format.width, 8)
            text = f"np.uint{bits}({hexadecimal_code(datum)}).view({prefix}.{type_name})"
            found["numpy"] = ("the NumPy expression", text)
    return found


def _double(datum: Datum) -> float | None:
    """Return a finite number as a binary64, or None if binary64 does not contain it."""
    try:
        found = float(datum.exact.as_fraction())
    except OverflowError:
        return None
    if found.as_integer_ratio() != datum.exact.as_integer_ratio():
        return None
    return -found if not found and datum.exact.negative else found


def _python(datum: Datum) -> str:
    if not datum.is_finite:
        return f"float({shortest(datum)!r})" if not datum.is_nan else "float('nan')"
    found = _double(datum)
    if found is not None:
        return repr(found)
    x = datum.exact.normalized()
    return f"{'-' if x.negative else ''}{x.c} * Fraction(2) ** {x.q}"


def _c(datum: Datum) -> str:
    if not datum.is_finite:
        return "NAN" if datum.is_nan else "-INFINITY" if datum.sign_bit else "INFINITY"
    name = datum.format.name
    if name not in _SUFFIXES and _double(datum) is None:
        return ""
    return hexadecimal(datum) + _SUFFIXES.get(name, "")
