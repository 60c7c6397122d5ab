"""`train step`: one update, rounding by rounding."""
