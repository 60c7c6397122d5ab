"""Reductions computed along a plan: one node at a time, on whole arrays, and as models of matrix units."""
