"""The public names of floatlab.arith.blocks, for type checkers; `__init__.py` imports them when they are used."""

from floatlab.arith.blocks.quantization import element_context as element_context
from floatlab.arith.blocks.quantization import quantize_block as quantize_block
from floatlab.arith.blocks.quantization import quantize_blocks as quantize_blocks
from floatlab.arith.blocks.quantizer import BY_EXPONENT as BY_EXPONENT
from floatlab.arith.blocks.quantizer import ERROR as ERROR
from floatlab.arith.blocks.quantizer import TIES_DOWN as TIES_DOWN
from floatlab.arith.blocks.quantizer import TIES_TO_ZERO as TIES_TO_ZERO
from floatlab.arith.blocks.quantizer import wider as wider
from floatlab.arith.blocks.records import BlockDerivation as BlockDerivation
from floatlab.arith.blocks.records import Element as Element
from floatlab.arith.blocks.records import ScaleStep as ScaleStep
from floatlab.arith.blocks.records import TensorScale as TensorScale
from floatlab.arith.blocks.records import element_value as element_value
from floatlab.arith.blocks.records import zero_code as zero_code
from floatlab.arith.blocks.tensor_scale import full_range_tensor_scale as full_range_tensor_scale
from floatlab.arith.blocks.tensor_scale import read_tensor_scale as read_tensor_scale
from floatlab.arith.blocks.values import tiles as tiles
