"""The functions of the extension return or raise an error for all arguments; see `fuzz_kernels` for longer runs."""

import pytest

from floatlab.arrays.lanes import compiled

if not compiled.is_built():
    pytest.skip("the extension was not built", allow_module_level=True)

from tests.arrays.fuzz_kernels import fuzz


def test_every_entry_is_called_with_anything():
    found = fuzz(2_500, seed=1)
    for name in ("run", "read_codes", "walk", "accumulate", "modes", "tally", "blocks"):
        assert found[name] > 10
        assert found[f"{name} refused"] > 10
    for name in ("narrow", "wide", "binades", "take", "elements"):
        assert found[name] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_million_calls(seed):
    assert sum(fuzz(100_000, seed).values()) == 100_000
