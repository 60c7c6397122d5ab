"""GGUF files with arbitrary contents, valid or not."""

import struct

import numpy as np

STRING, ARRAY, UINT8, UINT32 = 8, 9, 0, 4


def text(value, length=None):
    octets = value.encode()
    return struct.pack("<Q", len(octets) if length is None else length) + octets


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def entry(name="a", dims=(32,), kind=0, offset=0, axes=None):
    """Return the entry of a tensor; `dims` begins with the length of a row."""
    count = len(dims) if axes is None else axes
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", count, *dims, kind, offset)


def gguf(entries=(), data=b"", keys=(), version=3, tensors=None, pairs=None, magic=b"GGUF"):
    """Return a file with these entries, each as `entry` returns it; the counts may be wrong."""
    header = magic + struct.pack("<I", version)
    header += struct.pack("<QQ", len(entries) if tensors is None else tensors, len(keys) if pairs is None else pairs)
    header += b"".join(keys) + b"".join(entries)
    return header + b"\0" * (-len(header) % 32) + data


FLOATS = np.arange(32, dtype="<f4").tobytes()
GGUF = {
    "wrong magic": gguf([entry()], FLOATS, magic=b"GGUG"),
    "version 1": gguf([entry()], FLOATS, version=1),
    "other byte order": gguf([entry()], FLOATS, version=3 << 24),
    "cut in the header": gguf([entry()], FLOATS)[:40],
    "cut in the tensors": gguf([entry()], FLOATS[:-1]),
    "absurd number of tensors": gguf([entry()], FLOATS, tensors=1 << 63),
    "absurd number of keys": gguf([entry()], FLOATS, pairs=1 << 62),
    "too many tensors for the file": gguf([entry()], FLOATS, tensors=1000),
    "absurd length of a key": gguf([entry()], FLOATS, [text("k", 1 << 62)]),
    "absurd length of a name": gguf([text("a", 1 << 40)], FLOATS),
    "absurd length of a text": gguf([entry()], FLOATS, [key("k", STRING, text("v", 1 << 60))]),
    "absurd array": gguf([entry()], FLOATS, [key("k", ARRAY, struct.pack("<IQ", UINT8, 1 << 60))]),
    "absurd array of texts": gguf([entry()], FLOATS, [key("k", ARRAY, struct.pack("<IQ", STRING, 1 << 60))]),
    "arrays in arrays": gguf([entry()], FLOATS, [key("k", ARRAY, struct.pack("<IQ", ARRAY, 1) * 9)]),
    "unknown type of a value": gguf([entry()], FLOATS, [key("k", 99, b"\0" * 8)]),
    "a key twice": gguf([entry()], FLOATS, [key("k", UINT8, b"\1")] * 2),
    "a tensor twice": gguf([entry(), entry(offset=128)], FLOATS * 2),
    "absurd number of axes": gguf([entry(axes=1 << 31)], FLOATS),
    "a shape that overflows": gguf([entry(dims=(1 << 62, 1 << 62))], FLOATS),
    "a shape of the whole memory": gguf([entry(dims=(1 << 40,))], FLOATS),
    "unknown type of a tensor": gguf([entry(kind=77)], FLOATS),
    "rows that are no blocks": gguf([entry(dims=(33,), kind=2)], FLOATS),
    "a place that is not aligned": gguf([entry(offset=4)], FLOATS * 2),
    "a place beyond the file": gguf([entry(offset=1 << 50)], FLOATS),
    "tensors that overlap": gguf([entry(), entry("b", offset=32)], FLOATS * 2),
    "alignment 0": gguf([entry()], FLOATS, [key("general.alignment", UINT32, struct.pack("<I", 0))]),
    "alignment of 4 GB": gguf([entry()], FLOATS, [key("general.alignment", UINT32, b"\xff" * 4)]),
    "a name that is no text": gguf([struct.pack("<Q", 2) + b"\xff\xfe" + entry()[9:]], FLOATS),
    "a million texts and no end": gguf(
        [], b"\0" * (8 << 20), [key("k", ARRAY, struct.pack("<IQ", STRING, (1 << 20) + 1000))], tensors=1
    ),
    "a type that is not read": gguf([entry(dims=(256,), kind=16)], b"\0" * 66),
}
