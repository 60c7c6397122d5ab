"""Evaluates reductions in a given order: node by node with derivations, on arrays, and as models of matrix units."""
