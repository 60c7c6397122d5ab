"""A question: a verb with everything that it takes, as a value that can be asked, kept, changed and written down.

An `Answer` is what it is answered with: one model that can be looked at, read by programs, or taken as one word.
A `Verb` is what the command line, `--help`, completion and the explorer know of a verb: it makes questions of words,
and words of questions.
"""

from __future__ import annotations

from collections.abc import Callable

from floatlab.errors import FloatlabError, LiteralError, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import SHORTHANDS, short_name
from floatlab.numbers.datum import Datum, hexadecimal_code, shortest
from floatlab.numbers.exact import Code, Literal
from floatlab.numbers.reading import parse_literal
from floatlab.numbers.rounding import DEFAULT, Context
from floatlab.record import Record
from floatlab.verbs.option import Option, OptionRule, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from floatlab.numbers import Datum, Derivation, Flags
    from floatlab.page.model import Chart, Line, Page
    from floatlab.wire.codecs import Wire


class Question(Record):
    """What is asked: a verb, its values as they were typed, formats, a context, and the options that are not default.

    >>> from floatlab import parse_format
    >>> from floatlab.verbs.registry import command_of
    >>> question = Question("add", ("1.125", "0.1"), (parse_format("fp16"),), Context(rounding="RTZ"))
    >>> command_of(question.having(brief=True))
    'floatlab add 1.125 0.1 --fp16 -r RTZ --brief'
    """

    verb: str
    values: tuple[str, ...] = ()
    formats: tuple[Format, ...] = ()
    context: Context = DEFAULT
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str, default: Any = None) -> Any:
        """Return an option, or its default."""
        return dict(self.options).get(name, default)

    def having(self, **options: Any) -> Question:
        """Return the question with some options set, or taken back with None.

        >>> Question("show", ("1",)).having(interval=True).having(interval=None).options
        ()
        """
        kept = {name: value for name, value in (dict(self.options) | options).items() if value is not None}
        return self.replace(options=tuple(sorted(kept.items())))

    def spelled_out(self) -> Question:
        """Return the question without `bits` and `little_endian`: its values say themselves what codes they are.

        Raises LiteralError or FormatError for values that cannot be read so.

        >>> asked = Question("show", ("0x7c3c@fp16", "bits:0x0038")).having(bits=True, little_endian=True)
        >>> asked.spelled_out().values
        ('bits:0x3c7c@fp16', 'bits:0x3800')
        """
        bits, swapped = self.option("bits", False), self.option("little_endian", False)
        if not bits and not swapped:
            return self
        values = []
        for value in self.values:
            literal = read_operand(value, bits)[0]
            _, at, format = value.rpartition("@")
            values.append(f"{(reversed_code(literal) if swapped else literal).text}{at}{format if at else ''}")
        return self.replace(values=tuple(values)).having(bits=None, little_endian=None)


# Is told how much work there is, and of what; returns a function that is told how much of it was done.
Started = Callable[[int, str], Callable[[int], None]]


class Scene(Record):
    """One step of a derivation as it is looked at.

    `page` holds everything seen so far, the newest rows marked; `reason` says why the step does
    what it does; `flags` are those raised so far, `separate_flags` those of the separate multiply-add
    beside a fused one; `frames` are pictures between the scene before and this one, such as the
    smaller term moving right; `steps` are the steps that it shows, each by its derivation and its
    place there.
    """

    name: str
    page: Page
    reason: Line
    flags: Flags
    frames: tuple[Page, ...] = ()
    steps: tuple[tuple[Derivation, int], ...] = ()
    separate_flags: Flags | None = None


class Answer(Record):
    """What a question was answered with; nothing is drawn or written before it is asked for.

    `page` draws it, `records` gives its JSON objects (one a line), `words` its values in the fewest
    characters, and `codes` its codes. `results` are the data found, and `parts` draws each by itself,
    where the page is a stack of such parts. `operands` are an operation's, as they were read, and
    `scenes` gives its page as a film, with strips of the operands' bits or without. `found` is the model itself, and
    `status` what a command exits with: 1 where the answer is a check that failed. `table` gives its numbers as CSV,
    and `chart` the picture that a plot is made of.
    """

    page: Callable[[], Page]
    records: Callable[[], list[Wire]]
    words: Callable[[], list[str]]
    codes: Callable[[], list[str]]
    hints: tuple[str, ...] = ()
    results: tuple[Datum, ...] = ()
    parts: Callable[[], list[Page]] = list
    operands: tuple[Datum, ...] = ()
    scenes: Callable[[bool], tuple[Scene, ...]] = lambda strips: ()
    missing: str = ""  # an optional part that would have said more: exit status 3
    found: Any = None
    status: int = 0
    table: Callable[[], str] | None = None
    chart: Callable[[], Chart] | None = None


def written(*answers: object) -> Callable[[], list[Wire]]:
    """Return what writes answers of any kind as JSON objects."""

    def records() -> list[Wire]:
        from floatlab.verbs.json_documents import document_of

        return [document_of(answer) for answer in answers]

    return records


def plain_answer(found: object, page: Callable[[], Page], *words: str) -> Answer:
    """Return the answer that is a page, one JSON object, and the same words for its values and its codes."""
    return Answer(page, written(found), lambda: [*words], lambda: [*words], found=found)


def answer_for(found: list[Derivation], interval: bool = False, hints: tuple[str, ...] = ()) -> Answer:
    """Return the answer that stacks the pages of these derivations."""

    def parts() -> list[Page]:
        from floatlab.page.datum import show_page

        return [show_page(each, interval) for each in found]

    def page() -> Page:
        from floatlab.page.model import joined

        return joined(parts())

    def records() -> list[Wire]:
        from floatlab.wire.derivations import interval_to_wire

        wires = written(*found)()
        if interval:
            for wire, each in zip(wires, found, strict=True):
                wire["interval"] = interval_to_wire(each.result, each.context)
        return wires

    results = tuple(each.result for each in found)
    words, codes = lambda: [*map(shortest, results)], lambda: [*map(hexadecimal_code, results)]
    return Answer(page, records, words, codes, hints, results, parts)


class Verb(Record):
    """What a verb is and takes.

    Parameters
    ----------
    summary, examples, explanation
        One line; commands that really run, without `floatlab`; what its values mean.
    takes
        The name of its values in `--help`, and what they are.
    options
        Its options, in the order of `--help`.
    rules
        Which of them exclude or need others.
    notes
        A sentence under the heading of a group of options.
    form
        Names the form of the verb that values ask for, where options belong to forms.
    one_format
        The error where several formats are named, with `{}` for their names; empty where they may be several.
    formats_by
        The error where -f is typed, and the verb names its formats in another way; it begins with that way.
    settle
        Checks and completes a question that was read by the table; raises UsageError.
    needs_values, joins
        Whether it needs values; whether those of a line of standard input make one question, and not one each.
    reads_array, reads_files
        Whether - among its values is an array on standard input; whether values may name files.
    plot
        Draws the figure of `--plot FILE` from the answer.
    also
        Words of other programs for what it does, and the command that they mean: "plus + → add A B".
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    explanation: str
    takes: tuple[str, str]
    options: tuple[Option, ...]
    rules: tuple[OptionRule, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    form: Callable[[tuple[str, ...]], str] | None = None
    one_format: str = ""
    formats_by: str = ""
    settle: Callable[[Question], Question] | None = None
    needs_values: bool = True
    joins: bool = False
    reads_array: bool = False
    reads_files: bool = False
    plot: Callable[[Answer, str], None] | None = None
    also: tuple[str, ...] = ()

    def question(self, values: Sequence[str], typed: Mapping[str, object]) -> Question:
        """Return the question that values and options ask, which the parser found; raises FloatlabError."""
        chosen: dict[str, tuple[Option, object]] = {}
        for option in self.options:
            found = typed.get(option.name)
            if found is None or option.name in chosen or (not option.metavar and found != option.value):
                continue
            if (value := option.value_of(found)) != option.default:
                chosen[option.name] = (option, value)
        context = Context(**{name: value for name, (option, value) in chosen.items() if option.part == "context"})  # type: ignore[arg-type]
        chosen = {
            name: (option, value)
            for name, (option, value) in chosen.items()
            if option.part != "context" or getattr(context, name) != getattr(DEFAULT, name)
        }
        form = "" if self.form is None else self.form(tuple(values))
        for option, _ in chosen.values():
            self._check(option, chosen, form)
        formats = next((value for option, value in chosen.values() if option.part == "formats"), ())
        assert isinstance(formats, tuple)
        if self.one_format and len(formats) > 1:
            raise UsageError(self.one_format.format(", ".join(format.name for format in formats)))
        kept = {name: value for name, (option, value) in chosen.items() if option.part == "options"}
        question = Question(self.name, tuple(values), formats, context).having(**kept)
        return question if self.settle is None else self.settle(question)

    def _check(self, option: Option, chosen: Mapping[str, object], form: str) -> None:
        """Refuse an option that would be ignored, or contradicts another."""
        if form and option.forms and form not in option.forms:
            where = " ".join(option.forms)
            raise UsageError(f"{option.flag} means nothing to {self.name} {form} (it goes with: {where})")
        for rule in self.rules:
            if option.name not in rule.options:
                continue
            for name in rule.excludes:
                if name in chosen and name != option.name:
                    raise UsageError(f"{option.flag} and {self.option(name).flag} exclude each other: {rule.reason}")
            if rule.needs and not set(rule.needs) & set(chosen):
                wanted = " or ".join(other.flag for other in self.options if other.name in rule.needs and other.help)
                raise UsageError(f"{option.flag} needs {wanted}: {rule.reason}")

    def words(self, question: Question) -> list[str]:
        """Return the words of the command that asks a question, as a shell takes them."""
        words = [self.name, *question.values]
        for option in self.options:
            if option.part == "context" and (value := getattr(question.context, option.name)) != getattr(
                DEFAULT, option.name
            ):
                words += option.spell(value)
            elif option.part == "formats" and option.name == "formats":
                for format in question.formats:
                    name = short_name(format)
                    words += [f"--{name}"] if name in SHORTHANDS else option.spell(format)
            elif option.part == "formats":
                words += option.spell(question.formats)
        for name, value in question.options:
            words += self.option(name, value).spell(value)
        return words

    def command(self, question: Question) -> str:
        """Return the command line that asks a question, to be pasted into a shell."""
        from shlex import join

        return join(["floatlab", *self.words(question)])

    def option(self, name: str, value: object = None) -> Option:
        """Return an option by its name, and of several switches of one name the one that stands for `value`."""
        found = [option for option in self.options if option.name == name]
        if not found:
            raise FloatlabError(f"{self.name} has no option {name}")
        return next((option for option in found if option.metavar or option.value == value), found[0])


def read_operand(text: str, bits: bool = False) -> tuple[Literal, Format | None]:
    """Return what VALUE, or VALUE@FORMAT, means; raises LiteralError and FormatError.

    >>> literal, format = read_operand("0.1@fp16")
    >>> literal.text, format and format.name, read_operand("0x3c00", bits=True)[0].text
    ('0.1', 'binary16', 'bits:0x3c00')
    """
    value, at, name = text.rpartition("@")
    if not at:
        return parse_literal(text, bits), None
    for noun, side, part in (("value", "before", value), ("format", "after", name)):
        if not part.strip():
            raise LiteralError(f"{quoted(text)}: VALUE@FORMAT needs a {noun} {side} the @")
    return parse_literal(value, bits), parse_format(name)


def code_of(datum: Datum) -> str:
    """Return the datum as a code with its format, which reads back whatever it is.

    >>> from floatlab import decode
    >>> code_of(decode(0x3C7C, "fp16"))
    'bits:0x3c7c@fp16'
    """
    return f"bits:{hexadecimal_code(datum)}@{short_name(datum.format)}"


def as_code(literal: Literal, option: str) -> Code:
    """Return a literal's code; raises LiteralError, naming the option that asks for one, where it is a number."""
    if not isinstance(literal.value, Code):
        raise LiteralError(f"{quoted(literal.text)}: {option} takes a code, such as bits:0x38")
    return literal.value


def reversed_code(literal: Literal) -> Literal:
    """Read a code's bytes from the other end.

    >>> reversed_code(parse_literal("bits:0x007c")).text
    'bits:0x7c00'
    """
    typed = as_code(literal, "--little-endian")
    if typed.width % 8:
        raise LiteralError(f"{quoted(literal.text)}: --little-endian takes whole bytes, and this is {typed.width} bits")
    flipped = int.from_bytes(typed.code.to_bytes(typed.width // 8, "big"), "little")
    return Literal(f"bits:0x{flipped:0{typed.width // 4}x}", typed.replace(code=flipped))
