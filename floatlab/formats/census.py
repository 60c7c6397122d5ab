"""The number of codes in each class of a format."""

from __future__ import annotations

from floatlab.formats.format import Format
from floatlab.record import Record


class Census(Record):
    """The number of codes in each class, for both signs together; the sum is 2^k, where k is the format's width."""

    zeros: int
    subnormals: int
    normals: int
    infinities: int
    nans: int
    unsupported: int  # codes that encoding never gives; only x87 and formats without subnormals have any


def census(format: Format) -> Census:
    """Count a format's codes by class.

    >>> from floatlab.formats import parse_format
    >>> census(parse_format("e4m3"))
    Census(zeros=2, subnormals=14, normals=238, infinities=0, nans=2, unsupported=0)
    """
    signs = 2 if format.signed else 1
    below_normal = format.smallest_normal_magnitude
    zeros = (1 + format.negative_zero) if format.zero else 0
    subnormals = signs * (below_normal - 1) if format.subnormals else 0
    normals = format.largest_magnitude - below_normal + 1
    if format.signed:
        normals += format.lowest_magnitude - below_normal + 1
    infinities = signs * format.infinities
    nans = signs * format.nans + format.nan_in_place_of_negative_zero
    counted = zeros + subnormals + normals + infinities + nans
    return Census(zeros, subnormals, normals, infinities, nans, (1 << format.width) - counted)
