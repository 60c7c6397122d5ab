"""Arrays of numbers that are hard to round: ties, boundaries, both ends of the range, special values."""

import numpy as np


def telling(format, dtype, count, seed=0):
    """Return floats of a dtype that are hard to round to the format."""
    rng = np.random.default_rng(seed)
    low, top = 2.0 ** max(format.qmin, -1074), float(min(format.largest, int(np.finfo(np.float64).max)))
    found = [0.0, np.inf, np.nan, 1.0, float(np.finfo(dtype).smallest_subnormal), float(np.finfo(dtype).max)]
    with np.errstate(all="ignore"):
        for landmark in (low, 2.0 ** max(format.emin, -1022), top, 1.0):
            for factor in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 3):
                near = landmark * factor
                found += [near, np.nextafter(near, np.inf), np.nextafter(near, 0)]
        digits = min(format.precision + 2, 52)
        scale = np.exp2(rng.integers(max(format.qmin - 3, -1070), min(format.emax + 3, 1020), count).astype(float))
        short = scale * (1 + rng.integers(0, 1 << digits, count) / 2.0**digits)
        long = scale * (1 + rng.random(count))
        found = np.concatenate([found, short, long])
        found = np.concatenate([found, -found]).astype(dtype)
    bits = found.view(np.uint32 if dtype is np.float32 else np.uint64)
    signaling = (0x7F800001, 0xFF812345) if dtype is np.float32 else (0x7FF0000000000001, 0xFFF123456789ABCD)
    return np.concatenate([bits, np.array(signaling, bits.dtype)]).view(dtype)
