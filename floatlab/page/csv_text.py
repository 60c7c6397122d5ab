"""Tables as CSV."""

from __future__ import annotations

from collections.abc import Iterable


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
