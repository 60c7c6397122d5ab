"""The screens, one row each. Adding a screen is adding a row here and the class that it names."""

from __future__ import annotations

from importlib import import_module

from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.tui.screens.task import Task


class Entry(Record):
    """A screen: its name and title, the verbs whose questions it opens, where it starts, and where it lives.

    A `slow` one may take long to answer, and asks beside itself.
    """

    name: str
    title: str
    verbs: tuple[str, ...]
    start: tuple[str, ...]
    home: str
    slow: bool = False

    def load(self) -> type[Task]:
        """Import the screen's class; what is never opened is never imported."""
        module, _, name = self.home.partition(":")
        found: type[Task] = getattr(import_module(module), name)
        return found


_ENTRIES = (
    Entry(
        "inspect",
        "Inspect",
        ("show", "convert"),
        ("show", "1.12156456132", "--fp16", "--bf16", "--e4m3", "--fp32"),
        "floatlab.tui.screens.inspect.screen:Inspect",
    ),
    Entry(
        "arithmetic",
        "Arithmetic",
        ("add", "sub", "mul", "div", "rem", "sqrt", "fma", "cmp", "toint", "rint"),
        ("add", "1.125", "0.12457275390625", "--fp16"),
        "floatlab.tui.screens.arithmetic.screen:Arithmetic",
    ),
    Entry(
        "formats", "Formats", ("formats",), ("formats", "fp16", "bf16"), "floatlab.tui.screens.formats.screen:Catalogue"
    ),
    Entry(
        "reduce",
        "Reduce",
        ("sum", "dot", "matmul", "reveal"),
        ("dot", "--preset", "forum"),
        "floatlab.tui.screens.reduce.screen:Reduce",
        slow=True,
    ),
    Entry(
        "compare",
        "Compare",
        ("compare",),
        ("compare", "random:normal:64x64:seed=1@fp32", "random:normal:64x64:seed=1@bf16", "--fp32", "--rtol", "0.003"),
        "floatlab.tui.screens.compare.screen:Compare",
        slow=True,
    ),
    Entry(
        "train",
        "Train",
        ("train",),
        ("train", "1.125", "--update", "0.00041999", "--steps", "101", "--remedies", "plain,master,stochastic,kahan"),
        "floatlab.tui.screens.train.screen:Train",
        slow=True,
    ),
)

TASKS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def entry_for(verb: str) -> Entry | None:
    """Return the screen that opens a verb's questions."""
    return next((entry for entry in TASKS.values() if verb in entry.verbs), None)
