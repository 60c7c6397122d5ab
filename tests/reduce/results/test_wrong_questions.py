"""Wrong arguments of library functions: each raises one of floatlab's errors, whose line names the argument."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.errors import FloatlabError, PlanError
from floatlab.reduce.plan.grouped_schedules import Blocked, Lanes
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import PAIRWISE, Permuted, Reversed, Sorted

ONES = np.ones(3, np.float32)
ENDLESS = []
ENDLESS.append(ENDLESS)

SQUARE = np.ones((3, 3), np.float32)


def compared(**given):
    return lambda: fl.compare(SQUARE, SQUARE, **given)


class OnNoDevice:
    """A tensor without data, as those of PyTorch's device "meta"."""

    dtype = "torch.bfloat16"
    is_meta = True
    view = None

    def detach(self):
        return self

    def cpu(self):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


QUESTIONS = {
    "one input": (compared(inputs=(SQUARE,)), r"inputs must be a pair \(x, y\), not tuple of 1"),
    "three inputs": (compared(inputs=(SQUARE,) * 3), r"inputs must be a pair \(x, y\), not tuple of 3"),
    "inputs of an array": (compared(inputs=SQUARE), r"inputs must be a pair \(x, y\), not ndarray"),
    "inputs by name": (compared(inputs={"x": SQUARE, "y": SQUARE}), r"inputs must be a pair \(x, y\), not dict"),
    "operation of nothing": (compared(inputs=(SQUARE, SQUARE), op=None), "op must be text, not 'None': matmul"),
    "operation of a number": (compared(inputs=(SQUARE, SQUARE), op=3), "op must be text, not '3': matmul"),
    "operation alone": (compared(op="linear"), r"op says .*: give inputs=\(x, y\) too"),
    "bias alone": (compared(bias=ONES), r"bias says .*: give inputs=\(x, y\) too"),
    "no data": (lambda: fl.compare(OnNoDevice(), SQUARE), "actual is not an array of numbers: 'Cannot copy"),
    "no elements": (
        lambda: fl.compare(SQUARE[:0], SQUARE[:0], inputs=(SQUARE[:0], SQUARE)),
        r"shapes \(0, 3\) and \(3, 3\) give a result without elements",
    ),
    "no elements in a batch": (
        lambda: fl.compare(SQUARE[None][:0], SQUARE[None][:0], inputs=(SQUARE[None][:0], SQUARE)),
        r"shapes \(0, 3, 3\) and \(3, 3\) give a result without elements",
    ),
    "adder of numbers": (lambda: fl.sum(ONES, adder=ONES), "adder must be a name"),
    "adder of a list": (lambda: fl.dot(ONES, ONES, adder=[]), "adder must be a name"),
    "fma of numbers": (lambda: fl.matmul(ONES, ONES, fma=ONES), "fma must be True or False"),
    "fma of text": (lambda: fl.dot(ONES, ONES, fma="no"), "fma must be True or False"),
    "a list in itself": (lambda: fl.sum(ENDLESS), "x is not an array of numbers"),
    "tolerances of one": (lambda: fl.compare(ONES, ONES, torch_tolerances=1), "torch_tolerances must be two numbers"),
    "tolerances of bytes": (lambda: fl.compare(ONES, ONES, torch_tolerances=b"12"), "torch_tolerances must be two"),
    "huge tolerances": (
        lambda: fl.compare(ONES, ONES, rtol=10**400),
        "rtol must be a finite number from 0 up, not 1000",
    ),
    "imaginary tolerances": (lambda: fl.compare(ONES, ONES, atol=np.complex64(1)), "atol must be"),
    "terms that are true": (lambda: fl.reveal(np.sum, True), "n must be a number of terms"),
    "dtype of nothing": (lambda: fl.reveal(np.sum, 4, None), "dtype must be a name"),
    "kind of numbers": (lambda: fl.reveal(np.sum, 4, kind=ONES), "kind must be one of"),
    "device of nothing": (lambda: fl.reveal(np.sum, 4, device=None), "device must be a name"),
    "too many at once": (lambda: fl.matmul(np.ones((10_000, 1)), np.ones((1, 10_000))), "10,000 × 10,000 elements"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_wrong_arguments_are_named(name):
    ask, words = QUESTIONS[name]
    with pytest.raises(FloatlabError, match=words) as refusal:
        ask()
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("terms", "nodes"),
    [
        (None, ((0, 1),)),
        ("2", ((0, 1),)),
        (ONES, ((0, 1),)),
        (2, None),
        (2, (0, 1)),
        (2, b"01"),
        (2, ((0.0, 1.0),)),
        (2, (("0", "1"),)),
        (2, {0: 1}),
        (10**12, ((0, 1),)),
        (10**400, ((0, 1),)),
        (-1, ()),
        (0, ()),
    ],
    ids=repr,
)
def test_what_is_no_plan(terms, nodes):
    with pytest.raises(PlanError) as refusal:
        Plan(terms, nodes)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    "make",
    [
        lambda: Permuted(None),
        lambda: Permuted([1, 0]),
        lambda: Permuted((0, 0)),
        lambda: Permuted(("0", "1")),
        lambda: Permuted(([0],)),
        lambda: Permuted(()),
        lambda: Sorted(ONES),
        lambda: Blocked(2, "pairwise").plan(4),
        lambda: Reversed(Lanes(2, PAIRWISE, None)).plan(4),
        lambda: PAIRWISE.plan(1.5),
        lambda: PAIRWISE.plan(None),
        lambda: PAIRWISE.plan(ONES),
        lambda: PAIRWISE.plan(True),
        lambda: PAIRWISE.plan(0),
    ],
)
def test_what_is_no_schedule(make):
    with pytest.raises(PlanError) as refusal:
        make()
    assert len(str(refusal.value).splitlines()) == 1


def test_numbers_of_numpy_count_terms():
    assert PAIRWISE.plan(np.int64(4)) == PAIRWISE.plan(4)


@pytest.mark.parametrize("function", [fl.sum, fl.dot, fl.matmul])
def test_an_unknown_keyword_is_a_type_error_of_the_function_that_was_called(function):
    operands = (ONES,) if function is fl.sum else (ONES, ONES)
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument 'order'"):
        function(*operands, order="serial")
