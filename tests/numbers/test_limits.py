"""`fl.finfo` against NumPy's and ml_dtypes' own."""

import subprocess
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl

COUNTS = ("bits", "nmant", "nexp", "iexp", "minexp", "maxexp", "machep", "negep")
NUMBERS = ("max", "min", "tiny", "smallest_normal", "smallest_subnormal")
SMALL = [name for name in dir(ml_dtypes) if name.startswith(("float", "bfloat"))]


def check(info, theirs):
    for name in COUNTS:
        assert getattr(info, name) == getattr(theirs, name), name
    for name in NUMBERS:
        assert float(getattr(info, name)) == float(getattr(theirs, name)), name
    assert float(info.eps) == float(theirs.eps)
    assert float(info.epsneg) == float(theirs.epsneg)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_limits_are_numpys(kind):
    info = fl.finfo(kind)
    check(info, np.finfo(kind))
    assert info.precision == np.finfo(kind).precision
    assert kind(float(info.resolution)) == np.finfo(kind).resolution


@pytest.mark.parametrize("name", SMALL)
def test_the_limits_are_those_of_ml_dtypes(name):
    kind = getattr(ml_dtypes, name)
    check(fl.finfo(np.dtype(kind)), ml_dtypes.finfo(kind))


def test_one_is_eps_below_its_successor_and_epsneg_above_its_predecessor():
    for name in ("e4m3", "e5m2", "e2m1", "e3m2", "e2m3", "bf16", "fp16", "fp32", "fp64", "binary128", "e8m0", "x87"):
        one, info = fl.encode(1, name), fl.finfo(name)
        assert one.next_up.exact.as_fraction() - 1 == info.eps, name
        assert 1 - one.next_down.exact.as_fraction() == info.epsneg, name


def test_what_has_a_format_has_limits():
    assert fl.finfo(fl.FloatArray([1.0], "e5m2")) == fl.finfo("e5m2") == fl.finfo(fl.encode(1, "e5m2"))
    assert fl.finfo(float).max == fl.finfo("fp64").max
    assert fl.finfo("binary128").eps == Fraction(1, 1 << 112)
    assert repr(fl.finfo("fp16")) == "FloatInfo(binary16, bits=16, nmant=10, nexp=5, minexp=-14, maxexp=16)"
    for wrong in (np.int8, 3, None, np.dtype("U2")):
        with pytest.raises(fl.FormatError, match="neither a format nor a dtype of floats"):
            fl.finfo(wrong)


def test_limits_need_no_numpy():
    script = "import sys, floatlab; floatlab.finfo('e4m3').max; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
