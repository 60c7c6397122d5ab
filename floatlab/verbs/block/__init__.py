"""`block`: values scaled and rounded together by a recipe, such as MX or NVFP4."""
