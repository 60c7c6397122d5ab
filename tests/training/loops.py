"""Training loops written for the tests, in NumPy and ml_dtypes only, with which results are compared."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np

MASK = (1 << 64) - 1
HALF, BRAIN, SINGLE = np.float16, ml_dtypes.bfloat16, np.float32


def draw(seed, index):
    """Output `index` of SplitMix64(seed), upper 32 bits, from the documentation of stochastic rounding."""
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return (z ^ (z >> 31)) >> 32


def stochastic(x, digits, least, drawn):
    """Round a Fraction to some digits, not below 2^least; round up if the draw is below the tail."""
    if not x:
        return 0.0
    size = abs(x)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    e += (size >= Fraction(2) ** (e + 1)) - (size < Fraction(2) ** e)
    unit = Fraction(2) ** max(e - digits + 1, least)
    kept, rest = divmod(size, unit)
    kept += drawn < math.floor(rest / unit * (1 << 32))
    return math.copysign(float(kept * unit), x)


def exact(x):
    return Fraction(*float(x).as_integer_ratio())


def plain(w, gradients, lr, kind):
    w, lr = kind(w), kind(lr)
    for g in gradients:
        w = w - lr * kind(g)
        yield float(w)


def master(w, gradients, lr, kind, scale=1.0):
    m, lr = SINGLE(w), SINGLE(lr)
    for g in gradients:
        scaled = kind(g * scale)
        m = m - lr * (SINGLE(scaled) * SINGLE(1 / scale))
        yield float(kind(m))


def drawn(w, gradients, lr, kind, digits, least, seed):
    w, lr = kind(w), kind(lr)
    for k, g in enumerate(gradients):
        update = lr * kind(g)
        w = kind(stochastic(exact(w) - exact(update), digits, least, draw(seed, k)))
        yield float(w)


def kahan(w, gradients, lr, kind):
    w, lr, c = kind(w), kind(lr), kind(0)
    for g in gradients:
        y = lr * kind(g) + c
        t = w - y
        c = (t - w) + y
        w = t
        yield float(w)


def wide(w, gradients, lr, kind):
    w, lr = kind(w), SINGLE(lr)
    for g in gradients:
        w = kind(SINGLE(w) - lr * SINGLE(kind(g)))
        yield float(w)


def dynamic(w, gradients, lr, kind, scale, interval):
    """Skip and halve on overflow, double after `interval` good steps in a row: torch.amp.GradScaler's rules."""
    m, lr, good = SINGLE(w), SINGLE(lr), 0
    for g in gradients:
        with np.errstate(over="ignore"):
            scaled = kind(g * scale)
        if np.isfinite(scaled):
            m = m - lr * (SINGLE(scaled) * SINGLE(1 / scale))
            good += 1
            if good == interval:
                scale, good = scale * 2, 0
        else:
            scale, good = scale / 2, 0
        yield float(kind(m))


def momentum(w, gradients, lr, kind, mu):
    w, lr, mu, b = kind(w), kind(lr), kind(mu), kind(0)
    for g in gradients:
        b = mu * b + kind(g)
        w = w - lr * b
        yield float(w)


def adam(w, gradients, lr, kind, decay=0.0, betas=(0.9, 0.999), eps=1e-8):
    w, m, v = kind(w), kind(0), kind(0)
    for t, g in enumerate(gradients, 1):
        g = kind(g)
        base = w * kind(1 - lr * decay) if decay else w
        m = kind(betas[0]) * m + kind(1 - betas[0]) * g
        v = kind(betas[1]) * v + kind(1 - betas[1]) * (g * g)
        r = kind(np.sqrt(v)) / kind(math.sqrt(1 - betas[1] ** t)) + kind(eps)
        w = base - kind(lr / (1 - betas[0] ** t)) * (m / r)
        yield float(w)


def blocks(w, gradients, lr):
    """Weights in blocks of 32 of mxfp8_e4m3 (scale: the power of two of the largest, less 8), with a master copy."""
    m, lr = SINGLE(w), SINGLE(lr)
    for g in gradients:
        m = m - lr * SINGLE(g)
        largest = np.abs(m.reshape(-1, 32)).max(axis=1, keepdims=True)
        scale = SINGLE(2.0) ** np.floor(np.log2(largest) - 8)
        kept = np.clip(m.reshape(-1, 32) / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(SINGLE)
        yield (kept * scale).reshape(-1).astype(np.float64)
