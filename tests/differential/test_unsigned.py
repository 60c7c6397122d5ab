"""Every line of the shared oracle folder formats2/ue: CUDA's unsigned scale formats."""

import pytest

from floatlab import Context, decode, parse_format
from floatlab.numbers import convert
from tests.differential import shared
from tests.differential.test_p3109 import exact_of

pytestmark = shared.needs_folder

DIRECTIONS = {"near": "RNE", "zero": "RTZ", "up": "RTP", "down": "RTN"}


@pytest.mark.parametrize("name", ["ue5m3", "ue4m3", "ue8m0"])
def test_values(name):
    count = 0
    for line in shared.lines(f"formats2/ue/{name}_values.txt.gz"):
        code, text = line.split()
        datum = decode(int(code, 16), name)
        assert datum.is_nan if text == "nan" else datum.exact == exact_of(text), line
        count += 1
    assert count > 60


@pytest.mark.parametrize("name", ["ue5m3", "ue8m0"])
def test_conversions_by_cuda_which_drops_the_sign(name):
    contexts = {
        (mode, kind): Context(direction, overflow=overflow, negative="drop")
        for mode, direction in DIRECTIONS.items()
        for kind, overflow in (("sat", "saturate"), ("nosat", "native"))
    }
    single, format = parse_format("fp32"), parse_format(name)
    count = 0
    for line in shared.lines(f"formats2/ue/f32_to_{name}.txt.gz"):
        word, mode, kind, code = line.split()
        found = convert(decode(int(word, 16), single), format, contexts[mode, kind]).result.code
        assert found == int(code, 16), (line, hex(found))
        count += 1
    assert count > 4000
