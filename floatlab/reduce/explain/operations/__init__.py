"""Diagnose operations that consist of matrix products: batched products, layers, sums, convolutions."""

from floatlab.reduce.explain.operations.joint import diagnose_operation
from floatlab.reduce.explain.operations.readings import check_operation, products_of

__all__ = ["check_operation", "diagnose_operation", "products_of"]
