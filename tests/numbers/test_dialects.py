"""Dialects: results that the documents state, and an installed library."""

import numpy as np
import pytest

from floatlab import Context, ContextError, convert, decode, encode, parse_format
from floatlab.arrays.conversion import decode as values_of
from floatlab.arrays.conversion import encode as codes_of
from floatlab.numbers.dialects import DIALECTS, dialects_of, parse_dialect

# dialect, format: codes of 464, 465, −1e9, ∞, −∞, NaN. 464 is the tie beyond e4m3's largest number, 448.
STATED = {
    # Arm ARM DDI 0487, A1.5.5: OSC = 0 gives NaN with the sign in e4m3, ∞ in e5m2; OSC = 1 the largest number.
    ("arm-fp8", "e4m3"): (0x7E, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F),
    ("arm-fp8", "e5m2"): (0x5F, 0x5F, 0xFC, 0x7C, 0xFC, 0x7E),
    ("arm-fp8-sat", "e4m3"): (0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7F),
    ("arm-fp8-sat", "e5m2"): (0x5F, 0x5F, 0xFB, 0x7B, 0xFB, 0x7E),
    # Zvfofp8min 0.2.1: the canonical NaN is 0x7f in both formats, also for infinite results in e4m3.
    ("riscv-zvfofp8min", "e4m3"): (0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x7F),
    ("riscv-zvfofp8min", "e5m2"): (0x5F, 0x5F, 0xFC, 0x7C, 0xFC, 0x7F),
    ("riscv-zvfofp8min-sat", "e4m3"): (0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7F),
    ("riscv-zvfofp8min-sat", "e5m2"): (0x5F, 0x5F, 0xFB, 0x7B, 0xFB, 0x7F),
    # AVX10.2: the forms with S saturate finite numbers only; ∞ is a NaN in hf8, and stays ∞ in bf8.
    ("x86-avx10", "e4m3"): (0x7E, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F),
    ("x86-avx10", "e5m2"): (0x5F, 0x5F, 0xFC, 0x7C, 0xFC, 0x7E),
    ("x86-avx10-sat", "e4m3"): (0x7E, 0x7E, 0xFE, 0x7F, 0xFF, 0x7F),
    ("x86-avx10-sat", "e5m2"): (0x5F, 0x5F, 0xFB, 0x7C, 0xFC, 0x7E),
    ("cuda", "e4m3"): (0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7F),
    ("cuda", "e5m2"): (0x5F, 0x5F, 0xFB, 0x7B, 0xFB, 0x7E),
    ("cuda", "ue5m3"): (0xBE, 0xBF, 0xFE, 0xFE, 0xFE, 0xFF),
    ("cuda-nosat", "e4m3"): (0x7E, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F),
    ("cuda-nosat", "ue5m3"): (0xBE, 0xBF, 0xFF, 0xFF, 0xFF, 0xFF),
    ("ocp", "e4m3"): (0x7E, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F),
    ("ocp-sat", "e5m2"): (0x5F, 0x5F, 0xFB, 0x7B, 0xFB, 0x7E),
    ("torch", "e4m3"): (0x7E, 0x7E, 0xFE, 0x7E, 0xFE, 0x7F),
    ("torch", "e5m2"): (0x5F, 0x5F, 0xFC, 0x7C, 0xFC, 0x7E),
    ("torch", "e8m0"): (0x88, 0x88, 0x9D, 0xFF, 0xFF, 0xFF),
    ("ml_dtypes", "e8m0"): (0x88, 0x88, 0xFF, 0xFF, 0xFF, 0xFF),
}
GIVEN = ("464", "465", "-1e9", "inf", "-inf", "nan")


@pytest.mark.parametrize(("name", "kind"), STATED)
def test_what_the_documents_state(name, kind):
    format = parse_format(kind)
    context = parse_dialect(name).context(format, Context())
    assert tuple(encode(text, format, context).code for text in GIVEN) == STATED[name, kind]
    singles = np.array([float(text) for text in GIVEN], np.float32)
    for lane in ("numpy", "scalar", None):
        assert tuple(codes_of(singles, format, context=context, lane=lane).tolist()) == STATED[name, kind]


def test_the_canonical_nan_of_risc_v_takes_every_payload_and_sign():
    context = parse_dialect("riscv-zvfofp8min").context(parse_format("e5m2"), Context())
    for code in (0xFE01, 0x7E01, 0xFC01, 0x7FFF):
        assert convert(decode(code, "fp16"), "e5m2", context).result.code == 0x7F
        half = np.array([code], np.uint16).view(np.float16)
        assert codes_of(half, "e5m2", context=context).tolist() == [0x7F]
    assert convert(decode(0xFE01, "fp32"), "fp16", Context(nan="riscv-fp8")).result == decode(0, "fp16")


def test_every_row_is_complete_and_found_by_its_name():
    for dialect in DIALECTS:
        assert parse_dialect(dialect.name.upper()) is dialect
        assert dialect.source
        for name in dialect.formats:
            format = parse_format(name)
            assert format.name == name
            assert dialect in dialects_of(format)
            assert dialect.context(format, Context("RTZ")).rounding.value == "RTZ"
    assert dialects_of(parse_format("fp16")) == []
    assert parse_dialect("cuda").context(parse_format("fp16"), Context("RTZ")) == Context("RTZ")
    with pytest.raises(ContextError, match="did you mean 'cuda'"):
        parse_dialect("cud")


def test_ml_dtypes_gives_these_codes_for_every_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dialect = parse_dialect("ml_dtypes")
    singles = values_of(np.arange(1 << 16, dtype=np.uint16), "bf16", np.float32)
    names = {"e4m3_ieee": "float8_e4m3", "e3m4": "float8_e3m4"}
    for name in dialect.formats:
        with np.errstate(all="ignore"):
            theirs = singles.astype(getattr(ml_dtypes, names.get(name, f"float8_{name}"))).view(np.uint8)
        ours = codes_of(singles, name, context=dialect.context(parse_format(name), Context()))
        same = (ours == theirs) | np.isnan(singles)
        if name == "e8m0fnu":  # ml_dtypes rounds subnormal numbers wrongly (docs/arrays-and-peers.md)
            same |= (np.abs(singles) < 2.0**-126) & (singles != 0)
        assert same.all(), (name, singles[~same][:3])
