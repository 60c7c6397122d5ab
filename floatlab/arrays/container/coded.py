"""What a FloatArray holds and shows: codes, their format and a context; what computes with them is in `array`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Self

import numpy as np

from floatlab.arrays.container.elements import array_format, codes_in
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.reading import checked_codes, container
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import MissingPartError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum
from floatlab.numbers.rounding import DEFAULT, AnyContext, as_context
from floatlab.peers import LIBRARIES

Axis = int | tuple[int, ...] | None


class CodedArray:
    """An array of any shape whose every value is a number of one format: what it holds, and what moves elements only.

    `FloatArray` adds arithmetic.
    """

    __slots__ = ("_codes", "_context", "_format")
    _codes: Array
    _context: Context | None
    _format: Format
    __hash__ = None  # type: ignore[assignment]  # equality is element by element, as NumPy's

    @in_default_mode
    def __init__(self, x: Any, format: Any = None, context: AnyContext = None) -> None:
        """Round `x` into the format."""
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
        """Wrap codes that are known to be right, without a copy."""
        self = cls.__new__(cls)
        self._codes, self._format, self._context = np.asarray(codes), format, context
        return self

    @classmethod
    def from_codes(cls, codes: Any, format: Any, context: AnyContext = None) -> Self:
        """Return the array whose codes these are (a copy); raises UnsupportedError for codes that are too wide.

        >>> from floatlab.arrays import FloatArray
        >>> FloatArray.from_codes([0x38, 0x7e], "e4m3")
        FloatArray([1.0, 448.0], e4m3fn)
        """
        fmt = array_format(format)
        return cls._of(
            checked_codes(codes, fmt).astype(container(fmt)), fmt, None if context is None else as_context(context)
        )

    @classmethod
    def from_dlpack(cls, x: Any, format: Any = None, context: AnyContext = None) -> Self:
        """Return the numbers of anything with `__dlpack__` (PyTorch, JAX, CuPy on the host) in a format, or in its own.

        Raises UnsupportedError for what has no `__dlpack__`.
        """
        if not hasattr(x, "__dlpack__"):
            raise UnsupportedError(f"x is {type(x).__name__}, which has no __dlpack__")
        return cls(x, format, context)

    # What it is.

    @property
    def format(self) -> Format:
        """The format that every value is a number of."""
        return self._format

    @property
    def context(self) -> Context:
        """How results and assigned values are rounded."""
        return self._context or DEFAULT

    @property
    def codes(self) -> Array:
        """The codes, unsigned integers of 8, 16, 32 or 64 bits: a view that cannot be written to."""
        view = self._codes.view()
        view.flags.writeable = False
        return view

    @property
    def values(self) -> Array:
        """The values as floats, exactly: float32 where it holds all of the format, else float64."""
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
        """The bytes that the codes take, unpacked."""
        return self._codes.nbytes

    @property
    def T(self) -> Self:  # noqa: N802
        """The array with its axes reversed; a view."""
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
    def item(self, *index: Any) -> float:
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

    # Elements and shapes: views of codes, as NumPy's.

    def _same(self, codes: Any) -> Self:
        return self._of(np.asarray(codes), self._format, self._context)

    def __getitem__(self, key: Any) -> Self:
        return self._same(self._codes[key])

    @in_default_mode
    def __setitem__(self, key: Any, value: Any) -> None:
        self._codes[key] = codes_in(value, self._format, self.context)

    def __iter__(self) -> Iterator[Self]:
        if not self.ndim:
            raise TypeError("a FloatArray of no axes has nothing to iterate over")
        return (self[i] for i in range(len(self)))

    def reshape(self, *shape: Any) -> Self:
        """Return the same elements, in C order, in another shape; a view where NumPy gives one."""
        return self._same(self._codes.reshape(*shape))

    def transpose(self, *axes: Any) -> Self:
        """Return the array with its axes in another order; a view."""
        return self._same(self._codes.transpose(*axes))

    def ravel(self) -> Self:
        """Return the elements along one axis, in C order."""
        return self._same(self._codes.ravel())

    def flatten(self) -> Self:
        """Return a copy of the elements along one axis, in C order."""
        return self.ravel().copy()

    def squeeze(self, axis: Any = None) -> Self:
        """Return the array without its axes of length 1; a view."""
        return self._same(self._codes.squeeze(axis))

    def copy(self) -> Self:
        """Return an array of its own memory, in C order."""
        return self._same(self._codes.copy())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> Self:
        return self.copy()

    def astype(self, format: Any, context: AnyContext = None) -> Self:
        """Return the values rounded into another format, once, by `context` or the array's own.

        >>> from floatlab.arrays import FloatArray
        >>> FloatArray([0.1, 1000], "fp16").astype("e4m3", Context(overflow="saturate"))
        FloatArray([0.1015625, 448.0], e4m3fn, Context(overflow='saturate'))
        """
        return type(self)(self, format, context or self._context)

    def with_context(self, context: AnyContext) -> Self:
        """Return a view of the same elements whose results are rounded by another context."""
        return self._of(self._codes, self._format, None if context is None else as_context(context))

    # What others see.

    @in_default_mode
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("the values of a FloatArray are made from its codes: there is nothing to share")
        return self.values if dtype is None else self.values.astype(dtype)

    def __dlpack__(self, **wanted: Any) -> Any:
        """Give the values (not the codes) away."""
        return self.values.__dlpack__(**wanted)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()

    def __jax_array__(self) -> Any:
        """Give JAX the values, as `numpy.asarray` does: float32, or float64, which JAX keeps where it is told to."""
        return import_module("jax.numpy").asarray(self.values)

    def to_torch(self) -> Any:
        """Return a tensor with the same bits where PyTorch has the format (float8_e4m3fn …), else with the values.

        Raises MissingPartError where PyTorch is not installed.
        """
        try:
            torch = import_module("torch")
        except (ImportError, OSError):  # absent, or installed without what it needs to load
            raise MissingPartError("to_torch needs PyTorch, which is not installed: pip install torch") from None
        kind = getattr(torch, LIBRARIES["torch"].get(self._format.name, ""), None)
        if kind is None or parse_format(self._format.name) != self._format:
            return torch.from_numpy(self.values)
        word = self._codes.dtype
        # PyTorch's unsigned integers of more than 8 bits are younger than its integers.
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
    """Return the numbers in brackets as NumPy sets them, and none of them without a point."""
    if not x.size:
        return "[]"
    values = x.values
    wide = 0
    if x.ndim > 1 and x.size <= np.get_printoptions()["threshold"]:
        wide = max(len(_digits(value)) for value in values.ravel().tolist())
    numbers = {"float_kind": lambda value: _digits(float(value)).rjust(wide)}
    return np.array2string(values, separator=", ", prefix=" " * indent, formatter=numbers)  # type: ignore[arg-type]
