"""`dequantize`: a quantised checkpoint, written as plain numbers."""
