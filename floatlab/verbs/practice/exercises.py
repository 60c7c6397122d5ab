"""Practice: questions about the steps of an operation, and operands for which the steps are instructive.

A *scene* is a step of an operation as shown to the user (`Scene` in `floatlab.verbs.question`).
"""

from __future__ import annotations

import re

from floatlab.arith import Integer
from floatlab.errors import FloatlabError, LiteralError
from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, Direction, Exact, Rounded, Tail, hexadecimal_code
from floatlab.numbers import derivation as steps
from floatlab.numbers.datum import shortest
from floatlab.numbers.derivation import Combination, Rule, Step
from floatlab.numbers.exact import Code, Ratio
from floatlab.numbers.printing import decimal_within, exact_decimal
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.numbers.reading import parse_literal
from floatlab.numbers.rounding import DEFAULT, IN_WORDS
from floatlab.record import Record
from floatlab.verbs.arithmetic.answer import ARITIES, compute
from floatlab.verbs.edits import literal_of
from floatlab.verbs.question import Scene

_TYPED = 18  # instead of a number longer than this, a question asks for its leading power of two
_NUMBER_BITS = 10_000  # numbers with more bits than this are not computed; their literals are compared
_COINCIDENCE = 3  # a text of up to this length may occur on a page by chance
_WIDE = 1000  # so wide that no line wraps
_TRIES = 400  # random operands are drawn at most this many times
_CUT = ("keep", "+1", "no bits to discard")
_LONGEST = 1 << 15  # a text longer than this is not an answer
_POWER = re.compile(r"2(?:\^|\*\*)([+-]?[0-9]{1,9})")


class Exercise(Record):
    """A question about a step: the prompt, the choices (empty if the answer is typed), and the accepted answers.

    The first accepted answer is displayed as the solution.
    """

    prompt: str
    choices: tuple[str, ...]
    answers: tuple[str, ...]

    def is_right(self, text: str) -> bool:
        """Return whether a text is a right answer, in any notation for numbers and codes.

        >>> asked = Exercise("What is the result?", (), ("1.25", "bits:0x3d00"))
        >>> [asked.is_right(guess) for guess in ("5/4", "0x1.4p0", "0x3D00", "0 01111 0100000000", "1.5")]
        [True, True, True, True, False]
        """
        if not text.strip() or len(text) > _LONGEST:
            return False
        if any(_plain(text) == _plain(each) for each in self.answers):
            return True
        guesses = [guess for guess in (_meaning(text), _meaning(f"bits:{''.join(text.split())}")) if guess is not None]
        meanings = [meaning for meaning in map(_meaning, self.answers) if meaning is not None]
        return any(_same(guess, meaning) for guess in guesses for meaning in meanings)

    def is_answer(self, text: str) -> bool:
        """Return whether a text is an answer, right or wrong: one of the choices, a number or a code.

        >>> asked = Exercise("What is the result?", (), ("1.25",))
        >>> [asked.is_answer(guess) for guess in ("1.5", "0x1p4", "0 01111 0100000000", "about one", "1.2.3", "")]
        [True, True, True, False, False, False]
        """
        if not text.strip() or len(text) > _LONGEST:
            return False
        if self.is_right(text):
            return True
        if self.choices:
            return _plain(text) in map(_plain, self.choices)
        if self._asks_digits:
            return re.fullmatch("g?[01],?r?[01],?s?[01],?", _plain(text)) is not None
        return _meaning(text) is not None or _meaning(f"bits:{''.join(text.split())}") is not None

    @property
    def kind(self) -> str:
        """What kind of answer is expected, in words.

        >>> Exercise("Is the expansion of the quotient finite?", ("yes", "no"), ("no",)).kind
        'yes or no'
        """
        if self.choices:
            *first, last = self.choices
            return f"{', '.join(first)} or {last}"
        if self._asks_digits:
            return "three digits such as 0 1 1"
        return "a number such as 1.25 or 0x1.4p0, or a code such as 0x3d"

    @property
    def _asks_digits(self) -> bool:
        """Whether the exercise asks for the guard, round and sticky bits."""
        return re.fullmatch("[01] [01] [01]", self.answers[0]) is not None


def _plain(text: str) -> str:
    text = _POWER.sub(r"2^\1", "".join(text.lower().split()).replace("\N{MINUS SIGN}", "-"))
    return text.replace("∞", "inf").removeprefix("+")


def _meaning(text: str) -> object:
    text = text.strip().replace("∞", "inf")
    if power := _POWER.fullmatch(text):
        text = f"0x1p{power[1]}"
    try:
        return parse_literal(text).value
    except LiteralError:
        return None


def _same(guess: object, meaning: object) -> bool:
    if isinstance(guess, Code) and isinstance(meaning, Code):
        return guess.code == meaning.code and guess.width == meaning.width
    if not isinstance(guess, Ratio) or not isinstance(meaning, Ratio):
        return type(guess) is type(meaning) and guess == meaning
    if not guess.is_short(_NUMBER_BITS) or not meaning.is_short(_NUMBER_BITS):
        return guess == meaning
    # 0 and −0 are different answers.
    return guess.as_fraction() == meaning.as_fraction() and guess.negative == meaning.negative


def exercises(scenes: tuple[Scene, ...]) -> tuple[Exercise | None, ...]:
    """Return the exercise of each scene of an operation.

    The result has None for the first scene, for scenes without a question, and for scenes whose answer the preceding
    page already shows.

    >>> from floatlab import add
    >>> from floatlab.verbs.arithmetic.scenes import scenes_of
    >>> for each in exercises(scenes_of(add("1.125", "0.1", "fp16"))):
    ...     print(each and (each.prompt, each.answers[0]))
    None
    ('By how many places is the smaller term shifted right?', '4')
    ('What is the exact sum?', '1.2249755859375')
    ('Rounded after digit 11, to nearest, ties to even: what happens to the last digit kept?', 'keep')
    ('What is the result?', '1.224609375')
    """
    found = [_exercise(scene) for scene in scenes]
    for index, exercise in enumerate(found):
        if exercise is not None and (not index or _is_visible(exercise, scenes[index - 1])):
            found[index] = None
    return tuple(found)


def _is_visible(exercise: Exercise, before: Scene) -> bool:
    """Return whether the page before the question already shows the answer, for instance as an operand."""
    from floatlab.page.text_layout import to_text

    shown = to_text(before.page, _WIDE).split()
    return not exercise.choices and any(len(each) > _COINCIDENCE and each in shown for each in exercise.answers)


def _exercise(scene: Scene) -> Exercise | None:
    """Return the first question about the steps of a scene, or None if no step has a question."""
    for derivation, index in scene.steps:
        exercise = _exercise_about(derivation.steps[index], derivation, index)
        if exercise is not None:
            way = {"fma": "Fused: ", "multiply_then_add": "Separate: "}.get(derivation.operation, "")
            return exercise.replace(prompt=f"{way}{exercise.prompt}") if way and scene.name != "product" else exercise
    return None


def _exercise_about(step: Step, derivation: Derivation, index: int) -> Exercise | None:
    """Return the question about a step; None if the step has no question, or if the preceding step shows the answer."""
    direction = derivation.context.rounding
    match step:
        case steps.Align():
            return Exercise("By how many places is the smaller term shifted right?", (), (str(step.shift),))
        case steps.Combine(Combination.REMAINDER, left):
            return _number("What is the exact remainder", left)
        case steps.Combine(kind, exact) if kind is not Combination.INTEGER:
            return _number(f"What is the exact {kind.value}", exact)
        case steps.Divide(n) if derivation.operation == "remainder":
            return _number("For which whole number n is n × b nearest to a", n)
        case steps.Divide(_, sticky):
            return Exercise(
                ("Is the binary expansion of the quotient finite?"), ("yes", "no"), ("no" if sticky else "yes",)
            )
        case steps.Root(_, sticky):
            return Exercise("Is the binary expansion of the root finite?", ("yes", "no"), ("no" if sticky else "yes",))
        case steps.Integral(rounded) if not direction.is_stochastic:
            integer = Exact(rounded.negative, rounded.code, 0)
            return _number(f"What is the integer, rounded {IN_WORDS[direction]}", integer)
        case steps.Special(rule, flags) if rule is not Rule.FLUSHED_INPUT:
            raised = ", ".join(name.replace("_", " ") for name in flags.names) or "none"
            choices = tuple(dict.fromkeys(("none", "invalid", "divide by zero", raised)))
            return Exercise("A rule for special values applies: which flags are raised?", choices, (raised,))
        case steps.Round(format, rounded):
            return _round(rounded, format, direction)
        case steps.Encode(datum):
            return _encode(datum, derivation.steps[index - 1])
    return None


def _number(what: str, x: Exact) -> Exercise:
    """Return a question about a number. If the number is long, ask only for the power of two of its leading digit."""
    text = decimal_within(x, _TYPED)
    if text is not None:
        return Exercise(f"{what}?", (), (text,) if x.c else (text, "0"))
    return Exercise(
        f"{what}? It is long: which power of two is its leading digit?", (), (f"2^{x.exponent}", f"{x.exponent}")
    )


def _round(rounded: Rounded, fmt: Format, direction: Direction) -> Exercise | None:
    if not rounded.kept and rounded.tail is Tail.ZERO:
        return None
    place = f"at 2^{rounded.quantum}" if rounded.tiny_before else f"after digit {fmt.precision}"
    if direction.is_stochastic and rounded.tail is not Tail.ZERO:
        digits = _guard_round_sticky(rounded)
        return Exercise(f"Rounded {place}: what are the guard, round and sticky bits?", (), digits)
    happens = _CUT[2] if rounded.tail is Tail.ZERO else _CUT[int(rounded.increment)]
    return Exercise(f"Rounded {place}, {IN_WORDS[direction]}: what happens to the last digit kept?", _CUT, (happens,))


def _guard_round_sticky(rounded: Rounded) -> tuple[str, ...]:
    bits = [str(int(bit)) for bit in (rounded.guard, rounded.round, rounded.sticky)]
    return " ".join(bits), "".join(f"{name} {bit} " for name, bit in zip("GRS", bits, strict=True)), ",".join(bits)


def _encode(datum: Datum, before: Step) -> Exercise | None:
    codes = (hexadecimal_code(datum), f"bits:{datum.code:0{datum.format.width}b}", f"bits:{hexadecimal_code(datum)}")
    if datum.is_nan:
        return None  # the step before, a rule for special values, already shows the NaN
    if isinstance(before, steps.Round) and before.rounded.tail is not Tail.ZERO:
        exact = exact_decimal(datum.exact) if datum.is_finite else shortest(datum)
        text = exact if len(exact) <= _TYPED else shortest(datum)
        return Exercise("What is the result?", (), tuple(dict.fromkeys((text, exact, shortest(datum), *codes[1:]))))
    return Exercise("What is the result's code, in hexadecimal or in bits?", (), codes)


_OPERATIONS = {"fma": "mulAdd", "rint": "roundToInt", "toint": "to"}  # TestFloat's names for the verbs
_INEXACT = ("add", "sub", "mul", "div", "sqrt", "fma", "scaleb")
# The outcomes of an operation that an exercise can show. One is drawn; repeated ones are more probable.
_OUTCOMES = ("special", "overflow", "subnormal", "tie", "tie", "tie", "cancel", "cancel", "cancel", *["inexact"] * 7)


def random_operands(verb: str, format: Format, seed: int) -> tuple[str, ...]:
    """Return instructive operands for the operation, as text; the same seed gives the same operands.

    >>> from floatlab import parse_format
    >>> random_operands("add", parse_format("fp16"), 1) == random_operands("add", parse_format("fp16"), 1)
    True
    """
    from floatlab.vectors.hard import pointed

    draws = RandomIntegers(seed)
    outcome = _OUTCOMES[draws.below(len(_OUTCOMES))]
    result = Integer(32, True) if verb == "toint" else format
    best: list[Datum] = []
    for _ in range(_TRIES):
        codes = [_operand(format, outcome, draws) for _ in range(ARITIES[verb])]
        if outcome != "special" and draws.below(2):
            codes = pointed(_OPERATIONS.get(verb, verb), format, result, codes, draws)
        data = [Datum(format, code) for code in codes]
        best = best or data
        if _shows(verb, format, data, outcome):
            best = data
            break
    texts = tuple(literal_of(datum) for datum in best)
    # The second operand of scaleb is an integer.
    return (texts[0], str(draws.between(-format.precision, format.precision))) if verb == "scaleb" else texts


def _operand(format: Format, outcome: str, draws: RandomIntegers) -> int:
    """Return the code of a random operand: a number near 1 or in the range that `outcome` needs, or a special value."""
    from floatlab.vectors.generate import landmarks
    from floatlab.vectors.hard import nearest

    if outcome == "special" and draws.below(2):
        return draws.one_of(landmarks(format))
    t = format.trailing_bits
    reach = format.precision // 2 + 1
    exponent = draws.between(-reach, reach)
    if outcome in ("overflow", "subnormal"):
        exponent = draws.between(format.emin - 1, format.emax)
    return nearest(format, draws.sign(format), 1 << t | draws.below(1 << t), exponent - t)


def _shows(verb: str, format: Format, data: list[Datum], outcome: str) -> bool:
    if verb in ("cmp", "toint"):
        return outcome == "special" or all(each.is_finite for each in data)
    try:
        found = compute(verb, tuple(data), format, DEFAULT)
    except FloatlabError:
        return False
    rounded, align = found.rounded, next((step for step in found.steps if isinstance(step, steps.Align)), None)
    if rounded is None or outcome == "special":
        return rounded is None and outcome == "special"
    if outcome == "overflow":
        return rounded.overflowed
    if rounded.overflowed or rounded.tiny_before:
        return outcome == "subnormal" and not rounded.overflowed and bool(found.result.magnitude)
    if outcome == "tie":
        return rounded.tail is Tail.HALF
    if outcome == "cancel" and align is not None:
        total = next(
            step.exact for step in found.steps if isinstance(step, steps.Combine) and step.kind is Combination.SUM
        )
        return bool(total) and total.exponent < max(align.left.exponent, align.right.exponent) - 1
    near = align is None or 0 < align.shift <= format.precision
    return near and (rounded.tail is not Tail.ZERO or verb not in _INEXACT)
