"""Scenes: the last one is the page, flags only grow, terms move place by place, and every reason is true."""

import re
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, parse_format
from floatlab.arith import add, contrast, divide, fma, multiply_then_add, sqrt
from floatlab.errors import FloatlabError
from floatlab.numbers import Datum, Derivation, Direction, Exact, Flags, convert, encode
from floatlab.numbers.derivation import Align, Combination, Combine, Divide, Round
from floatlab.page.model import Fresh, Page, Pair, Strip, text_of
from floatlab.page.text_layout import to_text
from floatlab.verbs.arithmetic.answer import ARITIES, compute, operate
from floatlab.verbs.arithmetic.page import TAIL, derivation_page, framed
from floatlab.verbs.arithmetic.relations import contrast_page
from floatlab.verbs.arithmetic.scenes import scenes_of
from floatlab.verbs.question import Scene
from tests.strategies import codes, formats

FP16 = parse_format("fp16")
ONE_WAY = sorted(set(ARITIES) - {"cmp", "toint", "fma"})

contexts = st.builds(
    Context,
    st.sampled_from(list(Direction)),
    seed=st.integers(0, 9),
    overflow=st.sampled_from(["native", "saturate", "propagate"]),
    absent=st.sampled_from(["largest", "zero", "nan"]),
    tininess=st.sampled_from(["after", "before"]),
    flush_inputs=st.booleans(),
    flush_results=st.booleans(),
    nan=st.sampled_from(["first", "x86", "arm", "riscv"]),
    fma_invalid=st.booleans(),
)


def page_text(page: Page, width: int = 150) -> str:
    """Return a page's text without its mark."""
    return to_text(page, width).replace("▸", " ")


def words(page: Page) -> set[str]:
    """Return the words of a page that is so wide that no digits are broken."""
    return set(page_text(page, 5000).split())


def why(scene: Scene) -> str:
    return text_of(scene.reason)


def reasons(derivation: Derivation) -> dict[str, str]:
    return {scene.name: why(scene) for scene in scenes_of(derivation)}


def assert_film(film: tuple[Scene, ...], whole: Page, flags: Flags) -> None:
    """Check an animation: growing pages and flags, one mark, a reason and a name for each scene."""
    assert page_text(film[-1].page) == page_text(whole)
    assert film[-1].page.title == whole.title
    assert film[-1].flags == flags
    assert len({scene.name for scene in film}) == len(film)
    for before, after in pairwise(film):
        assert before.flags & after.flags == before.flags
        assert words(before.page) <= words(after.page)
    for scene in film:
        assert re.fullmatch(r"\S.*[.)]", why(scene)), why(scene)
        assert "  " not in why(scene)
        assert 1 <= to_text(scene.page, 100).count("▸") <= 2
        assert "▸" not in to_text(scene.page, 100, ascii=True)


@st.composite
def derivations(draw: st.DrawFn, verbs: list[str]) -> Derivation | None:
    """Draw an operation on codes of one or several formats; None if the context raises an error."""
    fmt = draw(formats)
    verb = draw(st.sampled_from(verbs))
    data = []
    for _ in range(ARITIES[verb]):
        own = draw(formats) if not draw(st.integers(0, 5)) else fmt
        data.append(Datum(own, draw(codes(own))))
    try:
        return compute(verb, tuple(data), draw(st.sampled_from([fmt, None])), draw(contexts))
    except FloatlabError:
        return None


@given(derivations(ONE_WAY))
@settings(max_examples=120, deadline=None)
def test_a_film_ends_in_the_page(d):
    if d is None:
        return
    film = scenes_of(d)
    assert_film(film, derivation_page(d), d.flags)
    assert [page_text(scene.page) for scene in scenes_of(d)] == [page_text(scene.page) for scene in film]


@given(derivations(["fma"]))
@settings(max_examples=80, deadline=None)
def test_a_film_of_two_ways_ends_in_the_page(d):
    if d is None:
        return
    try:
        both = contrast(d, multiply_then_add(*d.operands, d.result.format, d.context))
    except FloatlabError:
        return
    film = scenes_of(both)
    assert_film(film, contrast_page(both), both.fused.flags)
    assert film[-1].separate_flags == both.separate.flags
    for before, after in pairwise(film):
        assert before.separate_flags & after.separate_flags == before.separate_flags
    for scene in scenes_of(both, draw_bits=False):
        assert not [block for block in scene.page.blocks if isinstance(block, Strip) and block.label in ("a", "b", "c")]


@given(formats, st.data(), contexts)
@settings(max_examples=60, deadline=None)
def test_a_film_of_a_conversion(fmt, data, context):
    source = data.draw(formats)
    try:
        d = convert(Datum(source, data.draw(codes(source))), fmt, context)
    except FloatlabError:
        return
    assert_film(scenes_of(d), derivation_page(d), d.flags)


def blocks_of(page: Page):
    for block in page.blocks:
        yield from blocks_of(Page(block.blocks)) if isinstance(block, Fresh) else [block]


@given(derivations(["add", "sub"]))
@settings(max_examples=60, deadline=None)
def test_the_smaller_term_moves_one_place_at_a_time(d):
    if d is None:
        return
    for scene in scenes_of(d, draw_bits=False):
        derivation, index = scene.steps[0]
        step = derivation.steps[index]
        if not isinstance(step, Align):
            assert not scene.frames
            continue
        fmt = d.result.format
        assert len(scene.frames) == min(step.shift, fmt.precision + TAIL + 1)
        small, big = (step.right, step.left) if step.moved else (step.left, step.right)
        for moved, page in enumerate([*scene.frames, scene.page]):
            strip = next(block for block in blocks_of(page) if isinstance(block, Strip))
            digits = [re.sub(r"[ −]", "", text_of(each)) for each in strip.lines]
            place = small.exponent + (moved if page is not scene.page else step.shift)
            assert digits[step.moved].endswith(f"×2^{place}")
            kept, tail = framed(abs(small), place, fmt.trailing_bits, TAIL)
            assert (kept + "|" + tail).startswith(digits[step.moved].partition("×")[0].rstrip("…"))
            assert digits[1 - step.moved].endswith(f"×2^{big.exponent}")


def test_scenes_without_operands_keep_what_reading_did():
    film = scenes_of(add("1.125", "0.1246", "fp16"), draw_bits=False)
    first = page_text(film[0].page).split()
    assert first[:4] == ["a", "1.0010000000", "×", "2^0"]  # the bits are not drawn
    assert first[-8:] == ["b", "read", "from", "0.1246", "error", "−0.4464", "ulp,", "inexact"]
    assert page_text(film[-1].page).splitlines() == [
        re.sub(r"^ {15}read", "  b            read", each)
        for each in page_text(derivation_page(add("1.125", "0.1246", "fp16"))).splitlines()
        if not re.match(r"  (1|a|b) ", each) and "in binary16" not in each
    ]


def test_the_newest_rows_are_marked():
    film = scenes_of(add("1.125", "0.12457275390625", "fp16"))
    marked = [re.search(r"^[▸>] (\S+)", to_text(scene.page), re.MULTILINE)[1] for scene in film]
    assert marked == ["1.125", "align", "sum", "round", "result"] or marked == ["a", "align", "sum", "round", "result"]
    assert "\n> align" in to_text(film[1].page, ascii=True)


@given(derivations(ONE_WAY))
@settings(max_examples=120, deadline=None)
def test_the_numbers_in_reasons_are_true(d):
    if d is None:
        return
    film = scenes_of(d)
    fmt = d.result.format
    for scene in film:
        step, words = d.steps[scene.steps[0][1]], why(scene)
        if isinstance(step, Align):
            difference = abs(step.left.exponent - step.right.exponent)
            if difference:
                found = re.search(r"is shifted right by (-?\d+) − \(?(-?\d+)\)? = ([\d,]+) place", words)
                high, low, places = (int(each.replace(",", "")) for each in found.groups())
                assert (high - low, places) == (difference, difference)
            else:
                assert "are both at" in words
        if (
            isinstance(step, Combine)
            and step.kind in (Combination.SUM, Combination.PRODUCT)
            and "binary digit" in words
        ):
            value = abs(step.exact.as_fraction())
            odd = value.numerator
            while not odd & 1:
                odd >>= 1
            assert int(re.search(r"has ([\d,]+) binary", words)[1].replace(",", "")) == odd.bit_length()
            assert ("at most" in words) == (odd.bit_length() <= fmt.precision)
            if "cancel" in words or "carry" in words:
                lead = int(re.search(r"sum (?:is at|up to) 2\^(-?\d+)", words)[1])
                assert Fraction(2) ** lead <= value < Fraction(2) ** (lead + 1)
        if isinstance(step, Round):
            assert_round(step, words, d)
    if d.truth is not None and isinstance(d.truth, Exact) and d.result.is_finite:
        difference = d.result.exact.as_fraction() - d.truth.as_fraction()
        words = why(film[-1])
        assert (" above " in words) <= (difference > 0)
        assert (" below " in words) <= (difference < 0)
        assert ("The result is exact." in words) == (difference == 0)
        if found := re.search(r"The result is (\d+)(?:/(\d+))? ulp", words):
            assert abs(difference) == Fraction(int(found[1]), int(found[2] or 1)) * d.result.ulp.as_fraction()


def assert_round(step: Round, words: str, d: Derivation) -> None:
    """Check a rounding's reason against the exact number before it."""
    rounded, fmt, index = step.rounded, step.format, d.steps.index(step)
    before = next(
        (each.exact for each in reversed(d.steps[:index]) if isinstance(each, Combine)),
        None,
    )
    assert ("overflow" in words) == (rounded.overflowed and Flags.INVALID not in rounded.flags)
    assert ("underflow" in words) == (
        Flags.UNDERFLOW in rounded.flags or "no underflow" in words or (not fmt.zero and not rounded.significand)
    ) or Flags.INVALID in rounded.flags
    if before is None:
        return
    tail = abs(before.as_fraction()) / Fraction(2) ** rounded.quantum
    tail -= int(tail)
    assert ("no digit is discarded" in words or "Zero has no digits" in words) == (tail == 0)
    if tail and (found := re.search(r"(?:is discarded:|the magnitude is|binary point is) (\d+)/(\d+)", words)):
        assert Fraction(int(found[1]), int(found[2])) == tail
    if tail:
        assert ("more than half" in words) <= (tail > Fraction(1, 2))
        assert ("less than half" in words) <= (tail < Fraction(1, 2))
        assert ("tie" in words) == (tail == Fraction(1, 2) and d.context.rounding.value in ("RNE", "RNA"))
        assert rounded.increment == ("goes up by one" in words)


@pytest.mark.parametrize(
    ("verb", "values", "choices", "name", "words"),
    [
        ("add", ("1.125", "0.12457275390625"), {}, "round", "9/16 of a unit in the last place. That is more than half"),
        ("add", ("1", "0.00048828125"), {}, "round", "a tie, which is rounded to even"),
        (
            "add",
            ("1", "0.00048828125"),
            {"rounding": "RNA"},
            "round",
            ("ties are rounded away from zero, so the last kept digit"),
        ),
        ("add", ("-1", "-0.0004"), {"rounding": "RTP"}, "round", "drops the discarded digits of a negative number"),
        ("add", ("1", "0.0004"), {"rounding": "RTO"}, "round", "is made odd"),
        ("add", ("1", "0.00042009"), {"rounding": "SR"}, "round", "The draw 0xe220a839 is not below"),
        (
            "add",
            ("1.5", "1.5"),
            {},
            "sum",
            "A carry out of the first column moves the leading digit of the sum up to 2^1",
        ),
        (
            "sub",
            ("1.5", "1.4990234375"),
            {},
            "sum",
            ("The 10 leading digits cancel, and the leading digit of the sum is at 2^-10"),
        ),
        ("sub", ("1", "1"), {"rounding": "RTN"}, "rule", "rounding toward −∞, its sign is −, so the result is −0"),
        ("add", ("65504", "32"), {}, "result", "results beyond the largest number become ∞"),
        (
            "add",
            ("65504", "32"),
            {"rounding": "RTZ"},
            "result",
            ("When rounding toward zero, results beyond the largest number become the largest number"),
        ),
        ("add", ("65504", "32"), {"overflow": "saturate"}, "result", "Overflow rule 'saturate'"),
        ("mul", ("1e-5", "1e-3"), {}, "round", "tiny, below 2^-14, and inexact: underflow"),
        ("mul", ("1e-5", "1e-3"), {"flush_results": True}, "round", "flushed to zero here (--ftz)"),
        ("mul", ("1e-5", "3"), {"flush_inputs": True}, "flush", "are subnormal; here they are replaced by zero"),
        ("mul", ("1e-5", "0.5"), {}, "result", "subnormal"),
        ("mul", ("-3", "0"), {}, "product", "the signs differ, so the product is −0"),
        ("mul", ("0", "inf"), {}, "rule", "a is zero and b is ∞"),
        ("div", ("1", "3"), {}, "quotient", "the odd factor 3, so the binary expansion"),
        ("div", ("1", "8"), {}, "quotient", "The division ends: 1 binary digit"),
        ("div", ("1", "0"), {}, "rule", "b is zero"),
        ("sqrt", ("2",), {}, "root", "1 gives 0"),
        ("sqrt", ("2.25",), {}, "root", "The root is exact: 1.5"),
        ("rem", ("5", "3"), {}, "remainder", "n × b = 2 × 3 is subtracted exactly from a = 5: the remainder is -1"),
        ("rint", ("2.5",), {}, "to integer", "is 1/2. That is a tie, which is rounded to even"),
        ("add", ("nan", "1"), {}, "rule", "a is a NaN. An operation on a NaN gives a NaN. The operand is quiet"),
    ],
)
def test_sentences(verb, values, choices, name, words):
    film = operate(verb, values, FP16, Context(**choices)).scenes(True)
    assert words in {scene.name: why(scene) for scene in film}[name]


def test_promoted_and_mixed_operands():
    promoted = reasons(add(encode("1", "fp16"), encode("2", "bf16")))
    assert promoted["promote"].startswith("binary32 contains every number of binary16 and bfloat16")
    assert "The result is rounded once, to e4m3fn." in reasons(convert(encode("1.3", "fp32"), "e4m3"))["operands"]


def test_division_and_root_tell_endless_digits_from_others():
    assert isinstance(divide("1", "3", "fp16").steps[2], Divide)
    assert "never end" in reasons(divide("2", "6", "fp16"))["quotient"]
    assert "The root has more digits." in reasons(sqrt("3", "fp16"))["root"]


def test_both_ways_go_in_step():
    values = ("0.1", "10", "-1", "fp16")
    both = contrast(fma(*values), multiply_then_add(*values))
    film = scenes_of(both)
    assert [scene.name for scene in film] == [
        "operands", "product", "round product", "align", "sum", "rule", "round", "result", "verdict",
    ]  # fmt: skip
    assert "changed it by +0.000244140625" in why(film[-1])
    assert "They differ from step 3 (round product) on." in why(film[-1])
    pair = next(block for block in film[4].page.blocks if isinstance(block, Pair))
    assert [isinstance(side[-1], Fresh) for side in (pair.left, pair.right)] == [True, True]


@pytest.mark.parametrize(
    ("verb", "values"),
    [("add", ("1.125", "0.1246")), ("fma", ("0.1", "10", "-1")), ("cmp", ("1", "2")), ("toint", ("300",))],
)
def test_answers_bring_their_scenes(verb, values):
    answer = operate(verb, values, FP16)
    film = answer.scenes(True)
    assert page_text(film[-1].page) == page_text(answer.page())
    assert all(why(scene) for scene in film)


def test_a_page_with_reasons_is_the_page_and_the_reasons():
    for verb, values in (("add", ("1.125", "0.1246")), ("fma", ("0.1", "10", "-1"))):
        plain, told = operate(verb, values, FP16), operate(verb, values, FP16, why=True)
        text = " ".join(to_text(told.page()).split())
        assert all(" ".join(each.split()) in text for each in to_text(plain.page()).splitlines())
        assert text.count("why ") >= len(plain.scenes(True)) - 1
        assert (
            why(plain.scenes(True)[-1]).partition(" They differ from step ")[0] in text
        )  # steps have numbers on a screen
    first = to_text(derivation_page(add("1", "2", "fp16"), 3, why=True))
    assert first.count("why") == 2
    assert first.rstrip().endswith("3 more steps")


@pytest.mark.parametrize(
    ("verb", "operands", "said"),
    [
        ("add", ("1.125", "0.00041999"), "The result equals a: b was too small to change it."),
        ("add", ("0.00041999", "1.125"), "The result equals b: a was too small to change it."),
        ("sub", ("1.125", "1e-5"), "The result equals a: b was too small to change it."),
        ("add", ("1.125", "0.125"), ""),
        ("add", ("1.125", "0"), ""),
        ("mul", ("1.125", "1.0001"), ""),
    ],
)
def test_a_term_that_is_lost_is_named(verb, operands, said):
    answer = operate(verb, operands, parse_format("fp16"))
    last = why(answer.scenes(True)[-1])
    assert (said in last) if said else ("again" not in last)


def test_a_film_under_precision_control_ends_with_the_stored_results():
    d = compute("add", (encode("0.1", "x87"), encode("0.2", "x87")), None, Context(precision=53))
    film = scenes_of(d)
    assert page_text(film[-1].page) == page_text(derivation_page(d))
    assert page_text(film[-1].page).count("stored") == 2
    assert "stored" not in page_text(film[-2].page)
