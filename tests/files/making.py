"""Files with arbitrary contents, which no library would write."""

import io
import json

import numpy as np


def safetensors(header, data=b"", length=None):
    """Return a safetensors file with this header (text, or an object for JSON), which may have a wrong length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)} | more


def npy(array, shape=None, descr=None):
    """Return a `.npy` file whose header may have a wrong shape or dtype."""
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=array.dtype.hasobject)
    found = out.getvalue()
    if shape is not None:
        found = found.replace(str(array.shape).encode(), shape.encode(), 1)
    if descr is not None:
        found = found.replace(f"'{array.dtype.str}'".encode(), descr.encode(), 1)
    return found
