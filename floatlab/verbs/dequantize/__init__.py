"""`dequantize`: writes a quantised checkpoint as plain numbers."""
