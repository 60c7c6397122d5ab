"""Tables as CSV."""

from __future__ import annotations

from collections.abc import Iterable

from floatlab.errors import printable


def as_csv(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a table as CSV.

    >>> print(as_csv(("step", "weight"), [(0, 1.125)]), end="")
    step,weight
    0,1.125
    """
    from csv import writer
    from io import StringIO

    out = StringIO()
    table = writer(out, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return out.getvalue()


def csv_cell(value: object) -> object:
    """Return the content of a CSV cell: the items of a tuple are joined with `x`, and None is empty.

    Text that a spreadsheet would read as a formula gets an apostrophe in front.

    >>> csv_cell((2, 3)), csv_cell(None), csv_cell("=1+1")
    ('2x3', '', "'=1+1")
    """
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@")):
        return f"'{printable(value)}"
    if isinstance(value, str):
        return printable(value)
    return "" if value is None else value
