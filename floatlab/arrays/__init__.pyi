"""The public names of floatlab.arrays, for type checkers; `__init__.py` imports each name on first use."""

from floatlab.arrays.container.array import FloatArray as FloatArray
from floatlab.arrays.container.storage import load as load
from floatlab.arrays.container.storage import save as save
from floatlab.arrays.conversion import decode as decode
from floatlab.arrays.conversion import encode as encode
from floatlab.arrays.conversion import quantize as quantize
from floatlab.arrays.operations import add as add
from floatlab.arrays.operations import divide as divide
from floatlab.arrays.operations import fma as fma
from floatlab.arrays.operations import multiply as multiply
from floatlab.arrays.operations import operate as operate
from floatlab.arrays.operations import sqrt as sqrt
from floatlab.arrays.operations import subtract as subtract
from floatlab.arrays.packing import pack as pack
from floatlab.arrays.packing import unpack as unpack
from floatlab.arrays.ulps import next_after as next_after
from floatlab.arrays.ulps import ordinal as ordinal
from floatlab.arrays.ulps import spacing as spacing
from floatlab.arrays.ulps import ulp_distance as ulp_distance
