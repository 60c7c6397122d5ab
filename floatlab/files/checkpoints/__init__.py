"""Checkpoints: the named tensors of a model, in one file, in several files, or in memory; read piece by piece."""

from floatlab.files.checkpoints.checkpoint import Checkpoint, StoredTensor, matching
from floatlab.files.checkpoints.opening import has_several, open_checkpoint
from floatlab.files.checkpoints.states import FileState, states_of

__all__ = ["Checkpoint", "FileState", "StoredTensor", "has_several", "matching", "open_checkpoint", "states_of"]
