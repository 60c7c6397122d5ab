"""Implementations of matrix products made at random: tiles, trees, fused products, split sums, remainders, and partial
sums that are kept in a narrower format.

floatlab is not used here. Sums are NumPy sums of whole tiles. A fused multiply-add of binary32 is computed in binary64;
its sum is rounded to odd, and then to binary32.
"""

import numpy as np


def fma(a, b, c):
    """Return a·b + c of binary32, rounded once."""
    product, c = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + c
    other = total - product
    missed = (product - (total - other)) + (c - other)
    bits = total.view(np.int64)
    toward = np.where((missed > 0) == (total > 0), 0, -1)  # is the exact value larger, or smaller?
    odd = np.where((missed != 0) & (total != 0), (bits + toward) | 1, bits)
    return odd.view(np.float64).astype(np.float32)


class Tree:
    """An order of additions: a number for a term, or a pair of trees and which of them is fused: 0, 1 or None."""

    def __init__(self, rng, terms, depth=0):
        self.rng = rng
        self.root = self.build(list(terms), depth)

    def build(self, terms, depth):
        rng = self.rng
        if len(terms) == 1:
            return terms[0]
        match rng.integers(0, 7 if depth < 2 else 4):
            case 0:
                return self.chain(terms)
            case 1:
                return self.chain(terms[::-1])
            case 2:
                half = len(terms) // 2
                return self.join(self.build(terms[:half], depth + 1), self.build(terms[half:], depth + 1))
            case 3 if len(terms) < 24:  # any tree
                trees = list(terms)
                while len(trees) > 1:
                    i, j = rng.choice(len(trees), 2, replace=False)
                    joined = self.join(trees[i], trees[j])
                    trees = [tree for k, tree in enumerate(trees) if k not in (i, j)] + [joined]
                return trees[0]
            case 4:  # lanes
                count = int(rng.integers(2, 9))
                parts = [terms[lane::count] for lane in range(min(count, len(terms)))]
                return self.chain([self.build(part, 9) for part in parts])
            case 5:  # blocks
                length = int(rng.integers(1, len(terms)))
                parts = [terms[low : low + length] for low in range(0, len(terms), length)]
                return self.chain([self.build(part, depth + 1) for part in parts])
            case _:  # a main part, and the remainder one by one
                main = len(terms) - len(terms) % int(rng.integers(2, 9))
                head = [self.build(terms[:main], depth + 1)] if main else []
                return self.chain(head + terms[main:])

    def chain(self, trees):
        whole = trees[0]
        for tree in trees[1:]:
            whole = self.join(whole, tree)
        return whole

    def join(self, one, other):
        leaves = [place for place, tree in enumerate((one, other)) if isinstance(tree, int)]
        return one, other, int(self.rng.choice(leaves)) if leaves else None


def rounded(x, digits):
    """Return numbers rounded to some digits, to the nearest, ties to even; for 11 digits within binary16's range."""
    if digits == 11:
        return x.astype(np.float16).astype(x.dtype)
    fraction, exponent = np.frexp(x)
    return np.ldexp(np.rint(np.ldexp(fraction, digits)), exponent - digits).astype(x.dtype)


class Kernel:
    """How a tile is computed: a tree; whether all, none or some products that can be are fused; which sums are kept.

    With `keeps`, some partial sums are rounded to binary16 or bfloat16 (to binary32 or bfloat16 where sums are wider).
    """

    def __init__(self, rng, terms, keeps=False):
        self.tree = Tree(rng, range(terms)).root
        self.mode = rng.choice(["all", "none", "some", "wide"], p=[0.4, 0.35, 0.15, 0.1])
        self.seed = int(rng.integers(1 << 30))
        self.keeps = keeps

    def __call__(self, a, b):
        rng = np.random.default_rng(self.seed)
        into = a.dtype
        if self.mode == "wide":
            a, b = a.astype(np.float64), b.astype(np.float64)

        def product(k):
            return a[:, k, None] * b[None, k]

        choice = np.random.default_rng([self.seed, 1])
        digits = int(choice.choice([8, 11] if a.dtype == np.float32 else [8, 24]))
        share = choice.choice([0.05, 0.3, 1])

        def value(tree):
            made = computed(tree)
            if self.keeps and not isinstance(tree, int) and choice.random() < share:
                return rounded(made, digits)
            return made

        def computed(tree):
            if isinstance(tree, int):
                return product(tree)
            one, other, place = tree
            fuses = self.mode == "all" or (self.mode == "some" and rng.random() < 0.5)
            if place is not None and fuses and a.dtype == np.float32:
                leaf, rest = (one, other) if place == 0 else (other, one)
                rest = value(rest)
                wide = np.broadcast_arrays(a[:, leaf, None], b[None, leaf])
                return fma(*wide, rest)
            return value(one) + value(other)

        return value(self.tree).astype(into)


class Generated:
    """A matrix product of one shape, whose tiles are computed by different kernels."""

    def __init__(self, seed, keeps=False):
        rng = np.random.default_rng(seed)
        self.shape = tuple(int(side) for side in rng.integers(1, (40, 70, 40), 3))
        rows, terms, columns = self.shape
        self.dtype = str(rng.choice(["float32", "float32", "float64"]))
        kernels = [Kernel(rng, terms, keeps and bool(i % 2 == 0)) for i in range(rng.integers(1, 5))]
        self.kernels = kernels
        height, width = (int(rng.integers(1, side + 1)) for side in (rows, columns))
        style = rng.choice(["edges", "alternating", "any", "threads"])
        which = np.zeros((rows, columns), int)
        i, j = np.arange(rows)[:, None], np.arange(columns)[None]
        if style == "edges":
            which += 1 * (i >= rows - rows % height) + 2 * (j >= columns - columns % width)
        elif style == "alternating":
            which += i // height + 2 * (j // width)
        elif style == "threads":
            which += (i >= height) + 0 * j
        else:
            which = rng.integers(0, 4, (-(-rows // height), -(-columns // width)))[i // height, j // width]
        self.which = which % len(kernels)

    def __call__(self, a, b):
        made = np.empty((a.shape[0], b.shape[1]), a.dtype)
        for number, kernel in enumerate(self.kernels):
            places = self.which == number
            if places.any():
                made[places] = kernel(a, b)[places]
        return made
