"""The scale rules, one row each: the exact rules of floatlab, and the rules of libraries with their sources.

A rule belongs to a family of block formats. Formats with groups belong to `hif4`. Some formats have a minimum beside
each scale. They belong to `nested` if each superblock has two coarser scales, one by which its scales are multiplied
and one by which its minima are multiplied; otherwise, they belong to `minimum`. All other formats are sorted by their
scales: powers of two without a tensor scale (`mx`), other scales of at most 8 bits (`nvfp4`), of 16 bits (`fp16`), and
of any other width (`fp32`). A library's rule computes in the order and precision of the library, so it gives the same
codes and scales as the library, bit for bit. docs/decisions/0022-recipes.md lists the exceptions.
"""

from __future__ import annotations

from floatlab.formats.blocks import HIF4
from floatlab.formats.catalog import MX
from floatlab.formats.scaling import ScaleChoice, ScaleRule

TORCHAO = "torchao 0.18.0, prototype/mx_formats/mx_tensor.py, to_mx"
TORCHAO_NVFP4 = "torchao 0.18.0, prototype/mx_formats/nvfp4_tensor.py, nvfp4_quantize"
TORCHAO_FP8 = "torchao 0.18.0, quantization/quant_primitives.py, _choose_scale_float8"
TORCHAO_TRAINING = "torchao 0.18.0, float8/float8_utils.py, amax_to_scale"
MODELOPT = "NVIDIA ModelOpt 0.47.0, torch/quantization/qtensor"
COMPRESSED = "compressed-tensors 0.20.0, quantization/utils/helpers.py, calculate_qparams"
TE_NVFP4 = "Transformer Engine at d0067d0da6cb, pytorch/custom_recipes/reference_nvfp4.py"
TE_FP8 = "Transformer Engine at d0067d0da6cb, tests/pytorch/references/quantize_scale_calc.py"
FOUROVERSIX = "fouroversix at dadfad6901d4, quantize/pytorch/reference.py (arXiv:2512.02010)"
MICROXCALING = "microxcaling at 7bc41952de39, mx/mx_ops.py, _quantize_mx"
GGML = "ggml 0.13.1, ggml-quants.c, and gguf 0.19.0"
DEEPSEEK = "DeepSeek-V3 at 9b4e9788e4a3, inference/kernel.py, act_quant"
DEEPGEMM = "DeepGEMM at 38939a4c494c, deep_gemm/utils/math.py, per_block_cast_to_fp8"
DEEPGEMM_1 = "DeepGEMM at 1169f83c3685, tests/test_core.py, per_block_cast_to_fp8"
TRANSFORMERS = "transformers 5.23.0, integrations/finegrained_fp8.py, Fp8Quantize"
TRANSFORMERS_4 = "transformers 4.57, quantizers/quantizer_finegrained_fp8.py, create_quantized_param"
BITSANDBYTES = "bitsandbytes 0.50.2, functional.py, quantize_4bit, on a CPU"
BITSANDBYTES_8 = "bitsandbytes 0.50.2, backends/default/ops.py, int8_vectorwise_quant"
BITSANDBYTES_CUDA = "bitsandbytes 0.50.2, csrc/kernels.cu, kInt8VectorQuant"
NO_SATURATION = "the smallest scale without saturation"
NEAREST = "the scale nearest to amax / largest"

WITH_MINIMUM = "q * scale + minimum"

_SINGLE_MAX = "3.4028234663852886e38"


def _exact(name: str, families: tuple[str, ...], scale: str, source: str, stored: str = "RNE") -> list[ScaleRule]:
    tensor = "tensor = nonzero(tensor_amax, largest * top) / (largest * top)"
    lines = (tensor, f"scale = {scale}", "scaled = x / (scale * tensor)")
    return [ScaleRule(name, family, lines, source, stored=stored) for family in families]


_OWN = [
    *_exact("floor", ("mx",), "exp2(floor(log2(amax)) - emax)", f"{MX}, section 6.3"),
    *_exact("even", ("mx",), "exp2(floor(log2(rounded(amax, p))) - emax)", "amax rounded to the element's precision"),
    *_exact("ceil", ("mx",), "exp2(ceil(log2(amax)) - emax)", "the exponent of amax, rounded up"),
    *_exact("nearest", ("nvfp4", "fp32", "fp16"), "amax / largest / tensor", NEAREST),
    *_exact("up", ("mx", "nvfp4", "fp32", "fp16"), "amax / largest / tensor", NO_SATURATION, "RTP"),
    *_exact("nearest", ("mx",), "amax / largest / tensor", NEAREST),
    ScaleRule(
        "4over6", "nvfp4",
        (
            "tensor = nonzero(tensor_amax, largest * 256) / (largest * 256)",
            "scale = grow * amax / largest / tensor",
            "scaled = x / (scale * tensor)",
        ),
        "Cook et al., Four Over Six (arXiv:2512.02010), with exact arithmetic",
        choice=ScaleChoice(("1", "1.5"), "q * scale * tensor - x", "square"),
    ),
    ScaleRule("range", "minimum", ("scale = (high - low) / largest", "minimum = low", "scaled = (x - minimum) / scale"),
        "the range of the block in equal parts", value=WITH_MINIMUM),
    ScaleRule("none", "fp32", ("scale = 1", "scaled = x"), "no scale: elements are rounded as they are"),
]  # fmt: skip


def _mx(name: str, scale: str, scaled: str, source: str, **more: str | int | bool) -> ScaleRule:
    working = str(more.pop("working", "fp32"))
    return ScaleRule(name, "mx", (*scale.split("; "), f"scaled = {scaled}"), source, working, **more)  # type: ignore[arg-type]


_BY_NORMAL = "scaled = x / max(scale, 2^-126)"  # torchao divides by 2^-126 if the scale is 2^-127
_BY_INVERSE = "scaled = x * (1 / scale)"
_BY_WIDE = "scaled = x / wide"  # `wide` is the scale before it is rounded to its format
_RCEIL = "scale = exp2(ceil(log2(amax / largest)))"
_LOG_FLOOR = "scale = exp2(floor(log2(nonzero(amax, 2^-126))) - emax)"


def _library(name: str, family: str, source: str, *lines: str, **more: object) -> ScaleRule:
    settings = {"working": "fp32", **more}
    return ScaleRule(name, family, lines, source, **settings)  # type: ignore[arg-type]


def _ct(digits: str, elements: tuple[str, ...]) -> ScaleRule:
    wide = f"wide = max(exp2(floor(log2(rounded(amax, {digits}))) - emax), 2^-127)"
    return _library(
        "ct", "mx", COMPRESSED, wide, "scale = finite(wide, 1)", _BY_WIDE, working="input", elements=elements
    )


def _fouroversix_mx(name: str, largest: int) -> ScaleRule:
    return _library(
        name, "mx", FOUROVERSIX, f"d = amax / {largest}", "e = exponent(d)",
        "wide = max(exp2(less(exp2(e), d, e + 1, e)), less(0, d, 2^-126, 2^-127))", "scale = finite(wide, 0 / 0)",
        _BY_WIDE, nan=11, elements=("e2m1fn",),
    )  # fmt: skip


_MX = [
    _library("torchao_floor", "mx", TORCHAO, "scale = exp2(exponent(amax) - emax)", _BY_NORMAL),
    _library("torchao_ceil", "mx", TORCHAO, "e = exponent(amax)", "scale = exp2(less(exp2(e), amax, e + 1, e) - emax)",
        _BY_NORMAL),
    _library("torchao_even", "mx", TORCHAO, "scale = exp2(exponent(rounded(amax, p)) - emax)", _BY_NORMAL),
    _library("torchao_rceil", "mx", TORCHAO, _RCEIL, "scaled = x * less(scale, 2^-126, 1, 1 / scale)"),
    _library("modelopt", "mx", f"{MODELOPT}/mxfp4_tensor.py",
        "wide = exp2(ceil(max(log2(amax / largest), 0 - 127)))", "scale = finite(wide, 2^-127)", _BY_WIDE,
        rounding="RNZ", nan=8, elements=("e2m1fn",)),
    _library("modelopt", "mx", f"{MODELOPT}/mxfp8_tensor.py", _RCEIL, _BY_INVERSE, elements=("e4m3fn",)),
    _library("te", "mx", f"{TE_NVFP4}, pow_2_scales", _RCEIL, _BY_INVERSE),
    _fouroversix_mx("fouroversix_6", 6),
    _fouroversix_mx("fouroversix_4", 4),
    _ct("2", ("e2m1fn", "e4m3fn")),
    _ct("p", ("e2m3fn",)),
    _library("microxcaling_even", "mx", MICROXCALING, _LOG_FLOOR),
    _library("microxcaling_nearest", "mx", MICROXCALING, _LOG_FLOOR, rounding="RNA"),
    _library("microxcaling_floor", "mx", MICROXCALING, _LOG_FLOOR, rounding="RTZ"),
    _library("ggml", "mx", GGML, "e = floor(log2(amax)) - emax + 127",
        "scale = exp2(mod(finite(e, 0), 256) - 127)", rounding="closest"),
]  # fmt: skip


_GLOBAL = "tensor = tensor_amax / 2688"
_TE_VALUE = "q * scale * tensor / {}"


def _te_lines(most: int) -> tuple[str, str]:
    return "tensor = tensor_amax", f"g = nonzero(min({6 * most} / tensor, {_SINGLE_MAX}), 1)"


_TE_SCALED = f"scaled = x * min(1 / (scale * (1 / g)), {_SINGLE_MAX})"


def _te_4over6(name: str, most: int, measure: str, error: str = "q * scale * tensor / {} - x") -> ScaleRule:
    return _library(
        name, "nvfp4", TE_NVFP4, *_te_lines(most), "scale = min(amax / 6 * g * grow, 448)", _TE_SCALED,
        value=_TE_VALUE.format(6 * most), choice=ScaleChoice(("1", "1.5"), error.format(6 * most), measure),
    )  # fmt: skip


def _fouroversix(name: str, largest: int, most: int, choice: ScaleChoice | None = None) -> ScaleRule:
    return _library(
        name, "nvfp4", FOUROVERSIX, "tensor = tensor_amax", f"g = {largest * most} / tensor",
        f"scale = amax / {largest} * g{' * grow' if choice else ''}",
        "y = x * (1 / (1 / g * scale))", "scaled = at_most(scale, 0, 0, finite(y, 0 / 0))",
        value=_TE_VALUE.format(largest * most), choice=choice, wraps=True, nan=11,
    )  # fmt: skip


def _fouroversix_choice(measure: str) -> ScaleChoice:
    return ScaleChoice(("1", "1.5"), "q * scale * tensor / 1536 - x", measure)


_NVFP4 = [
    _library("modelopt", "nvfp4", f"{MODELOPT}/nvfp4_tensor.py", _GLOBAL,
        "scale = max(min(nonzero(amax / (6 * tensor), 1), 448), 2^-9)", "scaled = x / (scale * tensor)", nan=7),
    _library("torchao", "nvfp4", TORCHAO_NVFP4, _GLOBAL, "scale = min(max(amax / 6 / tensor, 2^-6), 448)",
        "scaled = x * (1 / tensor / scale)", nan=12),
    _library("torchao_single", "nvfp4", TORCHAO_NVFP4, "scale = min(max(amax / 6, 2^-6), 448)", _BY_INVERSE, nan=12),
    _library("te", "nvfp4", TE_NVFP4, *_te_lines(448), "scale = min(amax * (g * (1 / 6)), 448)", _TE_SCALED,
        value=_TE_VALUE.format(2688)),
    _te_4over6("te_4over6_mae448", 448, "absolute"),
    _te_4over6("te_4over6_mse448", 448, "square"),
    _te_4over6("te_4over6_mae256", 256, "absolute"),
    _te_4over6("te_4over6_mse256", 256, "square"),
    _te_4over6("te_4over6_mae256_fast", 256, "absolute", "q * scale - x * g"),
    _fouroversix("fouroversix_6", 6, 448),
    _fouroversix("fouroversix_4", 4, 448),
    _fouroversix("fouroversix_mse", 6, 256, _fouroversix_choice("square")),
    _fouroversix("fouroversix_mae", 6, 256, _fouroversix_choice("absolute")),
    _fouroversix("fouroversix_abs_max", 6, 256, _fouroversix_choice("largest")),
    _library("ct", "nvfp4", COMPRESSED, "tensor = finite(1 / max(tensor_amax, 2^-126) * 2688, 1)", "base = amax / 6",
        "wide = fp32(tensor * base)", "scale = at_most(wide, 2^-10, 0.125, wide)",
        "scaled = fp32(x / (scale / tensor))", working="input", value="q * scale / tensor"),
    _library("ggml", "nvfp4", GGML, "wide = min(amax / 6, 448)",
        "scale = less(wide, 2^-6, min(wide, 7 * 2^-9), less(wide, 248, wide, 448))",
        stored="RNA", rounding="closest"),
]  # fmt: skip

_INVERSE = "scaled = x * inverse"
_TE_BASE = "inverse = min(largest / nonzero(amax, largest), input_max)"
_TRAINING = "inverse = fp32(fp64(1 / max(amax, 1e-12) * largest))"

_FP32 = [
    _library("torchao", "fp32", TORCHAO_FP8, "scale = amax / largest", "scaled = fp32(x / scale)", working="input"),
    _library("torchao_training", "fp32", TORCHAO_TRAINING, _TRAINING, "scale = inverse", _INVERSE, value="q / scale"),
    _library("torchao_training_pow2", "fp32", TORCHAO_TRAINING, _TRAINING, "scale = exp2(floor(log2(inverse)))",
        "scaled = x * scale", value="q / scale"),
    _library("te", "fp32", TE_FP8, _TE_BASE, "scale = 1 / inverse", _INVERSE),
    _library("te_pow2", "fp32", TE_FP8, _TE_BASE.replace("inverse", "wide"), "inverse = exp2(exponent(wide))",
        "scale = 1 / inverse", _INVERSE),
    _library("modelopt", "fp32", f"{MODELOPT}/fp8_tensor.py", "scale = amax / largest", working="input"),
    # The exported scale is a binary32 tensor without axes. If torch divides values by such a tensor, the quotients keep
    # the dtype of the values.
    _library("modelopt_export", "fp32", f"{MODELOPT}/fp8_tensor.py, with the exported scale",
        "scale = fp32(amax / largest)", "scaled = input(fp32(x / scale))", working="input", shapes=("tensor",)),
    _library("ct", "fp32", COMPRESSED, "scale = nonzero(amax / largest, input_eps)", working="input"),
    _library("deepseek", "fp32", DEEPSEEK, "scale = max(amax, 1e-4) / largest"),
    _library("deepseek_pow2", "fp32", DEEPSEEK, "scale = exp2(ceil(log2(max(amax, 1e-4) / largest)))"),
    _library("deepgemm", "fp32", DEEPGEMM, "scale = max(amax, 1e-4) / largest", _BY_INVERSE),
    # torch computes `largest / amax` in two steps; see `transformers`, below.
    _library("deepgemm_1", "fp32", DEEPGEMM_1, "scale = max(amax, 1e-4) / largest",
        "scaled = x * (1 / max(amax, 1e-4) * largest)"),
    # torch divides a Python number by a tensor in two steps: it multiplies the reciprocal of the tensor by the number.
    _library("transformers", "fp32", TRANSFORMERS, "inverse = less(0, amax, 1 / nonzero(amax, 1) * largest, 1)",
        "scale = 1 / inverse", _INVERSE, elements=("e4m3fn",)),
    _library("transformers_4", "fp32", TRANSFORMERS_4, "inverse = 1 / amax * largest", "scale = 1 / inverse", _INVERSE,
        working="input", elements=("e4m3fn",)),
]  # fmt: skip

_INVERSE_OF_D = "inverse = 1 / nonzero(d, 1 / 0)"  # 0 if d is 0
_UNIT = ("scale = amax", "scaled = max(min(x * (1 / max(scale, 1e-38)), 1), 0 - 1)")

_INTEGERS = [
    _library("modelopt", "fp32", f"{MODELOPT}/int8_tensor.py", "scale = amax / 127", working="input",
        elements=("int8",)),
    _library("ct", "fp32", COMPRESSED, "scale = nonzero(amax / 127.5, input_eps)", working="input",
        elements=("int8",)),
    _library("modelopt", "fp32", f"{MODELOPT}/int4_tensor.py", "scale = 1 / amax * 7", "scaled = x * scale",
        working="input", value="q / scale", elements=("int4",)),
    _library("ct", "fp32", COMPRESSED, "scale = nonzero(amax / 7.5, input_eps)", working="input", elements=("int4",)),
    _library("bnb", "fp32", BITSANDBYTES_8, "scale = amax", "scaled = finite(x * (1 / amax * 127), 0)",
        value="q * scale / 127", elements=("int8",)),
    _library("bnb_cuda", "fp32", f"{BITSANDBYTES_CUDA}; the processor's division is approximate", "scale = amax",
        "scaled = finite(x * (127 / amax), 0)", value="q * scale / 127", elements=("int8",)),
    _library("bnb", "fp32", BITSANDBYTES, *_UNIT, elements=("nf4",), nan=15),
    _library("bnb", "fp32", BITSANDBYTES, *_UNIT, elements=("bnb_fp4",), nan=3, rounding="RND"),
    _library("ggml", "fp16", GGML, "d = amax / 127", _INVERSE_OF_D, "scale = d", "scaled = finite(x * inverse, 0)",
        rounding="RNA", elements=("int8",)),
    *(
        _library(name, "fp16", GGML, "d = peak / (0 - 8)", _INVERSE_OF_D, "scale = d",
            f"scaled = finite(floor({sum}), 0) - 8", elements=("int4",))
        for name, sum in (("ggml", "x * inverse + 8.5"), ("gguf", "fp32(fp64(x * inverse + 8.5))"))
    ),
    _library("ggml", "minimum", GGML, "d = (high - low) / 15", _INVERSE_OF_D, "scale = d", "minimum = low",
        "scaled = finite(floor((x - low) * inverse + 0.5), 0)", value=WITH_MINIMUM, elements=("uint4",)),
    _library("ggml", "nested", f"{GGML}, quantize_row_q4_K_ref and make_qkx2_quants",
        "tensor = tensor_step / 63", "tensor_minimum = tensor_depth / 63",
        "scale = finite(less(0, tensor_step, 63 / tensor_step, 0) * step, 0)",
        "minimum = finite(less(0, tensor_depth, 63 / tensor_depth, 0) * depth, 0)",
        "d = scale * tensor", "y = (x + minimum * tensor_minimum) / d", "scaled = at_most(d, 0, found, finite(y, 0))",
        value="q * scale * tensor - minimum * tensor_minimum", elements=("uint4",), search="qkx2"),
]  # fmt: skip

_HIF4 = [
    _library("hif4", "hif4", f"{HIF4}; HiF4_NVFP4_v14f16.py, To_HiFX",
        "scale = min(max(amax * (1 / 7), 2^-48), 49152)", "inverse = 1 / scale",
        "micro8 = less(fp32(amax8 * inverse), 4, 1, 2)", "micro4 = less(fp32(amax4 * inverse / micro8), 2, 1, 2)",
        "scaled = fp32((x + 0) * inverse / (micro8 * micro4))",
        working="input", takes="bf16", rounding="RNA", value="q * scale * micro8 * micro4"),
]  # fmt: skip

SCALE_RULES: tuple[ScaleRule, ...] = (*_OWN, *_MX, *_NVFP4, *_FP32, *_HIF4, *_INTEGERS)
