"""A matrix product computed in tiles of 6 × 8, whose edges are added in another order, as real libraries do."""

import numpy as np


def product(a, b):
    products = a[:, :, None] * b
    made = np.cumsum(products, axis=1)[:, -1]
    rows, columns = len(a) - len(a) % 6, b.shape[1] - b.shape[1] % 8
    made[rows:] = np.cumsum(products[rows:, ::-1], axis=1)[:, -1]
    made[:, columns:] = sum(np.cumsum(products[:, lane::2, columns:], axis=1)[:, -1] for lane in range(2))
    return made
