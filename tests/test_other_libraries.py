"""Results of other libraries: they agree with the correctly rounded datum wherever they should."""

import importlib.util
import json
import math
import random
import sys

import pytest

from floatlab import decode, encode, parse_format
from floatlab.errors import FloatlabError, MissingPartError
from floatlab.other_libraries import LIBRARIES, ask, parse_libraries

PAIRS = [(library, name) for library, names in LIBRARIES.items() for name in names]


def installed(library):
    return importlib.util.find_spec(library) is not None


def values_near(format, count=300):
    """Return floats on and between the numbers of a format: each number, the quarters of gaps, and the ties."""
    draw = random.Random(format.name)
    small = format.width <= 8
    for code in range(1 << format.width) if small else [draw.randrange(1 << format.width) for _ in range(count)]:
        datum = decode(code, format)
        if not datum.is_finite:
            continue
        here = float(datum)
        yield here
        above = datum.next_up
        if above is not None and above.is_finite:
            gap = float(above) - here
            if math.isfinite(gap):
                yield from (here + gap * part for part in (0.25, 0.5, 0.75))


@pytest.mark.parametrize(("library", "name"), PAIRS)
def test_a_library_rounds_correctly(library, name):
    pytest.importorskip(library)
    format = parse_format(name)
    extremes = [math.inf, -math.inf, 1e300, -1e300, 1e-300, 0.0, -0.0]
    if name == "e8m0fnu":
        # No zero and no sign: ml_dtypes gives NaN for zero, floatlab the smallest (--absent says which),
        # and below 2^-126 ml_dtypes rounds binary32's subnormals away from zero.
        extremes = [math.inf, 1e300]
    for value in [*values_near(format), *extremes]:
        if name == "e8m0fnu" and abs(value) < 2.0**-126:
            continue
        opinion = ask(library, name, value)
        if opinion.code is None:
            pytest.skip(f"{library} {opinion.version} has no {LIBRARIES[library][name]}")
        # torch saturates where OCP's non-saturating conversion gives NaN or infinity: a choice, not an error
        if library == "torch" and abs(value) > float(decode(format.largest_magnitude, format)):
            continue
        assert hex(opinion.code) == hex(encode(value, format).code), value.hex()


@pytest.mark.parametrize(("library", "name"), PAIRS)
def test_nan_stays_nan_where_there_is_one(library, name):
    pytest.importorskip(library)
    format = parse_format(name)
    opinion = ask(library, name, math.nan)
    if opinion.code is not None and format.nans:
        assert decode(opinion.code, format).is_nan


def test_a_format_that_a_library_does_not_have():
    pytest.importorskip("numpy")
    opinion = ask("numpy", "bfloat16", 1.0)
    assert (opinion.library, opinion.type_name, opinion.code) == ("numpy", None, None)
    assert opinion.version


def test_the_version_is_the_librarys_own():
    numpy = pytest.importorskip("numpy")
    assert ask("numpy", "binary16", 0.1).version == numpy.__version__


def test_overflow_in_a_library_warns_nobody():
    # filterwarnings=error: a RuntimeWarning of numpy would fail this test.
    pytest.importorskip("numpy")
    assert ask("numpy", "binary16", 1e300).code == 0x7C00
    assert ask("numpy", "binary16", 1e-300).code == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_that_is_not_installed_is_named_with_its_line(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingPartError, match=f"^--like {library} needs {library}: pip install {library}$"):
        ask(library, "binary16", 1.0)


def test_library_names_are_forgiving_and_checked():
    assert parse_libraries(("NumPy", " ml-dtypes ", "TORCH")) == ("numpy", "ml_dtypes", "torch")
    with pytest.raises(FloatlabError, match=r"not 'nunpy'; did you mean 'numpy'\?"):
        parse_libraries(("nunpy",))
    with pytest.raises(FloatlabError, match="not ''"):
        parse_libraries(("numpy", ""))


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("without_torch")
def test_show_like_a_missing_library_says_the_rest_and_is_done(capsys):
    from floatlab.cli.main import main

    pytest.importorskip("numpy")
    assert main(["show", "0.1", "0.2", "--fp16", "--like", "numpy,torch"]) == 0
    out, err = capsys.readouterr()
    assert err == "floatlab: --like torch needs torch: pip install torch\n"
    assert "the same bits" in out
    assert "not installed: pip install torch" in out


@pytest.mark.usefixtures("without_torch")
def test_several_values_and_formats_tell_of_a_missing_library_once(capsys):
    from floatlab.cli.main import main

    assert main(["show", "0.1", "0.2", "--fp16", "--bf16", "--like", "torch", "--quiet"]) == 3
    assert capsys.readouterr() == (
        "0.1\n0.1\n0.2\n0.2\n",
        "floatlab: --like torch needs torch: pip install torch\n",
    )


def test_show_like_in_json(capsys):
    from floatlab.cli.main import main

    pytest.importorskip("ml_dtypes")
    assert main(["show", "0.3", "--e4m3", "--like", "numpy,ml-dtypes", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    numpy, ml_dtypes = json.loads(out)["like"]
    assert (numpy["library"], numpy["type"], numpy["result"], numpy["same"]) == ("numpy", None, None, None)
    assert (ml_dtypes["type"], ml_dtypes["same"]) == ("float8_e4m3fn", True)
    assert ml_dtypes["result"]["code"] == json.loads(out)["result"]["code"]


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        # 1 + 2^-11 is a tie; binary64 cannot represent a number just above it, so the library rounds to even.
        (["1.00048828125000000000000001", "--fp16"], "rounds twice: to binary64, then here"),
        (["0.1", "--fp16"], "the same bits"),
        (["0.1", "--fp16", "-r", "RTP"], "differs"),
        (["snan", "--fp16"], "a NaN with other bits"),
        (["0.1", "--bf16"], "has no such type"),
    ],
)
def test_a_difference_is_explained(capsys, words, verdict):
    from floatlab.cli.main import main

    pytest.importorskip("numpy")
    assert main(["show", *words, "--like", "numpy", "--width", "120"]) == 0
    assert verdict in capsys.readouterr().out


def test_a_code_has_no_other_opinion(capsys):
    from floatlab.cli.main import main

    assert main(["show", "bits:0x3c00", "--like", "numpy"]) == 2
    assert "takes a number to round, not a code" in capsys.readouterr().err
