"""Formats given by a table: every code and every boundary, compared with `table_oracle`."""

import ast
import inspect
import pickle
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from floatlab import (  # fmt: skip
    Context,
    Datum,
    FormatError,
    UnsupportedError,
    add,
    arrays,
    convert,
    decode,
    encode,
    finfo,
    parse_format,
    read,
)
from floatlab.formats.format import CatalogRow
from floatlab.formats.table_catalog import TABLE_NAMES, TABLES, ValueList
from floatlab.numbers.intervals import preimage
from tests import table_oracle

NAMES = [row.format.name for row in TABLES]
RATIONAL = [row.format.name for row in TABLES if row.format.width <= 8 and not row.format.is_irrational]
WIDE = [row.format.name for row in TABLES if row.format.width == 16 and not row.format.is_irrational]
EPSILON = Fraction(1, 1 << 400)


def canonical(fmt):
    """Return the finite data of a format; of longer ones, a sample (`tests/exhaustive` has all codes of 16 bits)."""
    step = 1 if fmt.width <= 8 else 101 if fmt.width <= 16 else 12_345_701
    return [d for code in range(0, 1 << fmt.width, step) if (d := Datum(fmt, code)).is_finite]


def test_the_oracle_imports_nothing_of_floatlab():
    tree = ast.parse(inspect.getsource(table_oracle))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any(name.startswith("floatlab") for name in imported)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", RATIONAL + WIDE)
def test_every_code_means_what_the_definition_says(name):
    fmt, table = parse_format(name), table_oracle.table(name)
    meant = dict(zip(table.codes, table.values, strict=True))
    special = {table.nan, table.negative_zero, *(table.infinity or ())} - {None}
    for code in {*range(0, 1 << fmt.width, 1 if fmt.width <= 8 else 11), *special}:
        datum = decode(code, fmt)
        if code in meant:
            assert datum.exact == meant[code]
        elif code == table.nan:
            assert datum.is_nan
        elif table.infinity and code in table.infinity:
            assert datum.is_infinite
            assert datum.sign_bit == (code == table.infinity[0])
        else:
            assert code == table.negative_zero
            assert (datum.exact.as_fraction(), datum.sign_bit) == (0, 1)


@pytest.mark.parametrize("name", NAMES)
def test_codes_come_back_from_their_values_and_count_up_with_them(name):
    fmt = parse_format(name)
    data = sorted(canonical(fmt), key=lambda datum: datum.ordinal)
    for datum in data:
        value = datum if datum.symbol else datum.exact
        for context in ("RNE", "RTZ", "RTP", "RTN", "RAZ", "RTO", Context("SR", seed=3)):
            assert encode(value, fmt, context) == datum
        assert fmt.compose(bool(datum.sign_bit), datum.magnitude) == datum.code
    for low, high in pairwise(data):
        assert low.bounds(100)[1] < high.bounds(100)[0] or not low.exact
    if fmt.width <= 8:
        for low, high in pairwise(d for d in data if d.ordinal or not d.sign_bit):
            assert low.next_up.ordinal == high.ordinal
            assert high.next_down.ordinal == low.ordinal


@pytest.mark.parametrize("name", RATIONAL)
def test_every_boundary_and_both_sides_of_it(name):
    fmt, table = parse_format(name), table_oracle.table(name)
    points = [*table.boundaries, table.values[0] * 3, table.values[-1] * 3]
    points += [] if table.overflow is None else [table.overflow, -table.overflow]
    for x in points:
        for near in (x, x * (1 + EPSILON), x * (1 - EPSILON)):
            if near:
                assert encode(near, fmt).code == table_oracle.nearest(table, near), near
    for low, high in pairwise(table.values):
        for part in (EPSILON, Fraction(1, 3), 1 - EPSILON):
            x = low + (high - low) * part
            assert encode(x, fmt).code == table_oracle.nearest(table, x)
            for direction in ("RTZ", "RAZ", "RTP", "RTN"):
                assert encode(x, fmt, direction).code == table_oracle.directed(table, x, direction)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", WIDE)
def test_boundaries_of_wide_tables(name):
    fmt, table = parse_format(name), table_oracle.table(name)
    for i in range(0, len(table.boundaries), 61):
        x, low, high = table.boundaries[i], table.codes[i], table.codes[i + 1]
        if x:
            outward = abs(x) * EPSILON
            assert encode(x, fmt).code == (low if low % 2 == 0 else high)
            assert encode(x + outward, fmt).code == high
            assert encode(x - outward, fmt).code == low


@pytest.mark.parametrize("name", RATIONAL)
def test_rounding_is_monotone_in_every_direction(name):
    fmt = parse_format(name)
    values = [datum.exact.as_fraction() for datum in canonical(fmt)]
    points = sorted({x * part for x in values for part in (Fraction(1, 3), 1, Fraction(21, 20), Fraction(3, 2), 5)})
    for direction in ("RNE", "RNA", "RTZ", "RAZ", "RTP", "RTN"):
        ranks = [encode(x, fmt, direction).ordinal for x in points]
        assert ranks == sorted(ranks), direction


@pytest.mark.parametrize("name", NAMES)
def test_shortest_decimals_read_back(name):
    for datum in canonical(parse_format(name))[::3]:
        assert encode(str(datum).rpartition("= ")[2].removesuffix(")"), name) == datum


def test_numbers_beyond_the_range_go_to_its_ends_and_never_to_zero():
    for name in ("posit8", "posit16", "takum_linear8", "takum_log16"):
        fmt = parse_format(name)
        most = (1 << (fmt.width - 1)) - 1
        for text, code in (("1e99", most), ("-1e99", most + 2), ("1e-99", 1), ("-1e-99", (1 << fmt.width) - 1)):
            assert encode(text, fmt).code == code
        assert encode("1e-99", fmt, "RTZ").code == 0
        assert encode("inf", fmt).is_nan
        assert encode("inf", fmt, Context(overflow="saturate")).code == most
    assert encode("1e99", "hif8").is_infinite
    assert encode("1e99", "hif8", Context(overflow="saturate")).code == 0x6E
    assert encode("-7", "nf4").code == 0
    assert encode("7", "nf4", "RTP").code == 15


def test_flags_of_table_formats():
    assert read("1e99", "posit8").flags.names == ["overflow", "inexact"]
    assert read("1e-99", "posit8").flags.names == ["underflow", "inexact"]
    assert read("nan", "nf4").flags.names == ["invalid"]
    assert read("1", "takum_log8").flags.names == []


def test_the_limits():
    assert finfo("posit16").eps == Fraction(1, 2048)
    assert finfo("posit16").max.code == 0x7FFF
    assert finfo("hif8").smallest_subnormal.exact == Fraction(1, 1 << 22)
    assert finfo("hif8").smallest_normal.exact == Fraction(1, 1 << 15)
    assert finfo("nf4").min.exact == -1
    with pytest.raises(UnsupportedError, match="no number above 1"):
        finfo("nf4").eps  # noqa: B018
    with pytest.raises(UnsupportedError, match="irrational"):
        finfo("takum_log8").eps  # noqa: B018


def test_logarithmic_takums_convert_with_one_rounding():
    datum = decode(0x43, "takum_log8")
    assert datum.symbol == "sqrt(e)^(3/8)"
    assert float(datum) == pytest.approx(2.718281828459045**0.1875, rel=1e-15)
    assert convert(datum, "fp16").flags.names == ["inexact"]
    assert convert(datum, "takum_log8").result == datum
    assert convert(datum, "takum_log16").result.code == 0x4300
    with pytest.raises(UnsupportedError, match="irrational"):
        datum.exact  # noqa: B018


@pytest.mark.parametrize("direction", ["RNE", "RNA"])
def test_a_logarithmic_takum_halfway_between_two_narrower_ones_is_a_tie(direction):
    # Rounding is by code: drop eight bits of a magnitude. The ends of the range are never exceeded.
    for rank in range(1, 127):
        for rest in (0x7F, 0x80, 0x81):
            up = rest > 0x80 or (rest == 0x80 and (rank % 2 == 1 or direction == "RNA"))
            for sign in (1, -1):
                datum = decode(sign * (rank << 8 | rest) & 0xFFFF, "takum_log16")
                done = convert(datum, "takum_log8", direction)
                assert done.result.code == sign * (rank + up) & 0xFF
                assert done.flags.names == ["inexact"]


def test_a_long_number_close_to_an_irrational_boundary_is_on_its_side():
    fmt, table = parse_format("takum_log8"), table_oracle.table("takum_log8")
    for boundary in table.boundaries[::9]:
        for bits in (60, 80, 120, 250):
            for x in (boundary * (1 + Fraction(1, 1 << bits)), boundary * (1 - Fraction(1, 1 << bits))):
                assert encode(x, fmt).code == table_oracle.nearest(table, x)


def test_the_row_in_contributing_is_a_whole_format(monkeypatch):
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    example = text.partition("### Add a format given by a table")[2].partition("```python\n")[2].partition("```")[0]
    known: dict = {"CatalogRow": CatalogRow, "ValueList": ValueList}
    exec(dedent(example), known)
    row = known["ROW"]
    monkeypatch.setitem(TABLE_NAMES, row.format.name, row)
    monkeypatch.setitem(table_oracle.LISTS, row.format.name, (known["POWERS"], "down"))
    fmt, table = parse_format(row.format.name), table_oracle.table(row.format.name)
    for x in [*table.values, *table.boundaries, *(Fraction(n, 100) for n in range(-130, 131))]:
        code = table_oracle.nearest(table, x)
        assert encode(x, fmt).code in ((code, table.negative_zero) if not x else (code,))
        for lane in ("scalar", "numpy", None):
            assert arrays.encode(np.float32([float(x)]), fmt, lane=lane)[0] == encode(float(x), fmt).code
    for a, b in product(range(1 << fmt.width), repeat=2):
        assert add(Datum(fmt, a), Datum(fmt, b)).result.code == table_oracle.operate(table, "add", a, b)


def test_names_and_pickles():
    assert parse_format("FP4-BNB").name == "bnb_fp4"
    assert parse_format("takum16").name == "takum_log16"
    with pytest.raises(FormatError, match="did you mean 'posit16'"):
        parse_format("posit17")
    for row in TABLES:
        assert pickle.loads(pickle.dumps(row.format)) == row.format


@pytest.mark.parametrize("direction", ["RNE", "RTP", "RTO"])
@pytest.mark.parametrize("name", ["hif8", "nf4", "posit8"])
def test_the_interval_of_a_number_ends_where_it_says(name, direction):
    fmt = parse_format(name)
    for code in range(1 << fmt.width):
        datum = Datum(fmt, code)
        interval = preimage(datum, direction)
        if interval is None:
            continue
        for end, closed, outward in ((interval.low, interval.low_closed, -1), (interval.high, interval.high_closed, 1)):
            if end is None:
                continue
            x = end.as_fraction()
            step = max(abs(x), Fraction(1, 1 << 300)) * EPSILON * outward
            assert (encode(x, fmt, direction) == datum) == closed or not x
            assert encode(x + step, fmt, direction) != datum
            assert interval.low == interval.high or encode(x - step, fmt, direction) == datum
