"""Evaluates reductions in a given order: one sum with derivations, many sums on arrays, or as matrix units do."""
