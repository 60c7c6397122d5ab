"""Whole checkpoints: quantised ones read as numbers, and two checkpoints compared tensor by tensor."""
