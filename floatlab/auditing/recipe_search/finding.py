"""`find_recipe`: finds the recipe by which quantised codes were made."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.auditing.recipe_search.integers.zero_points import search_with_zero_points
from floatlab.auditing.recipe_search.records import RecipeSearch
from floatlab.auditing.recipe_search.search import search, total_of
from floatlab.auditing.recipe_search.sources import opened_evidence, opened_with_zero_points
from floatlab.fpmode import in_default_mode

Progress = Callable[[int], None]


@in_default_mode
def find_recipe(
    codes: object,
    original: object,
    scales: object = None,
    tensor_scale: object = None,
    progress: Callable[[int], Progress] | None = None,
) -> RecipeSearch:
    """Find the recipe that made quantised codes from their original, bit for bit.

    All scale rules of libraries and of floatlab are tried, with every shape of blocks that the scales allow, and every
    layout that the sizes allow. If none gives all codes and scales, other roundings, quotients and precisions are
    tried. A recipe is named only if it gives every code and every scale that is compared. All codes and scales are
    compared, with two exceptions. If the recipe is slow to compute, only some pieces of the tensor are compared. Of
    large weights of integers with zero points, only the first rows are compared (about 2^22 elements). Zeros of both
    signs count as equal, and so do all NaNs.

    Parameters
    ----------
    codes
        The quantised codes: an array, or `FILE::NAME`. The elements of an array may be codes in bytes, numbers of a
        dtype such as float8, or bytes of packed codes: two of 4 bits in a byte, or four of 6 bits in three bytes.
    original
        The tensor before it was quantised: an array of floats, or `FILE::NAME`. NAME may be left out if the codes have
        the same NAME.
    scales
        The scales of blocks: an array, or `FILE::NAME`. Bytes are tried both as codes of e8m0 and as codes of e4m3. By
        default, the scales stored beside the codes are used; the conventions of checkpoints find these scales.
    tensor_scale
        The scale of the tensor, or of each row. The default is the scale that is stored beside the codes. If `scales`
        is given, there is no default.
    progress
        A function that is called once, with the total number of elements that are compared. This function must return a
        second function. The second function is then called with the number of elements done since its previous call.

    Returns
    -------
    RecipeSearch

    Raises
    ------
    FileFormatError
        If a file is not valid, if a tensor is missing, or if shapes do not fit together.
    UnsupportedError
        If the type of an array is not suitable, or if the codes have a convention for which no recipes are known.

    Examples
    --------
    >>> import numpy as np
    >>> import floatlab as fl
    >>> x = np.random.default_rng(1).standard_normal((64, 256)).astype(np.float32)
    >>> made = fl.arrays.encode(x, "nvfp4:te")
    >>> found = find_recipe(made.codes, x, made.scales, made.tensor_scale)
    >>> found.is_found, found.recipe
    (True, 'nvfp4:te')
    """
    start = _without_progress if progress is None else progress
    if scales is None and tensor_scale is None:
        with opened_with_zero_points(codes, original) as opened:
            if opened is not None:
                return search_with_zero_points(*opened, start)
    with opened_evidence(codes, original, scales, tensor_scale) as (evidence, names):
        return search(evidence, names, start(total_of(evidence)))


def _without_progress(total: int) -> Progress:
    return lambda count: None
