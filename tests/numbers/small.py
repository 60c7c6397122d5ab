"""Small formats of every shape, for tests that look at all of them."""

from floatlab.formats import Format, parse_format

SMALL = [
    *map(parse_format, (
        "e2m1fn", "e2m3fn", "e3m2fn", "e2m1_ieee", "e2m2_ieee", "e3m2_ieee", "e3m1", "e2m3fnuz", "e3m1fnuz", "e2m2f",
        "p3109_k4p2se", "p3109_k5p3sf", "p3109_k5p1se", "p3109_k4p4uf", "p3109_k5p1ue", "p3109_k5p3ue", "p3109_k6p3se",
        "e4m0fn", "e3m0_ieee",
    )),
    Format("no_subnormals", 3, 3, subnormals=False),
    Format("no_subnormals_unsigned", 3, 3, subnormals=False, signed=False, infinities=False, nans=0),
    Format("no_zero", 1, 4, infinities=False, nans=1, zero=False, signed=False),
    Format("no_zero_bare", 1, 3, zero=False, nans=0, infinities=False, signed=False, ties_to_even_code=True),
    Format("even_at_one_digit", 1, 4, infinities=False, nans=0, ties_to_even_code=True),
    Format("one_exponent_bit", 4, 1, infinities=False, nans=0),
    Format("only_infinity", 3, 3, nans=0),
    Format("two_nans", 4, 2, infinities=False, nans=2, bias=-3),
    Format("stored_integer_bit", 3, 3, explicit_integer_bit=True),
    Format("unsigned_ieee", 3, 3, signed=False),
]  # fmt: skip
