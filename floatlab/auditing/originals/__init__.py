"""Finds in an unquantised checkpoint what a quantised weight was made from: by names, by conventions, by content."""
