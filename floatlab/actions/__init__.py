"""Everything that a user can ask, one row each: the command line and the explorer read the same table."""

from __future__ import annotations

from floatlab.actions.answer import Answer
from floatlab.record import Record

__all__ = ["ACTIONS", "Action", "Answer"]


class Action(Record):
    """A question: its verb, what it does in one line, and examples that really run (without `floatlab`)."""

    verb: str
    summary: str
    examples: tuple[str, ...]
    explanation: str = ""


ACTIONS: dict[str, Action] = {
    action.verb: action
    for action in (
        Action(
            "show",
            "read a value into one or more formats: fields, exact value, error, neighbours",
            ("show 1.12156456132 --fp16", "show bits:0x38 --dialects", "show 0.1 --fp32 --bf16 --interval"),
            "Values: 1.5  -3e-5  1_000  1/3  0x1.8p3  2^-24  inf  nan  nan(0x1)  snan; codes: bits:0x3c7c  "
            "bits:0_01111_0001111100; VALUE@FORMAT gives one value a format of its own; - reads values from "
            "standard input, one a line. Without a format: fp16 and fp32.",
        ),
        Action(
            "convert",
            "round a value along a path of formats, and say where double rounding changed the answer",
            ("convert 1.00048828126 --through fp32,fp16", "convert 0x1.01000001p0 --through fp32,bf16"),
            "1.00048828126 lies just above the middle of two binary16 numbers. Directly it rounds up, to 0x3c01; "
            "through binary32 it first lands on the middle itself, and the tie then goes to even, 0x3c00.",
        ),
        Action(
            "formats",
            "the table of formats; one format in full, with its code table if it is small",
            ("formats", "formats e4m3"),
            "Names are case-insensitive, and - is _. Besides the table: p3109_k8p4se, any e<W>m<T> with fn, f or "
            "fnuz after it, and _ieee after any name.",
        ),
    )
}
