"""How two arrays differ, measured piece by piece."""
