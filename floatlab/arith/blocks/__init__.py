"""Quantizes blocks (numbers that share a scale) by the rules of a recipe, and records every step."""

from floatlab.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, {
    "quantization": "element_context quantize_block quantize_blocks",
    "quantizer": "BY_EXPONENT ERROR TIES_DOWN TIES_TO_ZERO wider",
    "records": "BlockDerivation Element ScaleStep TensorScale element_value zero_code",
    "tensor_scale": "read_tensor_scale full_range_tensor_scale",
    "values": "tiles",
})  # fmt: skip
