"""`block`: scales and rounds values in blocks by a recipe, such as MX or NVFP4."""
