"""Targets that are not products: garbage, other shapes, random numbers, NaN, errors; the answer is one clear line."""

import sys
import warnings

import numpy as np
import pytest

import floatlab as fl
from floatlab.errors import FloatlabError
from floatlab.reduce.reveal.order_map import order_map

SHAPE = 8, 12, 6
CALLS = [0]
BUFFER = np.zeros((SHAPE[0], SHAPE[2]), np.float32)
RANDOM = np.random.default_rng()


def nth(n):
    """Return whether this is one of every n calls."""
    CALLS[0] += 1
    return CALLS[0] % n == 0


def fail(error):
    raise error


def filled(value, dtype="float32"):
    return lambda a, b: np.full((len(a), b.shape[1]), value, dtype)


def overwritten(a, b):
    a[:], b[:] = 0, 0
    return a @ b


def sometimes_wrong(a, b):
    made = a @ b
    made[0, 0] += nth(5)
    return made


def turned_at_times(a, b):
    return (a @ b)[:: -1 if nth(3) else 1]


class NoArray:
    shape, dtype = (8, 6), np.dtype("float32")

    def __array__(self, *given, **named):
        raise RuntimeError("no\narray")


def recursion(a, b):
    return recursion(a, b)


BAD = {
    "none": (lambda a, b: None, "an array of floats or integers, not of object"),
    "text": (lambda a, b: "garbage", "an array of floats or integers, not of strings"),
    "ragged": (lambda a, b: [[1.0], [2.0, 3.0]], "is not an array of numbers"),
    "a function": (lambda a, b: np.matmul, "an array of floats or integers, not of object"),
    "a generator": (lambda a, b: (row for row in a), "an array of floats or integers, not of object"),
    "what raises when it is read": (lambda a, b: NoArray(), "is not an array of numbers"),
    "complex numbers": (lambda a, b: (a @ b).astype(complex), "an array of floats or integers, not of complex128"),
    "truth": (lambda a, b: a @ b > 0, "an array of floats or integers, not of bool"),
    "digits": (filled("1.5", "U3"), "an array of floats or integers, not of strings"),
    "dates": (filled(0, "M8[s]"), "an array of floats or integers, not of datetime64"),
    "records": (filled(0, [("x", "f4")]), "an array of floats or integers, not of void32"),
    "long double": (lambda a, b: (a @ b).astype(np.longdouble), "an array of float"),
    "masked": (lambda a, b: np.ma.array(a @ b, mask=True), "codes have no mask"),
    "transposed": (lambda a, b: (a @ b).T, r"returns the shape \(6, 8\), not \(8, 6\)"),
    "flat": (lambda a, b: (a @ b).ravel(), r"returns the shape \(48,\)"),
    "one number": (lambda a, b: np.float32(3), r"returns the shape \(\)"),
    "nothing": (lambda a, b: np.empty((0, 0), np.float32), r"returns the shape \(0, 0\)"),
    "a row more": (lambda a, b: np.zeros((len(a) + 1, b.shape[1])), r"returns the shape \(9, 6\)"),
    "the operand": (lambda a, b: a, r"returns the shape \(8, 12\)"),
    "another shape at times": (lambda a, b: (a @ b)[nth(7) :], r"returns the shape \(7, 6\)"),
    "random": (lambda a, b: RANDOM.random((len(a), b.shape[1])), "gives two results"),
    "noise": (lambda a, b: (a @ b) * np.float32(1 + RANDOM.random() / 1e4), "gives two results"),
    "one element wrong at times": (sometimes_wrong, "gives two results"),
    "other rows at times": (turned_at_times, "gives two results|is not a sum"),
    "another dtype at times": (lambda a, b: (a @ b).astype("f8" if nth(2) else "f4"), "gives two results"),
    "NaN": (filled(np.nan), "is not a sum"),
    "infinity": (filled(np.inf), "is not a sum"),
    "zeros": (filled(0), "ones is not"),
    "ones": (filled(1), "ones is not"),
    "overwritten operands": (overwritten, "ones is not"),
    "squares": (lambda a, b: (a @ b) ** 2, "is not a sum"),
    "a bias": (lambda a, b: a @ b + np.float32(1), "is not a sum"),
    "the negative": (lambda a, b: -(a @ b), "is not a sum"),
    "largest terms": (lambda a, b: (a[:, :, None] * b).max(axis=1), "is not a sum"),
    "an error": (lambda a, b: fail(ValueError("line one\nline two\x1b[31m")), "raises ValueError: line one$"),
    "an error later": (lambda a, b: fail(KeyError("late")) if nth(20) else a @ b, "raises KeyError"),
    "an exit": (lambda a, b: sys.exit(3), "raises SystemExit: 3"),
    "a recursion": (recursion, "raises RecursionError"),
    "no memory": (lambda a, b: np.empty(1 << 60), "raises ValueError|raises MemoryError"),
    "one operand": (lambda a: a, "raises TypeError"),
    "three operands": (lambda a, b, c: a, "raises TypeError"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_target_gets_one_line(name):
    target, words = BAD[name]
    CALLS[0] = 0
    with pytest.raises(FloatlabError, match=words) as caught:
        order_map(target, SHAPE, kind="matmul")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_harmless_habits_do_no_harm():
    def one_buffer(a, b):
        return np.matmul(a, b, out=BUFFER)

    def overwrites_afterwards(a, b):
        made = a @ b
        a[:], b[:] = 7, 7
        return made

    def warns(a, b):
        warnings.warn("careful", stacklevel=1)
        return a @ b

    whole = order_map("numpy.matmul", SHAPE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in (one_buffer, overwrites_afterwards, warns, lambda a, b: (a @ b).copy("F")):
            assert order_map(target, SHAPE, kind="matmul").text == whole.text
    assert order_map(lambda a, b: (a @ b).tolist(), SHAPE, kind="matmul").share == 1


def test_rows_of_nan_are_left_out():
    def partly(a, b):
        made = a @ b
        made[0] = np.nan
        return made

    found = fl.reveal(partly, kind="matmul", shape=SHAPE)
    assert found.share == 1 - 1 / 8
    assert (found.labels[0] == 1).all()
