"""Layer 0: the description of a format, and the catalog of named formats."""

from floatlab.formats.catalog import CATALOG, catalog_row, parse_format
from floatlab.formats.format import CatalogRow, Format

__all__ = ["CATALOG", "Format", "CatalogRow", "catalog_row", "parse_format"]
