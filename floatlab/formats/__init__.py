"""Floor 0: what a format is, and the formats that have names."""

from floatlab.formats.catalog import CATALOG, CatalogRow, catalog_row, parse_format
from floatlab.formats.format import Format

__all__ = ["CATALOG", "Format", "CatalogRow", "catalog_row", "parse_format"]
