"""Layer 2a: conformance vectors in TestFloat's text format, for any format."""

from floatlab.vectors.check import Mismatch, check_lines
from floatlab.vectors.functions import Function, parse_function
from floatlab.vectors.generate import generate_lines

__all__ = ["Function", "Mismatch", "check_lines", "generate_lines", "parse_function"]
