"""The expression language for schedules: `serial`, `blocked(64, lanes(8), pairwise)`, `((0 1) (2 3))`.

schedule   a name, a name with arguments such as name(argument, …), or a tree
argument   a number, a schedule, up or down (for `sorted`), or term numbers in brackets (for `permuted`)
tree       brackets around two or more term numbers or trees, with spaces between them; or (0), for a single term
"""

from __future__ import annotations

from collections.abc import Callable

from floatlab.errors import FormatError, PlanError, guess, quoted
from floatlab.formats import parse_format
from floatlab.reduce.plan.grouped_schedules import KINDS
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import MAX_TERMS, NAMED, ExplicitTree, Schedule, Sorted
from floatlab.tokens import TokenReader

MAX_LENGTH = 1 << 20
_MAX_DEPTH = 24
_TOKEN = r"[A-Za-z_][A-Za-z_0-9-]*|[0-9]+|."


def parse_schedule(text: str | Schedule | Plan) -> Schedule:
    """Return the schedule that an expression describes.

    Parameters
    ----------
    text : str, Schedule or Plan
        An expression, such as "blocked(64, lanes(8), pairwise)" or "((0 1) (2 3))". A Schedule is returned unchanged; a
        Plan becomes an explicit tree.

    Returns
    -------
    Schedule
        The order of addition.

    Raises
    ------
    PlanError
        If the text does not parse (the message marks the place with a caret) or is too long, or if the argument has
        another type.

    Examples
    --------
    >>> parse_schedule("blocked(64, lanes(8), pairwise)").inner
    Schedule(lanes(8))
    >>> parse_schedule("((0 1) (2 3))").plan(4).depth
    2
    """
    if isinstance(text, Schedule):
        return text
    if isinstance(text, Plan):
        return ExplicitTree(text)
    if not isinstance(text, str):
        raise PlanError(f"a schedule must be text, a Schedule or a Plan, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise PlanError(f"a schedule must have at most {MAX_LENGTH:,} characters, not {len(text):,}")
    return _Reader(text).whole()


class _Reader:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = TokenReader(text, _TOKEN)

    def _refuse(self, what: str, place: int) -> PlanError:
        return PlanError(self.tokens.marked(what, place))

    def whole(self) -> Schedule:
        """Parse the whole text as one schedule."""
        schedule = self._schedule(0)
        token, place = self.tokens.take()
        if token:
            raise self._refuse(f"the schedule ends before {_named(token)}", place)
        return schedule

    def _schedule(self, depth: int) -> Schedule:
        token, place = self.tokens.take()
        if depth > _MAX_DEPTH:
            raise self._refuse(f"schedules are nested at most {_MAX_DEPTH} deep", place)
        if token == "(":
            tree = tuple(self._tree(place))
            return self._made(lambda: ExplicitTree(Plan(1, ()) if tree == (0,) else Plan.from_tree(tree)), place)
        name = token.lower().replace("-", "")
        if name in NAMED:
            return NAMED[name]
        if name not in KINDS:
            if token == self.tokens.text.strip() and _is_format(token):
                raise self._refuse(f"{_named(token)} is a format, not a schedule: format={token!r} (-f {token})", place)
            known = sorted([*NAMED, *KINDS])
            hint = guess(name, known) if name[:1].isalpha() else ""
            raise self._refuse(f"{_named(token)} is not a schedule: {' '.join(known)}{hint}", place)
        kind = KINDS[name]
        values = self._arguments(kind, place, depth)
        if kind is Sorted and depth:
            raise self._refuse("sorted is allowed only outermost, since it sorts all terms", place)
        return self._made(lambda: kind(*values), place)

    def _made(self, make: Callable[[], Schedule], place: int) -> Schedule:
        """Call `make`. If it raises PlanError, the new message marks the position `place`."""
        try:
            return make()
        except PlanError as error:
            raise self._refuse(str(error), place) from None

    def _arguments(self, kind: type[Schedule], place: int, depth: int) -> list[object]:
        values: list[object] = []
        if self.tokens.peek() == "(":
            self.tokens.take()
            while values or self.tokens.peek() != ")":
                if (most := len(values)) == len(kind.signature):
                    counted = f"{most} argument{'s' * (most != 1)}" if most else "no arguments"
                    raise self._refuse(f"{kind.word} takes {counted}; this is one too many", self.tokens.place)
                values.append(self._argument(kind, kind.signature[most][0], depth))
                if self.tokens.peek() != ",":
                    break
                self.tokens.take()
            token, closed = self.tokens.take()
            if token != ")":
                raise self._refuse(f"{_named(token)} is where the ')' of {kind.word}( should be", closed)
        needed = sum(default is None for _, default in kind.signature)
        if len(values) < needed:
            raise self._refuse(f"{kind.word} needs {_usage(kind)}", place)
        return values

    def _argument(self, kind: type[Schedule], what: str, depth: int) -> object:
        token, place = self.tokens.peek(), self.tokens.place
        if what == "schedule":
            return self._schedule(depth + 1)
        if what == "order":
            if token != "(":
                raise self._refuse(f"{kind.word} must be given terms such as (2 0 1), not {_named(token)}", place)
            self.tokens.take()
            tree = self._tree(place)
            if not all(isinstance(each, int) for each in tree):
                raise self._refuse(f"{kind.word} takes terms, without brackets between them", place)
            return tuple(tree)
        self.tokens.take()
        if what == "way":
            if token.lower() not in ("up", "down"):
                raise self._refuse(f"the direction of {kind.word} must be up or down, not {_named(token)}", place)
            return token.lower()
        return self._number(token, place, f"{kind.word} takes a number")

    def _number(self, token: str, place: int, wanted: str) -> int:
        if not (token.isascii() and token.isdigit()):
            raise self._refuse(f"{wanted}, not {_named(token)}", place)
        digits = token.lstrip("0") or "0"
        if len(digits) > 9 or int(digits) > MAX_TERMS:
            raise self._refuse("numbers in a schedule are at most 2^28", place)
        return int(digits)

    def _tree(self, place: int) -> list[object]:
        """Read a tree whose opening bracket has been read; return its term numbers and subtrees."""
        open_ones: list[list[object]] = [[]]
        places = [place]
        while True:
            token, here = self.tokens.take()
            if token == "(":
                open_ones.append([])
                places.append(here)
            elif token == ")":
                done, start = open_ones.pop(), places.pop()
                if not open_ones:
                    return done
                if len(done) < 2:
                    raise self._refuse("a node adds two numbers or more", start)
                open_ones[-1].append(tuple(done))
            elif token == "":
                raise self._refuse("a bracket is never closed", places[-1])
            else:
                open_ones[-1].append(self._number(token, here, "a tree takes a term number or a bracket"))


def _named(token: str) -> str:
    return quoted(token) if token else "the end"


def _is_format(word: str) -> bool:
    try:
        parse_format(word)
    except FormatError:
        return False
    return True


def _usage(kind: type[Schedule]) -> str:
    words = {"schedule": "a schedule", "order": "terms such as (2 0 1)"}
    needed = [words.get(what, "a number") for what, default in kind.signature if default is None]
    return " and ".join(needed) + f", as in {_EXAMPLES.get(kind.word, kind.word + '(8)')}"


_EXAMPLES = {"permuted": "permuted((2 0 1))", "unrolled": "unrolled(8, lanes(8))"}
