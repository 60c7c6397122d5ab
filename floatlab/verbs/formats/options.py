"""The verb `formats`, and its options."""

from __future__ import annotations

from floatlab.verbs.option import OUTPUT
from floatlab.verbs.question import Verb

VERB = Verb(
    name="formats",
    summary="the table of formats; one format in full, with its code table if it is small",
    examples=("formats", "formats e4m3"),
    explanation=(
        "Names are case-insensitive, and - is the same as _. Further names: p3109_k8p4se, any e<W>m<T> with fn, f or "
        "fnuz after it, and _ieee after any name. Recipes (nvfp4, e4m3/128x128:te) are shown with their scale rules."
    ),
    takes=("NAME", "a format to show in full"),
    options=OUTPUT,
    formats_by="give the names as values, as in formats fp16",
    needs_values=False,
    also=("info list finfo types → formats",),
)
