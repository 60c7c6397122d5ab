"""The quantisation settings in the configuration files beside a checkpoint."""

from __future__ import annotations

from floatlab.errors import FileFormatError, quoted
from floatlab.files.checkpoints import Checkpoint
from floatlab.record import Individual

_PLACES = (
    ("config.json", "quantization_config"),
    ("config.json", "compression_config"),
    ("hf_quant_config.json", "quantization"),
    ("config.json", "quantization"),  # MLX
)
_LARGEST = 1 << 31


class QuantizationSettings(Individual):
    """The quantisation settings in a configuration file.

    `method` is a name such as modelopt or gptq, or empty if the file names no method. `source` is the name of the file.
    Layers may have different settings: `groups` has all group sizes in the file, `blocks` all block shapes, and `bits`
    all widths of codes. A group size of −1 (a whole row) is left out. `symmetric` has a triple for each group of
    layers: the width of the codes, the group size (0 if rows are not divided), and True if the codes have no zero
    points. `options` has the settings as they are in the file.
    """

    method: str = ""
    source: str = ""
    groups: frozenset[int] = frozenset()
    blocks: frozenset[tuple[int, int]] = frozenset()
    bits: frozenset[int] = frozenset()
    symmetric: tuple[tuple[int, int, bool], ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    def option(self, name: str) -> object:
        """Return the setting with this name, or None if there is none."""
        return dict(self.options).get(name)

    def needs_zero_points(self, bits: int, size: int, length: int) -> bool | None:
        """Return whether integers of this width have zero points, or None if the configuration does not tell.

        `size` is the number of elements in a group, and `length` is the number of elements in a row.
        """
        said = {not is_symmetric for width, group, is_symmetric in self.symmetric if width == bits
                and (group or length) == size}  # fmt: skip
        return said.pop() if len(said) == 1 else None

    def evidence(self, *methods: str) -> str:
        """Say in words how a convention was recognised; `methods` are the convention's names in configuration files."""
        if not self.method:
            return "names and shapes"
        if self.method in methods:
            return f"names, shapes and {self.source} ({self.method})"
        return f"names and shapes, although {self.source} says {quoted(self.method)}"


def read_settings(checkpoint: Checkpoint) -> QuantizationSettings:
    """Return the settings of a checkpoint; raises FileFormatError for impossible group sizes or block shapes."""
    for file, member in _PLACES:
        found = checkpoint.configs.get(file, {}).get(member)
        if isinstance(found, dict):
            method = found.get("quant_method") or _producer(checkpoint.configs[file]) or _mlx(found)
            return _settings(str(method or ""), file, found)
    return QuantizationSettings()


def _producer(config: dict[str, object]) -> object:
    """Return the name of the library that wrote hf_quant_config.json."""
    producer = config.get("producer")
    return producer.get("name") if isinstance(producer, dict) else None


def _mlx(said: dict[str, object]) -> str:
    """Return "mlx" for settings of MLX, which do not name a method, and "" for all others."""
    return "mlx" if {"group_size", "bits"} <= said.keys() else ""


def _settings(method: str, file: str, said: dict[str, object]) -> QuantizationSettings:
    parts = [said]
    groups = said.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        parts += [weights] if isinstance(weights, dict) else []
    sizes = {_size(file, "group_size", part["group_size"]) for part in parts if part.get("group_size") is not None}
    # Other methods may have widths that are not integers, such as 4.25. These are not needed here.
    widths = [part.get(name) for part in parts for name in ("bits", "num_bits")]
    bits = {width for width in widths if type(width) is int}
    blocks = set()
    for part in parts:
        for name in ("weight_block_size", "block_structure"):
            if (shape := part.get(name)) is not None:
                if not isinstance(shape, list) or len(shape) != 2:
                    raise FileFormatError(f"{file} has {name} = {quoted(str(shape))}, which is not a block shape")
                blocks.add((_size(file, name, shape[0]), _size(file, name, shape[1])))
    symmetric = tuple(
        (width, size if type(size := part.get("group_size")) is int and size > 0 else 0, is_symmetric)
        for part in parts
        if type(width := part.get("num_bits")) is int and isinstance(is_symmetric := part.get("symmetric"), bool)
    )
    return QuantizationSettings(
        method=method, source=file, groups=frozenset(sizes - {-1}), blocks=frozenset(blocks), bits=frozenset(bits),
        symmetric=symmetric, options=tuple(said.items()),
    )  # fmt: skip


def _size(file: str, name: str, value: object) -> int:
    if type(value) is not int or not (1 <= value < _LARGEST or (value == -1 and name == "group_size")):
        raise FileFormatError(f"{file} has {name} = {quoted(str(value))}, which is not a size")
    return value
