"""The schema of the four ways to one product: times and errors, and how far apart the products are."""

from __future__ import annotations

from floatlab.reduce.timing.ways import apart
from floatlab.wire.schema import INTEGER, Schema, heading, listed, shown

_WAY = Schema(
    None,
    {
        "name": shown("name"),
        "seconds": shown(lambda way: list(way.timing.runs)),
        "average": shown("timing.average"),
        "sum": shown("timing.total"),
        "cumulative": shown(lambda way: list(way.timing.cumulative)),
        "largest_error": shown("largest_error"),
        "largest_q": shown("largest_q"),
    },
)
WAYS = Schema(
    None,
    {
        **heading("matmul"),
        "ways": shown(lambda ways: ways, listed(_WAY)),
        "ulps_apart": shown(lambda ways: apart(ways), listed(listed(INTEGER))),
    },
)
