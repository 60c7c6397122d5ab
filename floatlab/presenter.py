"""The presenter hook: answers are displayed through it, and `floatlab/__init__.py` provides the renderer.

Answers (the results of floatlab's functions) are defined in every layer, but pages are drawn in the upper layers. An
answer calls the hook, and the hook calls the `floatlab` package, which imports the upper layers when the first page is
requested. So no module imports from a higher layer.
"""

from __future__ import annotations

import sys

from floatlab.errors import TruthValueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Page(Protocol):
        """The interface of a page; `floatlab.page.model.Page`, on a higher layer, implements it."""

        @property
        def title(self) -> str:
            """The page's subject, in one line."""

        def text(self, width: int = 80) -> str:
            """Return the page as text."""

        def svg(self, width: int = 80) -> str:
            """Return the page as an SVG document."""

    class Presenter(Protocol):
        """The interface of the renderer; `floatlab.verbs.presenting` implements it."""

        def page_of(self, found: object) -> Page:
            """Return an answer's page."""

        def json_of(self, found: object) -> str:
            """Return an answer's JSON, as the command line writes it."""

        def text_of(self, page: Any, width: int) -> str:
            """Return a page as text."""

        def svg_of(self, page: Any, width: int) -> str:
            """Return a page as an SVG document."""


def presenter() -> Presenter:
    """Return the presenter, which the `floatlab` package imports at the first call."""
    face: Any = sys.modules[__name__.partition(".")[0]]  # already imported: Python imports a package before its modules
    opened: Presenter = face._presenter()
    return opened


class Drawn:
    """Base class of results that can be shown as a page, as an SVG picture and as JSON."""

    __slots__ = ()

    def page(self) -> Page:
        """Return the page that the command line shows for this result.

        `print` shows the page. The page has a method `text(width)`, which returns the page as text.
        """
        return presenter().page_of(self)

    def svg(self, width: int = 80) -> str:
        """Return the page as an SVG document, `width` columns wide."""
        return presenter().svg_of(self.page(), width)

    def to_json(self) -> str:
        """Return the JSON that the command line writes with `--json`: one object per line."""
        return presenter().json_of(self)

    def _repr_html_(self) -> str:
        """Return the page as an SVG picture, for notebooks."""
        return self.svg()


class Answering(Drawn):
    """Base class of results that have no truth value. `print` shows the result's page, and `repr` gives one line.

    Without this class, Python would take every result as true, and `if compare(a, b)` would always run its body.
    `_ASKS` names the attributes to use as conditions instead.
    """

    __slots__ = ()
    _ASKS = ".result"

    def __str__(self) -> str:
        """Return the page as text, 80 columns wide."""
        return presenter().text_of(self.page(), 80).rstrip("\n")

    def __bool__(self) -> bool:
        """Raise TruthValueError, which names the attributes to use instead."""
        raise TruthValueError(f"{type(self).__name__} has no truth value: use {self._ASKS}")
