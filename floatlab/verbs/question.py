"""A question: a verb with all its arguments. It can be answered, stored, changed and written as a command.

An `Answer` is the result of a question; it can be rendered as a page, as JSON or as a short text. A `Verb` describes a
verb for the command line, `--help`, completion and the explorer. It converts command-line arguments to questions, and
questions to command lines.
"""

from __future__ import annotations

from collections.abc import Callable

from floatlab.errors import FloatlabError, LiteralError, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import SHORTHANDS, short_name
from floatlab.numbers.datum import Datum, hexadecimal_code, shortest
from floatlab.numbers.exact import Code, Literal
from floatlab.numbers.reading import parse_literal
from floatlab.numbers.rounding import DEFAULT, Context, Direction
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
    """A verb with its values as typed, its formats, a context, and the options that differ from their defaults.

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
        """Return the value of an option, or `default` if the question does not set it."""
        return dict(self.options).get(name, default)

    def having(self, **options: Any) -> Question:
        """Return the question with some options set; the value None resets an option to its default.

        >>> Question("show", ("1",)).having(interval=True).having(interval=None).options
        ()
        """
        kept = {name: value for name, value in (dict(self.options) | options).items() if value is not None}
        return self.replace(options=tuple(sorted(kept.items())))

    def spelled_out(self) -> Question:
        """Return an equivalent question that needs neither `bits` nor `little_endian`: its values are explicit codes.

        Raises LiteralError or FormatError if a value is not a code.

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


# Called at the start of a long computation with the total amount of work and its unit. It returns the function to call
# with the amount done.
Started = Callable[[int, str], Callable[[int], None]]


class Scene(Record):
    """A step of a derivation as shown to the user.

    `page` has all rows so far, with the newest rows marked. `reason` explains the step. `flags` are the flags raised so
    far; for `fma`, `separate_flags` are those of multiply-then-add. `frames` are the animation that leads to this
    scene, such as the shift of the smaller term. `steps` lists the steps shown, each as a derivation and an index
    into its steps.
    """

    name: str
    page: Page
    reason: Line
    flags: Flags
    frames: tuple[Page, ...] = ()
    steps: tuple[tuple[Derivation, int], ...] = ()
    separate_flags: Flags | None = None


class Answer(Record):
    """The result of a question, with functions that make its page, its JSON and other outputs on demand.

    `page` returns the page. `records` returns the JSON objects (one per line). `words` returns the values for
    `--quiet`. `codes` returns the codes of the results. `hints` are remarks for the standard error. `results` are the
    resulting `Datum` objects. If the page consists of the pages of several results, `parts` returns these pages.
    `operands` are the operands of an operation as `Datum` objects. `scenes` returns the page as an animation; its
    argument says whether to draw the bits of the operands. `found` is the object that is shown. `status` is the exit
    status of the command, such as 1 if a check failed. `table` returns the numbers as CSV. `chart` returns the chart
    for `--plot`. `plan` returns the text for `--plan`. `document` takes the command and returns the document for
    `--html`; the default is the page.
    """

    page: Callable[[], Page]
    records: Callable[[], list[Wire]]
    words: Callable[[], list[str]]
    codes: Callable[[], list[str]]
    hints: tuple[str, ...] = ()
    results: tuple[Datum, ...] = ()
    parts: Callable[[], list[Page]] = list
    operands: tuple[Datum, ...] = ()
    scenes: Callable[[bool], tuple[Scene, ...]] = lambda draw_bits: ()
    missing: str = ""  # the message if an optional package is missing; the exit status is then 3
    found: Any = None
    status: int = 0
    table: Callable[[], str] | None = None
    chart: Callable[[], Chart] | None = None
    document: Callable[[str], str] | None = None
    plan: Callable[[], str] | None = None


def plot_chart(answer: Answer, path: str) -> None:
    """Draw the chart of an answer into a file, for `--plot`."""
    from floatlab.page.figures import chart_figure

    if answer.chart is not None:
        chart_figure(answer.chart(), answer.page().title, path)


def written(*answers: object) -> Callable[[], list[Wire]]:
    """Return a function, for `Answer.records`, that writes these objects as JSON."""

    def records() -> list[Wire]:
        from floatlab.verbs.from_json import document_of

        return [document_of(answer) for answer in answers]

    return records


def plain_answer(found: object, page: Callable[[], Page], *words: str) -> Answer:
    """Return an answer with one page and one JSON object. `--quiet` and `--quiet=code` both print `words`."""
    return Answer(page, written(found), lambda: [*words], lambda: [*words], found=found)


def answer_for(found: list[Derivation], interval: bool = False, hints: tuple[str, ...] = ()) -> Answer:
    """Return the answer for these derivations, whose pages are joined."""

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
    """The definition of a verb.

    Parameters
    ----------
    summary, examples, explanation
        A one-line summary; example commands that run, without the word `floatlab`; an explanation of the values.
    takes
        The placeholder of the values in `--help`, such as VALUE, and the description of the values.
    options
        The options, in the order of `--help`.
    rules
        The rules on options that exclude or need others.
    notes
        Sentences that `--help` shows under the headings of groups of options.
    form
        Function from the values to the subcommand; None for verbs without subcommands.
    one_format
        The error message if several formats are named, with `{}` for their names; empty if several formats are allowed.
    formats_by
        For a verb without -f: how its formats are named instead. The error message for -f ends with this text.
    validate
        Function that validates and completes a parsed question; raises UsageError.
    needs_values, joins
        `needs_values`: whether values are required. `joins`: whether a line of standard input is one question, with
        several values.
    reads_array, reads_files
        `reads_array`: whether `-` as a value means an array from standard input. `reads_files`: whether values may be
        names of files.
    takes_long
        Whether an answer can take minutes. If so, progress is written even if standard error is not a terminal.
    seeds_more
        Whether `--seed` has an effect without stochastic rounding, because the verb draws other random numbers.
    plot
        Function that draws the figure of `--plot FILE` from the answer.
    also
        Names of the verb in other programs, and the equivalent command: "plus + → add A B".
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
    validate: Callable[[Question], Question] | None = None
    needs_values: bool = True
    joins: bool = False
    reads_array: bool = False
    reads_files: bool = False
    takes_long: bool = False
    seeds_more: bool = False
    plot: Callable[[Answer, str], None] | None = None
    also: tuple[str, ...] = ()

    def question(self, values: Sequence[str], typed: Mapping[str, object]) -> Question:
        """Build the question from parsed values and options; raises FloatlabError."""
        chosen: dict[str, tuple[Option, object]] = {}
        for option in self.options:
            found = typed.get(option.name)
            if found is None or option.name in chosen or (not option.metavar and found != option.value):
                continue
            if (value := option.value_of(found)) != option.default:
                chosen[option.name] = (option, value)
        context = Context(**{name: value for name, (option, value) in chosen.items() if option.part == "context"})  # type: ignore[arg-type]
        self._check_draws(context, chosen)
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
        return question if self.validate is None else self.validate(question)

    def _check(self, option: Option, chosen: Mapping[str, object], form: str) -> None:
        """Raise UsageError if an option has no effect or contradicts another option."""
        if form and option.forms and form not in option.forms:
            where = " ".join(option.forms)
            raise UsageError(f"{option.flag} is not an option of {self.name} {form} (only of: {where})")
        for rule in self.rules:
            if option.name not in rule.options:
                continue
            for name in rule.excludes:
                if name in chosen and name != option.name:
                    raise UsageError(f"{option.flag} and {self.option(name).flag} exclude each other: {rule.reason}")
            if rule.needs and not set(rule.needs) & set(chosen):
                wanted = " or ".join(other.flag for other in self.options if other.name in rule.needs and other.help)
                raise UsageError(f"{option.flag} needs {wanted}: {rule.reason}")

    def _check_draws(self, context: Context, chosen: Mapping[str, tuple[Option, object]]) -> None:
        """Raise UsageError if a setting of stochastic rounding is given, but the rounding direction ignores it."""
        drawn = [direction for direction in Direction if direction.is_stochastic]
        users = {"draw": drawn, "random_bits": [direction for direction in drawn if direction.has_few_bits]}
        if not self.seeds_more:
            users["seed"] = drawn
        for name, directions in users.items():
            draws_anyway = name == "draw" and "remedies" in chosen  # a remedy of `train` may round stochastically
            is_read = name in chosen and chosen[name][0].part == "context"  # `reveal` has its own --seed
            if is_read and context.rounding not in directions and not draws_anyway:
                *names, last = (direction.value for direction in directions)
                which = f"-r {', '.join(names)} or {last}"
                raise UsageError(f"{self.option(name).flag} needs {which}: {context.rounding.value} ignores it")

    def words(self, question: Question) -> list[str]:
        """Return the arguments of the command for a question, as a shell passes them."""
        words = [self.name, *question.values]
        ignores_seed = not (self.seeds_more or question.context.rounding.is_stochastic)
        for option in self.options:
            if option.name == "seed" and option.part == "context" and ignores_seed:
                continue
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
        """Return the command line for a question, to be pasted into a shell."""
        from shlex import join

        return join(["floatlab", *self.words(question)])

    def option(self, name: str, value: object = None) -> Option:
        """Return the option with this name; if several switches have the name, return the one that sets `value`."""
        found = [option for option in self.options if option.name == name]
        if not found:
            raise FloatlabError(f"{self.name} has no option {name}")
        return next((option for option in found if option.metavar or option.value == value), found[0])


def read_operand(text: str, bits: bool = False) -> tuple[Literal, Format | None]:
    """Parse VALUE or VALUE@FORMAT; raises LiteralError and FormatError.

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


def rules_of(dialect: str, context: Context) -> Callable[[Format], Context]:
    """Return the function that gives the context for a format under a dialect (the rules of a processor or library).

    The dialect has priority; `context` gives the rules that the dialect leaves open.

    >>> from floatlab.formats import parse_format
    >>> rules_of("torch", Context(rounding="RTZ"))(parse_format("e4m3"))
    Context(rounding='RTZ', overflow='saturate')
    """
    if not dialect:
        return lambda _: context
    from floatlab.numbers.dialects import parse_dialect

    found = parse_dialect(dialect)
    return lambda fmt: found.context(fmt, context)


def code_of(datum: Datum) -> str:
    """Return the text of a datum's code and format, from which the same datum is read again.

    >>> from floatlab import decode
    >>> code_of(decode(0x3C7C, "fp16"))
    'bits:0x3c7c@fp16'
    """
    return f"bits:{hexadecimal_code(datum)}@{short_name(datum.format)}"


def as_code(literal: Literal, option: str) -> Code:
    """Return the code that a literal denotes. If the literal is a number, raise a LiteralError about `option`."""
    if not isinstance(literal.value, Code):
        raise LiteralError(f"{quoted(literal.text)}: {option} takes a code, such as bits:0x38")
    return literal.value


def reversed_code(literal: Literal) -> Literal:
    """Reverse the bytes of a code.

    >>> reversed_code(parse_literal("bits:0x007c")).text
    'bits:0x7c00'
    """
    typed = as_code(literal, "--little-endian")
    if typed.width % 8:
        raise LiteralError(f"{quoted(literal.text)}: --little-endian takes whole bytes, not {typed.width} bits")
    flipped = int.from_bytes(typed.code.to_bytes(typed.width // 8, "big"), "little")
    return Literal(f"bits:0x{flipped:0{typed.width // 4}x}", typed.replace(code=flipped))
