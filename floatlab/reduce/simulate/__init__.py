"""Evaluates reductions along a plan: node by node with derivations, on whole arrays, and as models of matrix units."""
