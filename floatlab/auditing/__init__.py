"""Audits of checkpoints: reads quantised checkpoints as numbers, and compares two checkpoints tensor by tensor."""
