"""The base class of FloatArray (codes with a format and a context), and the common format and context of operands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any, Self

import numpy as np

from floatlab.arith.operands import common_format, reading_context
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import DOUBLE, checked_codes, container
from floatlab.arrays.sources import array_format, is_floating, source_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import FormatError, MissingPartError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum, convert
from floatlab.numbers import encode as encode_one
from floatlab.numbers.rounding import DEFAULT, AnyContext, as_context
from floatlab.other_libraries import LIBRARIES

Axis = int | tuple[int, ...] | None


def is_number(x: object) -> bool:
    """Return whether `x` is a single number: a number of Python or NumPy, or a Datum."""
    return isinstance(x, int | float | np.number | np.bool_ | Fraction | Decimal | Datum)


def codes_in(x: object, format: Format, context: Context) -> Array:
    """Return the codes of numbers, rounded once into `format` unless they have this format.

    Raises UnsupportedError for arguments that are not numeric.
    """
    if isinstance(x, Datum):
        return np.asarray(convert(x, format, context).result.code, container(format))
    if isinstance(x, str) or (is_number(x) and not isinstance(x, np.generic)):
        return np.asarray(encode_one(x, format, context).code, container(format))
    if getattr(x, "dtype", None) == np.bool_:
        x = np.asarray(x, np.uint8)
    source = source_of(x)
    if source.format == format:
        unsigned = container(format)
        return source.codes.astype(unsigned) & unsigned.type((1 << format.width) - 1)
    found = encode(x, format, context=context)
    return np.asarray(found)


class CodedArray:
    """An array of numbers of one format: its attributes, conversions, and the methods that only move elements.

    `FloatArray` adds arithmetic.
    """

    __slots__ = ("_codes", "_context", "_format")
    _codes: Array
    _context: Context | None
    _format: Format
    __hash__ = None  # type: ignore[assignment]  # equality is element by element, as in NumPy

    @in_default_mode
    def __init__(self, x: object, format: object = None, context: AnyContext = None) -> None:
        """Round `x` into the format. By default, format and context are those of `x`."""
        if format is None:
            format = x.format if isinstance(x, Datum | CodedArray) else source_of(x).format
        if context is None and isinstance(x, CodedArray):
            context = x._context
        rules = None if context is None else as_context(context)
        self._format = array_format(format)
        self._context = rules
        self._codes = np.asarray(codes_in(x, self._format, rules or DEFAULT), order="C")

    @classmethod
    def _of(cls, codes: Array, format: Format, context: Context | None) -> Self:
        """Wrap codes that are known to be valid, without a copy."""
        self = cls.__new__(cls)
        self._codes, self._format, self._context = np.asarray(codes), format, context
        return self

    @classmethod
    def from_codes(cls, codes: object, format: object, context: AnyContext = None) -> Self:
        """Return an array with these codes (copied); raises UnsupportedError for codes that are too wide.

        >>> from floatlab.arrays import FloatArray
        >>> FloatArray.from_codes([0x38, 0x7e], "e4m3")
        FloatArray([1.0, 448.0], e4m3fn)
        """
        fmt = array_format(format)
        return cls._of(
            checked_codes(codes, fmt).astype(container(fmt)), fmt, None if context is None else as_context(context)
        )

    @classmethod
    def from_dlpack(cls, x: object, format: object = None, context: AnyContext = None) -> Self:
        """Convert an object with `__dlpack__`, such as a tensor of PyTorch or JAX.

        By default, the format is the object's own. Raises UnsupportedError for objects without `__dlpack__`.
        """
        if not hasattr(x, "__dlpack__"):
            raise UnsupportedError(f"x is {type(x).__name__}, which has no __dlpack__")
        return cls(x, format, context)

    # Attributes.

    @property
    def format(self) -> Format:
        """The format of the values."""
        return self._format

    @property
    def context(self) -> Context:
        """The rounding rules for results and assigned values."""
        return self._context or DEFAULT

    @property
    def codes(self) -> Array:
        """The codes, unsigned integers of 8, 16, 32 or 64 bits: a read-only view."""
        view = self._codes.view()
        view.flags.writeable = False
        return view

    @property
    def values(self) -> Array:
        """The exact values, as float32 if float32 contains the format, else as float64."""
        return decode(self._codes, self._format)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._codes.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._codes.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._codes.size

    @property
    def nbytes(self) -> int:
        """The number of bytes of the codes, unpacked."""
        return self._codes.nbytes

    @property
    def T(self) -> Self:  # noqa: N802
        """A view of the array with its axes reversed."""
        return self._same(self._codes.T)

    def __len__(self) -> int:
        return len(self._codes)

    @in_default_mode
    def __bool__(self) -> bool:
        return bool(self.values)

    @in_default_mode
    def __float__(self) -> float:
        return float(self.values)

    @in_default_mode
    def __int__(self) -> int:
        return int(self.values)

    @in_default_mode
    def item(self, *index: int) -> float:
        """Return one element as a Python float."""
        return float(self.values.item(*index))

    @in_default_mode
    def tolist(self) -> Any:
        """Return the values as nested lists of Python floats."""
        return self.values.tolist()

    def datum(self, *index: int) -> Datum:
        """Return one element as a Datum, which has fields, neighbours and an exact value.

        >>> from floatlab.arrays import FloatArray
        >>> FloatArray([1.0, 1.1], "fp16").datum(1).biased_exponent
        15
        """
        return Datum(self._format, int(self._codes.item(*index)))

    # Elements and shapes: views of codes, as in NumPy.

    def _same(self, codes: Array) -> Self:
        return self._of(np.asarray(codes), self._format, self._context)

    def __getitem__(self, key: Any) -> Self:
        return self._same(self._codes[key])

    @in_default_mode
    def __setitem__(self, key: Any, value: Any) -> None:
        self._codes[key] = codes_in(value, self._format, self.context)

    def __iter__(self) -> Iterator[Self]:
        if not self.ndim:
            raise TypeError("a FloatArray without axes cannot be iterated over")
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any) -> Self:
        """Return the same elements, in C order, in another shape. The result is a view if possible."""
        return self._same(self._codes.reshape(*shape))

    def transpose(self, *axes: Any) -> Self:
        """Return a view of the array with its axes in another order."""
        return self._same(self._codes.transpose(*axes))

    def ravel(self) -> Self:
        """Return the elements in C order, as an array with one axis. The result is a view if possible."""
        return self._same(self._codes.ravel())

    def flatten(self) -> Self:
        """Return a copy of the elements in C order, as an array with one axis."""
        return self.ravel().copy()

    def squeeze(self, axis: Axis = None) -> Self:
        """Return a view of the array without its axes of length 1, or only without the axes `axis`."""
        return self._same(self._codes.squeeze(axis))

    def copy(self) -> Self:
        """Return a copy in C order."""
        return self._same(self._codes.copy())

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def astype(self, format: object, context: AnyContext = None) -> Self:
        """Return the values rounded once into another format, by `context` or the array's own context.

        >>> from floatlab.arrays import FloatArray
        >>> FloatArray([0.1, 1000], "fp16").astype("e4m3", Context(overflow="saturate"))
        FloatArray([0.1015625, 448.0], e4m3fn, Context(overflow='saturate'))
        """
        return type(self)(self, format, context or self._context)

    def with_context(self, context: AnyContext) -> Self:
        """Return a view of the same elements with another context for results."""
        return self._of(self._codes, self._format, None if context is None else as_context(context))

    # Conversions for other libraries.

    @in_default_mode
    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the values of a FloatArray are computed from its codes: they cannot share its memory")
        return self.values if dtype is None else self.values.astype(dtype)

    def __dlpack__(self, **wanted: Any) -> Any:
        """Export the values (not the codes)."""
        return self.values.__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()

    def __jax_array__(self) -> object:
        """Return the values for JAX: float32 or float64. JAX keeps float64 only if it is configured to do so."""
        return import_module("jax.numpy").asarray(self.values)

    def to_torch(self) -> Any:
        """Return a tensor with the same bits if PyTorch has the format (float8_e4m3fn …), else a tensor of the values.

        Raises MissingPartError if PyTorch is not installed.
        """
        try:
            torch = import_module("torch")
        except (ImportError, OSError):  # PyTorch is absent, or lacks libraries that it needs
            raise MissingPartError("to_torch needs PyTorch, which is not installed: pip install torch") from None
        kind = getattr(torch, LIBRARIES["torch"].get(self._format.name, ""), None)
        if kind is None or parse_format(self._format.name) != self._format:
            return torch.from_numpy(self.values)
        word = self._codes.dtype
        # Older versions of PyTorch have no unsigned integers of more than 8 bits.
        bits = self._codes.copy().view(word if word.itemsize == 1 else f"i{word.itemsize}")
        return torch.from_numpy(bits).view(kind)

    @in_default_mode
    def __str__(self) -> str:
        return _text(self)

    @in_default_mode
    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.ndim else str(self)

    @in_default_mode
    def __repr__(self) -> str:
        shape = f", shape={self.shape}" if not self.size and self.shape != (0,) else ""
        rules = f", {self._context}" if self._context not in (None, DEFAULT) else ""
        return f"FloatArray({_text(self, len('FloatArray('))}{shape}, {self._format.name}{rules})"


def _digits(value: float) -> str:
    text = f"{value:.8g}"
    return f"{text}.0" if text.lstrip("-").isdigit() else text


def _text(x: CodedArray, indent: int = 0) -> str:
    """Format the numbers in brackets as NumPy does, each with a decimal point."""
    if not x.size:
        return "[]"
    values = x.values
    wide = 0
    if x.ndim > 1 and x.size <= np.get_printoptions()["threshold"]:
        wide = max(len(_digits(value)) for value in values.ravel().tolist())
    numbers = {"float_kind": lambda value: _digits(float(value)).rjust(wide)}
    return np.array2string(values, separator=", ", prefix=" " * indent, formatter=numbers)  # type: ignore[arg-type]


def own_format(x: object) -> Format | None:
    """Return an operand's own format, or None if the operand has no format.

    Python numbers, NumPy scalars, lists and integers have no format: they are rounded to the format of the other
    operands.
    """
    if isinstance(x, CodedArray | Datum):
        return x.format
    if isinstance(x, np.generic) or not is_floating(x):
        return None
    return source_of(x, "an operand").format


def shared_format(values: Iterable[object]) -> Format:
    """Return the format of a result: the operands' format, or binary64 if no operand has a format.

    If the operands' formats differ, the result is the first of fp16, bf16, fp32 and fp64 that contains all of them.
    Raises FormatError if none of these four formats contains them all.
    """
    formats = [format for format in map(own_format, values) if format is not None]
    try:
        return array_format(common_format(formats or [DOUBLE]))
    except FormatError:
        names = ", ".join(dict.fromkeys(each.name for each in formats))
        raise FormatError(f"none of fp16, bf16, fp32 and fp64 contains {names}: convert one with astype") from None


def shared_context(values: Iterable[object]) -> Context | None:
    """Return the context of those operands that have one; None if no operand has a context.

    The result of an operation gets this context, too. Raises UnsupportedError if two operands have different contexts.
    """
    given = [x._context for x in values if isinstance(x, CodedArray) and x._context is not None]
    if any(each != given[0] for each in given):
        raise UnsupportedError(f"the operands' contexts differ, {given[0]} and {given[1]}: see with_context")
    return given[0] if given else None


def typed(x: object, format: Format, context: Context) -> object:
    """Round an operand without a format, such as a number or a list, into `format`; return it as a CodedArray.

    A `Datum` is converted to a CodedArray. Any other operand that has a format is returned unchanged.
    """
    if own_format(x) is not None:
        return CodedArray(x) if isinstance(x, Datum) else x
    if isinstance(x, str):
        raise UnsupportedError("an operand must be a number or an array of numbers, not text")
    return CodedArray._of(codes_in(x, format, reading_context(context)), format, None)


def values_of(x: object, format: Format, context: Context, dtype: object = None) -> Array:
    """Return the exact values of an operand; an operand without a format is first rounded into `format`."""
    known = typed(x, format, context)
    exact = known if isinstance(known, CodedArray) else CodedArray(known)
    return decode(exact.codes, exact.format, dtype)


def finished(values: Array, format: Format, context: Context | None, rules: Context = DEFAULT) -> CodedArray:
    """Round values into `format` by `rules`; return an array with the context `context`.

    NaNs become the format's default NaN.
    """
    codes = np.asarray(encode(values, format, context=rules))
    if format.has_nan:
        codes[np.isnan(values)] = format.nan_code
    return CodedArray._of(codes, format, context)


def refuse_options(options: dict[str, object], name: str) -> None:
    """Raise UnsupportedError for an option of a NumPy function that FloatArray does not support."""
    left = [key for key, value in options.items() if not (key == "where" and value is True) and value is not None]
    if left:
        raise UnsupportedError(f"numpy.{name} of a FloatArray takes no {left[0]}=")
