"""How answers show themselves: one hook, behind which the package's face puts what draws pages.

Answers live on every floor, and pages are drawn on the upper ones. An answer asks the hook, and the hook the package's
face, which opens the rooms above when the first page is asked for. So no module imports upward.
"""

from __future__ import annotations

import sys

from floatlab.errors import TruthValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Page(Protocol):
        """What a page can do: `floatlab.page.model.Page`, which stands above."""

        @property
        def title(self) -> str:
            """What the page is about, in one line."""

        def text(self, width: int = 80) -> str:
            """Return the page as text."""

        def svg(self, width: int = 80) -> str:
            """Return the page as an SVG document."""

    class Presenter(Protocol):
        """What draws: `floatlab.verbs.presenting`."""

        def page_of(self, found: object) -> Page:
            """Return an answer's page."""

        def json_of(self, found: object) -> str:
            """Return an answer's JSON, as the command line writes it."""

        def text_of(self, page: Any, width: int) -> str:
            """Return a page as text."""

        def svg_of(self, page: Any, width: int) -> str:
            """Return a page as an SVG document."""


def presenter() -> Presenter:
    """Return what draws pages, which the package's face opens."""
    face: Any = sys.modules[__name__.partition(".")[0]]  # a package is there before its modules
    opened: Presenter = face._presenter()
    return opened


class Drawn:
    """What has a page, a picture and JSON."""

    __slots__ = ()

    def page(self) -> Page:
        """Return the page that the command line shows for this answer; `print` shows it, `.text(width)` sets it."""
        return presenter().page_of(self)

    def svg(self, width: int = 80) -> str:
        """Return the page as an SVG document, `width` columns wide."""
        return presenter().svg_of(self.page(), width)

    def to_json(self) -> str:
        """Return the JSON that the command line writes with `--json`: one object a line."""
        return presenter().json_of(self)

    def _repr_html_(self) -> str:
        """Return the picture for notebooks."""
        return self.svg()


class Answering(Drawn):
    """What answers a question: `print` shows its page, `repr` is one line.

    An answer is neither true nor false: `if compare(a, b)` would otherwise always be true. `_ASKS` names what to ask
    instead.
    """

    __slots__ = ()
    _ASKS = ".result"

    def __str__(self) -> str:
        """Return the page as text, 80 columns wide."""
        return presenter().text_of(self.page(), 80).rstrip("\n")

    def __bool__(self) -> bool:
        """Refuse; raises TruthValueError, which says what to ask."""
        raise TruthValueError(f"{type(self).__name__} is neither true nor false: ask {self._ASKS}")
