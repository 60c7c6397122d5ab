"""The JSON of answers: the names, the order and the types of its members."""

import json
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from floatlab import Context, decode, read
from floatlab.formats import CATALOG
from floatlab.numbers.reading import parse_literal, read_literal
from floatlab.verbs.formats.json import SUMMARY
from floatlab.verbs.from_json import document_of
from floatlab.wire.codecs import Scope, integer
from floatlab.wire.derivations import DATUM as DATUM_SCHEMA
from floatlab.wire.schema import write_document

DATUM = {
    "format": "binary16",
    "code": "0x3c7c",
    "sign": 0,
    "biased_exponent": 15,
    "trailing_significand": 124,
    "class": "positiveNormal",
    "exact": "1.12109375",
    "hex": "0x1.1fp+0",
    "shortest": "1.121",
}


def _written(datum):
    return DATUM_SCHEMA.write(datum, Scope())


def test_a_datum_is_written_as_the_interface_shows_it():
    assert _written(decode(0x3C7C, "fp16")) == DATUM


def test_a_result_has_every_member_and_no_other():
    wire = document_of(read("1.12156456132", "fp16"))
    members = ["schema", "operation", "format", "context", "operands", "steps", "result", "flags", "error"]
    assert list(wire) == members
    assert wire["result"] == DATUM
    assert wire["flags"] == ["inexact"]
    assert wire["error"] == {"exact": "-5885141500/12500000000000", "ulps": "-0.48211079168"} or (
        Fraction(wire["error"]["exact"]) == Fraction("1.12109375") - Fraction("1.12156456132")
    )
    assert wire["operands"][0]["literal"] == "1.12156456132"
    assert json.loads(json.dumps(wire)) == wire


def test_flags_come_in_the_stated_order():
    wire = document_of(read("1e-30", "fp16"))
    assert wire["flags"] == ["underflow", "inexact"]


@pytest.mark.parametrize("n", [0, 1, -5, 2**53, -(2**53)])
def test_integers_that_binary64_holds_are_numbers(n):
    assert integer(n) == n


@pytest.mark.parametrize("n", [2**53 + 1, -(2**53) - 1, 10**4000])
def test_larger_integers_are_strings(n):
    written = integer(n)
    assert isinstance(written, str)
    assert read(written, "e19m236").result == read(n, "e19m236").result


def test_an_irrational_looking_fraction_keeps_its_exact_error():
    wire = document_of(read("1/3", "fp16"))
    assert wire["error"] == {"exact": "-1/12288", "ulps": "-1/3"}


def test_an_error_too_long_to_write_is_symbolic():
    wire = document_of(read_literal(parse_literal("1e-999999999"), decode(0, "fp16").format))
    assert wire["error"]["exact"] == "-1e-999999999"


def test_there_is_no_error_where_the_result_is_not_a_number():
    assert document_of(read("1e9", "fp16"))["error"] == {"exact": None, "ulps": None}


def test_x87_shows_its_integer_bit():
    assert _written(decode(0x3FFF8000000000000000, "x87"))["integer_bit"] == 1
    assert _written(decode(0x3FFF0000000000000000, "x87"))["class"] == "unsupported"


def test_codes_are_padded_to_the_formats_width():
    assert _written(decode(1, "tf32"))["code"] == "0x00001"
    assert _written(decode(1, "fp128"))["code"] == "0x" + "1".zfill(32)


def test_binary128s_smallest_number_is_written_in_full():
    exact = _written(decode(1, "fp128"))["exact"]
    with localcontext(prec=12_000, Emin=-99_999):
        assert Decimal(exact) == Decimal(2) ** -16494


def test_what_no_reader_could_hold_is_symbolic():
    assert _written(decode(1, "e19m236"))["exact"] == "1 * 2^-262378"


@pytest.mark.parametrize("row", CATALOG, ids=lambda row: row.format.name)
def test_a_formats_codes_add_up(row):
    wire = json.loads(json.dumps(write_document(SUMMARY, row)))
    assert sum(int(count) for count in wire["codes"].values()) == 2 ** wire["width"]


def test_the_context_spells_out_every_choice():
    wire = document_of(read("1", "fp16", Context(rounding="minMag", overflow="saturate", seed=2**60)))
    assert wire["context"]["rounding"] == "RTZ"
    assert wire["context"]["overflow"] == "saturate"
    assert wire["context"]["seed"] == str(2**60)
