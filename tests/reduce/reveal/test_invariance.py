"""What changes the bits of a row: each circumstance alone, on products written for it, and on the installed BLAS."""

import numpy as np
import pytest

from floatlab.errors import UnsupportedError
from floatlab.reduce.reveal.invariance import invariance


def serial(a, b):
    made = np.zeros((len(a), b.shape[1]), a.dtype)
    for k in range(a.shape[1]):
        made += a[:, k, None] * b[k]
    return made


def backward(a, b):
    return serial(a[:, ::-1], b[::-1])


def by_size(a, b):
    return serial(a, b) if len(a) < 6 else backward(a, b)


def by_place(a, b):
    made = serial(a, b)
    made[4::6] = backward(a, b)[4::6]
    return made


def by_address(a, b):
    return backward(a, b) if a.ctypes.data % 16 == 8 else serial(a, b)


def by_far_address(a, b):
    return backward(a, b) if a.ctypes.data % 256 else serial(a, b)


def by_tile(a, b):
    """Add the rows below the last whole tile of ten rows backward."""
    made, tiled = serial(a, b), len(a) // 10 * 10
    made[tiled:] = backward(a, b)[tiled:]
    return made


def by_address_of_one_row(a, b):
    return by_address(a, b) if len(a) == 1 else serial(a, b)


def by_run(steady):
    runs = []

    def changing(a, b):
        runs.append(0)
        return backward(a, b) if len(runs) > steady and len(runs) % 2 == 0 else serial(a, b)

    return changing


def changed(target, **options):
    found = invariance(target, (20, 40, 5), kind="matmul", **options)
    return {each.name: each.first for each in found.circumstances if each.changes}, found


def test_a_product_row_by_row_is_invariant():
    changes, found = changed(serial)
    assert changes == {}
    assert found.is_invariant
    assert [each.name for each in found.circumstances] == ["runs", "rows", "place", "alignment", "threads"]
    assert found.text.splitlines()[1] == "rows: the same bits in all 20 cases"


def test_each_circumstance_is_found():
    assert changed(by_size)[0] == {"rows": 6}
    assert changed(by_place)[0] == {"place": 4}
    assert changed(by_address)[0] == {"alignment": 8}
    assert changed(by_far_address)[0] == {"alignment": 4}  # and not the rows or the threads
    assert changed(by_run(3))[0] == {"runs": 4}


def test_a_smaller_batch_may_show_an_effect_that_the_whole_one_hides():
    changes, found = changed(by_tile)  # 20 rows are two whole tiles
    assert changes == {"rows": 10, "place": 10}
    assert found.circumstances[2].rows == 19
    assert found.verdict == (
        "not batch invariant: a row has other bits alone than in a batch of 10 rows; "
        "a row has other bits at place 10 of the batch than at place 0, if the batch has 19 rows"
    )
    changes, found = changed(by_address_of_one_row)
    assert changes == {"alignment": 8}
    assert found.circumstances[3].rows == 1
    assert "from 8 bytes on, in a batch of 1 row: 2 different" in found.text


def test_a_target_may_take_one_number_of_rows_only():
    def stubborn(a, b):
        if len(a) != 20:
            raise ValueError("20 rows")
        return by_place(a, b)

    changes, found = changed(stubborn)
    assert changes == {"place": 4}
    assert found.circumstances[1].reason.endswith("raises ValueError: 20 rows")
    assert [each.rows for each in found.circumstances[2:]] == [20, 20, 20]


@pytest.mark.parametrize(
    ("target", "verdict"),
    [
        (serial, "batch invariant in all batches that were tried"),
        (by_size, "not batch invariant: a row has other bits alone than in a batch of 6 rows"),
        (by_place, "not batch invariant: a row has other bits at place 4 of the batch than at place 0"),
        (
            by_address,
            "batch invariant in all batches that were tried; but bits depend on where the operands lie in memory",
        ),
        (by_run(3), "not deterministic: the same product has other bits when it is computed again"),
        (lambda a, b: serial(a, b) if len(a) == 20 else 1 // 0, "the batch could not be tried"),
    ],
)
def test_the_verdict_is_one_line(target, verdict):
    assert changed(target)[1].verdict == verdict


def test_how_much_is_told():
    found = changed(by_place)[1]
    place = found.circumstances[2]
    assert place.groups == (tuple(i for i in range(20) if i % 6 != 4), (4, 10, 16))
    assert 0 < place.share <= 1
    assert place.ulps >= 1
    assert "place: changes bits from place 4 on, in a batch of 20 rows: 2 different results" in found.text


def test_threads_are_as_many_as_before():
    from floatlab.reduce.timing.devices import device_of

    device = device_of("numpy")
    before = device.set_threads(1)
    if before is None:
        pytest.skip("NumPy has no OpenBLAS of its own here")
    device.set_threads(before)
    found = invariance("numpy.matmul", (30, 20, 10), "float64")
    assert device.set_threads(before) == before
    assert found.circumstances[-1].tried == (1, 2, 3, 4, 8)


@pytest.mark.parametrize(
    ("changing", "text"),
    [
        (lambda made: made.astype("float64"), "2 different results (binary32 and binary64) with the same numbers"),
        (
            lambda made: made.astype("float64") * (1 + 2.0**-26),
            "at most 100 % of elements differ, by less than 1 ulp of binary32",
        ),
        (lambda made: np.nextafter(made, np.float32(9)).astype("float64"), "differ, by up to 1 ulp of binary32"),
        (lambda made: -made, "at most 100 % of elements differ, only in the signs of zeros or the bits of NaNs"),
        (lambda made: made + np.float32(np.nan), "differ, and some are NaN in only one of two results"),
    ],
)
def test_differences_that_are_no_ulps_of_one_format(changing, text):
    zeros = "signs of zeros" in text

    def product(a, b):
        made = serial(a, b) * np.float32(not zeros)
        made = np.abs(made) if zeros else made
        return made if len(a) < 6 else changing(made)

    changes, found = changed(product)
    assert changes["rows"] == 6
    assert found.text.splitlines()[1].endswith(text)


@pytest.mark.parametrize("steady", [3, 10, 30])
def test_nothing_is_blamed_for_what_changes_from_run_to_run(steady):
    changes, found = changed(by_run(steady))
    assert [*changes] == ["runs"]
    assert found.circumstances[0].share > 0
    assert not found.is_invariant
    assert {each.reason for each in found.circumstances[1:]} == {"the same product has other bits in another run"}


def test_what_cannot_be_tried_is_said():
    with pytest.raises(UnsupportedError):
        invariance("numpy.matmul", (3, 4, 5, 6))
    with pytest.raises(UnsupportedError, match="raises ZeroDivisionError"):
        invariance(lambda a, b: 1 // 0, (3, 4, 5), kind="matmul")
