"""Diagnose operations that consist of matrix products: batched products, layers, sums, convolutions."""

from floatlab.reduce.explain.operations.axes import check_operation, products_of
from floatlab.reduce.explain.operations.joint import diagnose_operation

__all__ = ["check_operation", "diagnose_operation", "products_of"]
