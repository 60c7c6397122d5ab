"""Checkpoints: the named tensors of a model, in one file, in several files, or in memory. Each is read in pieces."""

from floatlab.files.checkpoints.checkpoint import Checkpoint, StoredTensor, matching
from floatlab.files.checkpoints.opening import has_several, open_checkpoint

__all__ = ["Checkpoint", "StoredTensor", "has_several", "matching", "open_checkpoint"]
