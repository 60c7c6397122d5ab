"""The rules of libraries on arrays, by name: against ml_dtypes and PyTorch themselves."""

import numpy as np
import pytest

from floatlab import Context, parse_format
from floatlab.arrays import decode, encode, quantize
from floatlab.errors import ContextError, UnsupportedError
from floatlab.numbers.dialects import DIALECTS, parse_dialect

OWN = {"e4m3_ieee": "float8_e4m3"}  # names that differ from float8_ and floatlab's


def numbers(generator, format=""):
    rng = np.random.default_rng(generator.getrandbits(64))
    edges = [0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 480, 57344, 61440, 1e30, -1e30, 240, 248, 2.0**-10]
    bits = rng.integers(0, 1 << 32, 20000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.standard_normal(20000) * 2.0 ** rng.integers(-20, 20, 20000)).astype(np.float32)
    found = np.concatenate([np.float32(edges), bits, near])
    # ml_dtypes 0.6 and PyTorch round subnormal numbers of float32 up into e8m0, and not to nearest.
    return found[(found == 0) | ~(np.abs(found) < 2.0**-126)] if format == "e8m0fnu" else found


def assert_same(x, format, theirs, dialect):
    """Codes are equal; NaNs may have other payloads, since libraries do not keep those of IEEE formats."""
    ours = encode(x, format, dialect=dialect)
    nan = np.isnan(decode(ours, format)) & np.isnan(decode(theirs, format))
    wrong = (ours != theirs) & ~nan
    assert not wrong.any(), (format, x[wrong][:3], ours[wrong][:3], theirs[wrong][:3])


@pytest.mark.parametrize("format", parse_dialect("ml_dtypes").formats)
def test_ml_dtypes(format, generator):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numbers(generator, format)
    with np.errstate(all="ignore"):
        theirs = x.astype(getattr(ml_dtypes, OWN.get(format, f"float8_{format}"))).view(np.uint8)
    assert_same(x, format, theirs, "ml_dtypes")


@pytest.mark.parametrize("format", parse_dialect("torch").formats)
def test_torch(format, generator):
    torch = pytest.importorskip("torch")
    x = numbers(generator, format)
    theirs = torch.from_numpy(x).to(getattr(torch, f"float8_{format}")).view(torch.uint8).numpy()
    assert_same(x, format, theirs, "torch")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_arrays_follow_the_context_of_a_dialect(dialect, generator):
    x = numbers(generator)[:2000]
    for format in dialect.formats:
        rules = dialect.context(parse_format(format), Context("RTZ"))
        by_name, values = (call(x, format, "RTZ", dialect=dialect.name) for call in (encode, quantize))
        assert (by_name == encode(x, format, context=rules)).all()
        assert np.array_equal(values, quantize(x, format, context=rules), equal_nan=True)


def test_what_a_dialect_fixes():
    with pytest.raises(UnsupportedError, match="overflow is fixed by the dialect torch"):
        encode([1.0], "e4m3", overflow="saturate", dialect="torch")
    with pytest.raises(UnsupportedError, match="dialect is not for block formats"):
        encode([1.0] * 32, "mxfp4", dialect="torch")
    with pytest.raises(ContextError, match="did you mean 'torch'"):
        encode([1.0], "e4m3", dialect="torh")
