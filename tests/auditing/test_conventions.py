"""Conventions on small weights: each element is computed once more, one by one, as the convention's source says."""

import json

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.sources import HeldSource
from floatlab.auditing.ggml_blocks import _DECODERS
from floatlab.auditing.quantized import load_quantized
from floatlab.auditing.weight_streams import numbers, spread, unswizzled
from floatlab.files.gguf import block_of
from tests.auditing.gguf_making import entry, gguf
from tests.auditing.making import write_checkpoint

E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-each for each in E2M1]


def e4m3(code):
    """Return the value of a code of E4M3 that is not NaN."""
    exponent, digits = int(code) >> 3 & 15, int(code) & 7
    size = digits * 2.0**-9 if exponent == 0 else (8 + digits) * 2.0 ** (exponent - 10)
    return -size if int(code) & 0x80 else size


def read(tmp_path, tensors, config=None, metadata=None, name="l.weight"):
    """Return the numbers of a weight in a new checkpoint, read in pieces of odd sizes, and its `Weight`."""
    path = write_checkpoint(tmp_path / "model.safetensors", tensors, config, metadata)
    with load_quantized(path) as found:
        assert not found.unreadable
        weight = found.weights[name]
        with weight.open() as source:
            whole = source.read(0, source.size)
            pieces = list(source.blocks(7))
            assert np.array_equal(np.concatenate(pieces), whole, equal_nan=True)
            assert all(each.dtype == np.float64 for each in pieces)
        return whole.reshape(weight.shape), weight


def draw(shape, most=256, seed=1):
    return np.random.default_rng(seed).integers(0, most, shape, dtype=np.uint8)


@pytest.mark.parametrize("divides", [False, True])
def test_nvfp4_multiplies_or_divides_by_the_scale_of_the_tensor(tmp_path, divides):
    codes, scales, whole = draw((3, 16)), draw((3, 2), 0x7F, 2), np.float32(0.3)
    if divides:
        parts = {"l.weight_packed": ("U8", codes), "l.weight_scale": ("F8_E4M3", scales)}
        parts["l.weight_global_scale"] = ("F32", whole.reshape(1))
    else:
        parts = {"l.weight": ("U8", codes), "l.weight_scale": ("F8_E4M3", scales), "l.weight_scale_2": ("F32", whole)}
    values, weight = read(tmp_path, parts)
    assert weight.convention == ("compressed-tensors NVFP4" if divides else "ModelOpt NVFP4")
    for (row, column), value in np.ndenumerate(values):
        nibble = codes[row, column // 2] >> (4 if column % 2 else 0) & 15
        expected = E2M1[nibble] * e4m3(scales[row, column // 16])
        assert value == (expected / float(whole) if divides else expected * float(whole))


@pytest.mark.parametrize(
    ("scale", "block"),
    [((), (5, 6)), ((1,), (5, 6)), ((5,), (1, 6)), ((5, 1), (1, 6)), ((3, 3), (2, 2)), ((1, 1), (5, 6))],
)
@pytest.mark.parametrize("kind", ["F8_E4M3", "I8"])
def test_scales_per_tensor_row_and_block(tmp_path, scale, block, kind):
    codes = draw((5, 6), 0x7F)
    factors = np.arange(1, 1 + int(np.prod(scale)), dtype=np.float32).reshape(scale) / 4
    config = {"quant_method": "fp8", "weight_block_size": [2, 2]} if scale == (3, 3) else None
    values, weight = read(tmp_path, {"l.weight": (kind, codes), "l.weight_scale": ("F32", factors)}, config)
    tiles = factors.reshape(-(-5 // block[0]), -(-6 // block[1]))
    for (row, column), value in np.ndenumerate(values):
        code = float(codes[row, column]) if kind == "I8" else e4m3(codes[row, column])
        assert value == code * tiles[row // block[0], column // block[1]]
    assert ("per 2×2" in weight.formula) == (scale == (3, 3))


def test_a_scale_for_each_expert(tmp_path):
    codes, scales = draw((3, 4, 5), 0x7F), np.float32([1, 2, 4])
    values, _ = read(tmp_path, {"l.weight": ("F8_E4M3", codes), "l.weight_scale": ("F32", scales)})
    assert all(value == e4m3(codes[place]) * scales[place[0]] for place, value in np.ndenumerate(values))


def test_blocks_of_experts_that_do_not_divide(tmp_path):
    codes, scales = draw((2, 3, 5), 0x7F), np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    config = {"quant_method": "fp8", "weight_block_size": [2, 2]}
    values, _ = read(tmp_path, {"l.weight": ("F8_E4M3", codes), "l.weight_scale_inv": ("F32", scales)}, config)
    for (expert, row, column), value in np.ndenumerate(values):
        assert value == e4m3(codes[expert, row, column]) * scales[expert, row // 2, column // 2]


def test_blocks_that_nothing_states_are_called_assumed(tmp_path):
    tiles = {"l.weight": ("F8_E4M3", draw((130, 3), 0x7F)), "l.weight_scale_inv": ("F32", np.ones((2, 1), np.float32))}
    assert read(tmp_path, tiles)[1].evidence == "names and shapes, blocks of 128×128 assumed"


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_integers_of_compressed_tensors(tmp_path, bits, has_zeros):
    rows, columns, size, each = 5, 24, 8, 32 // bits
    codes = draw((rows, columns), 1 << bits)
    zeros = draw((rows, columns // size), 1 << bits, 3)
    scales = np.random.default_rng(4).random((rows, columns // size)).astype(np.float32)

    def words(array):
        """Pack the last axis into words, the first code lowest."""
        packed = np.zeros((array.shape[0], -(-array.shape[1] // each)), np.uint32)
        for (row, column), code in np.ndenumerate(array):
            packed[row, column // each] |= np.uint32(int(code) << bits * (column % each))
        return packed.view(np.int32)

    parts = {
        "l.weight_packed": ("I32", words(codes)), "l.weight_scale": ("F32", scales),
        "l.weight_shape": ("I64", np.int64([rows, columns])),
    }  # fmt: skip
    if has_zeros:
        parts["l.weight_zero_point"] = ("I32", words(zeros.T).T.copy())
    config = {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": bits}}}}
    values, weight = read(tmp_path, parts, config)
    assert weight.convention == f"compressed-tensors INT{bits}"
    for (row, column), value in np.ndenumerate(values):
        zero = int(zeros[row, column // size]) if has_zeros else 1 << bits - 1
        assert value == (int(codes[row, column]) - zero) * float(scales[row, column // size])


@pytest.mark.parametrize("version", ["gptq", "gptq_v2"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gptq_with_its_own_order_of_groups(tmp_path, version, bits):
    inputs, outputs, groups, each = 32, 16, 4, 32 // bits
    codes, zeros = draw((inputs, outputs), 1 << bits), draw((groups, outputs), 1 << bits, 2)
    order = np.random.default_rng(3).integers(0, groups, inputs).astype(np.int32)
    scales = np.random.default_rng(4).random((groups, outputs)).astype(np.float16)
    qweight, qzeros = np.zeros((inputs // each, outputs), np.uint32), np.zeros((groups, outputs // each), np.uint32)
    for (i, o), code in np.ndenumerate(codes):
        qweight[i // each, o] |= np.uint32(int(code) << bits * (i % each))
    for (g, o), code in np.ndenumerate(zeros):
        qzeros[g, o // each] |= np.uint32(int(code) << bits * (o % each))
    parts = {
        "l.qweight": ("I32", qweight), "l.qzeros": ("I32", qzeros), "l.scales": ("F16", scales),
        "l.g_idx": ("I32", order),
    }  # fmt: skip
    config = {"quant_method": "gptq", "bits": bits, "checkpoint_format": version, "group_size": -1}
    values, _ = read(tmp_path, parts, config)
    added = 1 if version == "gptq" else 0
    for (o, i), value in np.ndenumerate(values):
        zero = (int(zeros[order[i], o]) + added) % (1 << bits)
        assert value == (int(codes[i, o]) - zero) * float(scales[order[i], o])


@pytest.mark.parametrize("is_double", [False, True])
def test_bitsandbytes_has_the_first_element_in_the_high_nibble(tmp_path, is_double):
    shape, size, inner = (5, 15), 16, 3
    codes, table = draw((38, 1)), np.sort(np.random.default_rng(2).random(16)).astype(np.float32)
    state = {"quant_type": "nf4", "blocksize": size, "shape": list(shape), "dtype": "float32"}
    parts = {"l.weight": ("U8", codes), "l.weight.quant_map": ("F32", table)}
    if is_double:
        state |= {"nested_blocksize": inner, "nested_offset": 0.125}
        absmax, nested = draw(5, seed=5), np.random.default_rng(6).random(256).astype(np.float32)
        scales = np.float32([0.5, 0.7])
        parts |= {
            "l.weight.absmax": ("U8", absmax), "l.weight.nested_quant_map": ("F32", nested),
            "l.weight.nested_absmax": ("F32", scales),
        }  # fmt: skip
        largest = [np.float32(nested[code] * scales[n // inner]) + np.float32(0.125) for n, code in enumerate(absmax)]
    else:
        largest = list(np.random.default_rng(3).random(5).astype(np.float32))
        parts["l.weight.absmax"] = ("F32", np.float32(largest))
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    parts["l.weight.quant_state.bitsandbytes__nf4"] = ("U8", text)
    values, _ = read(tmp_path, parts)
    for n, value in enumerate(values.ravel()):
        nibble = codes[n // 2, 0] >> (0 if n % 2 else 4) & 15
        assert value == float(table[nibble]) * float(largest[n // size])


def test_eight_bits_of_bitsandbytes(tmp_path):
    codes, largest = draw((3, 8)).view(np.int8), np.float32([0.1, 3, 7])
    values, weight = read(tmp_path, {"l.weight": ("I8", codes), "l.SCB": ("F32", largest)})
    assert weight.convention == "bitsandbytes INT8"
    for (row, column), value in np.ndenumerate(values):
        assert value == int(codes[row, column]) * float(largest[row]) / 127


def swizzled(scales):
    """Return scales in the layout of Blackwell's matrix units: tiles of 128 rows and 4 columns of 512 bytes each."""
    rows, columns = scales.shape
    padded = np.zeros((-(-rows // 128) * 128, -(-columns // 4) * 4), scales.dtype)
    padded[:rows, :columns] = scales
    tiles = padded.reshape(padded.shape[0] // 128, 4, 32, padded.shape[1] // 4, 4)  # row = tile, quarter, row of 32
    return tiles.transpose(0, 3, 2, 1, 4).reshape(padded.shape)


@pytest.mark.parametrize("kind", ["MXTensor", "NVFP4Tensor", "fp8", "Float8Tensor"])
@pytest.mark.parametrize("is_swizzled", [False, True])
def test_torchao(tmp_path, kind, is_swizzled):
    is_fp4, size = kind != "fp8", 16 if kind == "NVFP4Tensor" else 32
    rows, columns = 130, 5 * size
    codes = draw((rows, columns // 2) if is_fp4 else (rows, columns), 256 if is_fp4 else 0x7F)
    scales = draw((rows, 5), 0x7F, 2)
    data = {"is_swizzled_scales": is_swizzled, "block_size": size}
    if kind == "Float8Tensor":
        codes, scales = draw((rows, columns), 0x7F), np.random.default_rng(3).random((rows, 1)).astype(np.float32)
    else:
        data["elem_dtype"] = {"_type": "torch.dtype", "_data": "float4_e2m1fn_x2" if is_fp4 else "float8_e4m3fn"}
    said = {"_type": "MXTensor" if kind == "fp8" else kind, "_data": data}
    dtypes = {"NVFP4Tensor": ("U8", "F8_E4M3"), "MXTensor": ("U8", "F8_E8M0"), "fp8": ("F8_E4M3", "F8_E8M0")}
    dtype, scale_dtype = dtypes.get(kind, ("F8_E4M3", "F32"))
    placed = swizzled(scales) if is_swizzled and kind != "Float8Tensor" else scales
    parts = {"l._weight_qdata": (dtype, codes), "l._weight_scale": (scale_dtype, placed)}
    whole = 1.0
    if kind == "NVFP4Tensor":
        parts["l._weight_per_tensor_scale"], whole = ("F32", np.float32(0.75)), 0.75
    values, weight = read(tmp_path, parts, metadata={"l.weight": json.dumps(said)})
    assert weight.parts == tuple(parts)
    for row, column in np.random.default_rng(5).integers(0, (rows, columns), (300, 2)):
        if kind == "Float8Tensor":
            expected = e4m3(codes[row, column]) * float(scales[row, 0])
        else:
            stored = scales[row, column // size]
            element = codes[row, column // 2] >> 4 * (column % 2) & 15 if is_fp4 else codes[row, column]
            scale = e4m3(stored) if kind == "NVFP4Tensor" else 2.0 ** (int(stored) - 127)
            expected = (E2M1[element] if is_fp4 else e4m3(element)) * scale * whole
        assert values[row, column] == expected


def test_swizzled_scales_are_a_permutation():
    scales = np.arange(300 * 7, dtype=np.float32).reshape(300, 7)
    found = unswizzled(HeldSource(swizzled(scales)), (300, 7))
    assert found.shape == (300, 7)
    assert found.read(0, found.size).tolist() == scales.ravel().tolist()


def test_spread_at_any_place():
    """Scales of blocks of every shape, read from every place."""
    values = np.arange(200, dtype=np.float32)
    for shape in ((7,), (3, 5), (2, 3, 4), (1, 1), ()):
        rows, columns = shape[-2] if len(shape) > 1 else 1, shape[-1] if shape else 1
        for block in ((1, 1), (2, 3), (1, 4), (9, 9), (3, 1)):
            down, across = -(-rows // block[0]), -(-columns // block[1])
            read_scales = spread(numbers(HeldSource(values)), shape, block)
            size = int(np.prod(shape))
            expected = []
            for index in np.ndindex(*shape):
                row, column = index[-2] if len(shape) > 1 else 0, index[-1] if shape else 0
                matrix = index[0] if len(shape) == 3 else 0
                expected.append(values[(matrix * down + row // block[0]) * across + column // block[1]])
            for first in range(size):
                for count in range(1, size - first + 1):
                    assert read_scales(first, count).tolist() == expected[first : first + count]


@pytest.mark.parametrize("kind", _DECODERS)
def test_the_blocks_of_ggml_by_its_own_package(kind):
    quants = pytest.importorskip("gguf.quants", reason="the package gguf is not installed")
    types = pytest.importorskip("gguf").GGMLQuantizationType
    blocks = draw((2000, block_of(kind)[1]), seed=7)
    if kind == "MXFP4":
        blocks = blocks[blocks[:, 0] < 255]  # the code of NaN; the package reads it as 2^128
    with np.errstate(all="ignore"):
        found = _DECODERS[kind](blocks).reshape(len(blocks), -1).astype(np.float32)
        try:
            expected = quants.dequantize(blocks, types[kind])
        except NotImplementedError:
            pytest.skip(f"the package gguf does not read {kind}")
    assert ((found == expected) | (np.isnan(found) & np.isnan(expected))).all()


def nibble(byte, high):
    return int(byte) >> 4 if high else int(byte) & 15


def half(octets):
    return float(np.frombuffer(bytes(octets), "<f2")[0])


def test_the_blocks_of_ggml_element_by_element(tmp_path):
    """Nibbles are in split halves: the low ones are the first half of a block (a group for Q4_K and NVFP4)."""
    path, size = tmp_path / "model.gguf", {"Q4_0": 2, "Q4_1": 3, "Q8_0": 8, "Q4_K": 12, "MXFP4": 39, "NVFP4": 40}
    for kind, number in size.items():
        elements, octets = block_of(kind)
        blocks = draw((6, octets), seed=number)
        if kind in ("Q4_0", "Q4_1", "Q8_0", "Q4_K"):
            blocks[:, 1] &= 0x3F  # no infinities
            blocks[:, 3] &= 0x3F if kind != "Q8_0" else 0xFF
        if kind == "MXFP4":
            blocks[:, 0] |= 0x40
            blocks[:, 0] &= 0x7F
        if kind == "NVFP4":
            blocks[:, :4] &= 0x77
        path.write_bytes(gguf([entry("a.weight", (3 * elements, 2), number)], blocks.tobytes()))
        with load_quantized(path) as found:
            values = found.array("a.weight", "fp64").reshape(6, elements)
            assert found.weights["a.weight"].shape == (2, 3 * elements)
        for (n, i), value in np.ndenumerate(values):
            block = blocks[n]
            if kind == "Q8_0":
                expected = half(block[:2]) * int(np.int8(block[2 + i]))
            elif kind == "Q4_0":
                expected = half(block[:2]) * (nibble(block[2 + i % 16], i >= 16) - 8)
            elif kind == "Q4_1":
                expected = half(block[:2]) * nibble(block[4 + i % 16], i >= 16) + half(block[2:4])
            elif kind == "MXFP4":
                expected = E2M1[nibble(block[1 + i % 16], i >= 16)] * 2.0 ** (int(block[0]) - 127)
            elif kind == "NVFP4":
                group, j = divmod(i, 16)
                expected = E2M1[nibble(block[4 + 8 * group + j % 8], j >= 8)] * e4m3(block[group])
            else:
                group, j = divmod(i, 32)
                bits = block[4:16]
                if group < 4:
                    scale, least = bits[group] & 63, bits[group + 4] & 63
                else:
                    scale = bits[group + 4] & 15 | bits[group - 4] >> 6 << 4
                    least = bits[group + 4] >> 4 | bits[group] >> 6 << 4
                code = nibble(block[16 + 32 * (group // 2) + j], group % 2)
                expected = half(block[:2]) * int(scale) * code - half(block[2:4]) * int(least)
            assert value == expected, (kind, n, i)


IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def element(kind, block, i):
    """Return element i of a block of 256 elements, computed alone, by the definition of its type."""
    half_of, place = divmod(i, 128)
    part, rest = divmod(place, 32)
    if kind in ("Q2_K", "Q3_K"):
        scale = half_of * 8 + part * 2 + rest // 16
        byte = block[(16 if kind == "Q2_K" else 32) + half_of * 32 + rest]
        code = int(byte) >> 2 * part & 3
        if kind == "Q2_K":
            packed = int(block[scale])
            return half(block[80:82]) * (packed & 15) * code - half(block[82:84]) * (packed >> 4)
        low = nibble(block[96 + scale % 8], scale >= 8)
        high = int(block[104 + scale % 4]) >> 2 * (scale // 4) & 3
        is_set = int(block[rest]) >> half_of * 4 + part & 1
        return half(block[108:110]) * ((low | high << 4) - 32) * (code - 4 * (not is_set))
    if kind == "IQ4_XS":
        group, j = divmod(i, 32)
        scale = nibble(block[4 + group // 2], group % 2) | ((int(block[2]) | int(block[3]) << 8) >> 2 * group & 3) << 4
        return half(block[:2]) * (scale - 32) * IQ4[nibble(block[8 + 16 * group + j % 16], j >= 16)]
    if kind == "TQ2_0":
        return half(block[64:66]) * ((int(block[half_of * 32 + rest]) >> 2 * part & 3) - 1)
    if kind == "TQ1_0":
        first, count, at = (0, 32, i) if i < 160 else (32, 16, i - 160) if i < 240 else (48, 4, i - 240)
        digit, byte = divmod(at, count)
        return half(block[52:54]) * ((int(block[first + byte]) * 3**digit % 256 * 3 >> 8) - 1)
    d = float(np.frombuffer(bytes(block[:4]), "<f4")[0])
    return d * int(np.int8(block[4 + i]))


@pytest.mark.parametrize("kind", ["Q2_K", "Q3_K", "IQ4_XS", "TQ1_0", "TQ2_0", "Q8_K"])
def test_more_blocks_of_ggml_element_by_element(kind):
    blocks = draw((3, block_of(kind)[1]), seed=11)
    for place in {"Q2_K": (81, 83), "Q3_K": (109,), "IQ4_XS": (1,), "TQ1_0": (53,), "TQ2_0": (65,), "Q8_K": (3,)}[kind]:
        blocks[:, place] &= 0x3F  # no infinities
    found = _DECODERS[kind](blocks).reshape(3, 256)
    for (n, i), value in np.ndenumerate(found):
        assert value == element(kind, blocks[n], i), (n, i)


def test_blocks_of_32_with_a_table_or_a_sum():
    blocks = draw((2, 36), seed=12)
    blocks[:, 1] &= 0x3F
    for block, values in zip(blocks, _DECODERS["Q8_1"](blocks), strict=True):
        assert values.tolist() == [half(block[:2]) * int(np.int8(byte)) for byte in block[4:]]
    for block, values in zip(blocks[:, :18], _DECODERS["IQ4_NL"](blocks[:, :18]), strict=True):
        assert values.tolist() == [half(block[:2]) * IQ4[nibble(block[2 + i % 16], i >= 16)] for i in range(32)]


def test_a_type_that_is_not_read_is_a_matter_of_one_tensor(tmp_path):
    """Of a file with a tensor in a codebook format, the other tensors are read."""
    data = draw((1, 66)).tobytes() + bytes(30) + np.ones(32, "<f4").tobytes() + draw((1, 34)).tobytes()
    entries = [entry("a.weight", (256,), 16), entry("b.weight", (32,), 0, 96), entry("c.weight", (32,), 8, 224)]
    (tmp_path / "m.gguf").write_bytes(gguf(entries, data))
    with load_quantized(tmp_path / "m.gguf") as found:
        assert (list(found.weights), list(found.plain)) == (["c.weight"], ["b.weight"])
        assert found.unsupported == {"a.weight"}
        assert "a.weight is IQ2_XXS, which is not read" in found.unreadable["a.weight"]
    audit = fl.audit(tmp_path / "m.gguf")
    assert {each.name: each.verdict for each in audit.tensors} == {"a.weight": "cannot tell", "c.weight": "cannot tell"}


@pytest.mark.parametrize("name", ["a.scale", "a.weight.scale"])
def test_the_scale_of_a_tensor_in_gguf_multiplies(tmp_path, name):
    blocks = draw((1, 36)) & 0x77
    scale = np.float32([0.5])
    data = blocks.tobytes() + b"\0" * 28 + scale.tobytes()
    for entries in ([entry("a.weight", (64,), 40)], [entry("a.weight", (64,), 40), entry(name, (1,), 0, 64)]):
        (tmp_path / "model.gguf").write_bytes(gguf(entries, data))
        with load_quantized(tmp_path / "model.gguf") as found:
            values = found["a.weight"]
            assert found.names == ["a.weight"]
        if len(entries) == 1:
            plain = values
    assert (values == plain / 2).all()
    assert values.any()


def test_what_the_configuration_contradicts_is_told(tmp_path):
    codes, scales = ("U8", draw((1, 16))), ("F8_E4M3", draw((1, 2), 0x7F))
    parts = {"l.weight": codes, "l.weight_scale": scales, "l.weight_scale_2": ("F32", np.float32(1))}
    _, weight = read(tmp_path, parts, {"quant_method": "awq"})
    assert weight.evidence == "names and shapes, although config.json says 'awq'"
    _, weight = read(tmp_path, parts, {"quant_method": "modelopt"})
    assert weight.evidence == "names, shapes and config.json (modelopt)"


def test_plain_checkpoints_have_no_weights(tmp_path):
    path = write_checkpoint(tmp_path / "a.safetensors", {"l.weight": ("BF16", np.uint16([[0x3F80]]), (1, 1))})
    with load_quantized(path) as found:
        assert (found.weights, list(found), found["l.weight"].tolist()) == ({}, ["l.weight"], [[1.0]])
        with pytest.raises(KeyError):
            found["m.weight"]
