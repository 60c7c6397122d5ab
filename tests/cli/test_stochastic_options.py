"""Options of stochastic rounding are refused where the direction ignores them."""

import pytest

from floatlab.numbers.rounding import Context, Direction
from floatlab.verbs.option import RULES
from floatlab.verbs.question import Question
from floatlab.verbs.registry import VERBS, command_of, verb_named

ROUNDING = [name for name in VERBS if any(option.name == "draw" for option in verb_named(name).options)]
DRAWN = [direction for direction in Direction if direction.is_stochastic]


def command_for(name):
    """Return an example of a verb, as arguments."""
    example = next(each for each in verb_named(name).examples if "-r" not in each and "|" not in each)
    return example.split()


@pytest.mark.parametrize("name", ROUNDING)
@pytest.mark.parametrize(("option", "needs"), [("--draw", "SR, SRA, SRB or SRC"), ("--random-bits", "SRA, SRB or SRC")])
def test_every_verb_refuses_what_its_direction_ignores(command, name, option, needs):
    for value in ("0", "5", "16"):  # also the default
        ended = command(*command_for(name), option, value)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err == f"floatlab: {option} needs -r {needs}: RNE ignores it\n"


@pytest.mark.parametrize("name", ROUNDING)
def test_a_seed_that_nothing_reads_is_refused(command, name):
    ended = command(*command_for(name), "--seed", "3")
    if verb_named(name).seeds_more:
        assert "ignores it" not in ended.err
    else:
        assert (ended.status, ended.err) == (2, "floatlab: --seed needs -r SR, SRA, SRB or SRC: RNE ignores it\n")
        assert "ignores it" not in command(*command_for(name), "--seed", "3", "-r", "SR").err


def test_the_command_of_a_question_has_no_seed_that_nothing_reads():
    assert "--seed" not in command_of(Question("show", ("1",), (), Context("RTZ", seed=5)))
    assert "--seed 5" in command_of(Question("show", ("1",), (), Context("SR", seed=5)))


@pytest.mark.parametrize("direction", list(Direction))
def test_a_direction_takes_what_it_uses(command, direction):
    for option, uses in (("--draw", direction.is_stochastic), ("--random-bits", direction.has_few_bits)):
        ended = command("show", "1.03", "--e4m3", "-r", direction.value, option, "3")
        assert ended.status == (0 if uses else 2)
        assert ("ignores it" in ended.err) == (not uses)


def test_a_remedy_that_draws_takes_a_draw(command):
    asked = ["train", "1", "--update", "0.0001", "--steps", "3", "--remedies", "stochastic", "--quiet", "--draw"]
    assert command(*asked, "0").out != command(*asked, "4294967295").out


@pytest.mark.parametrize("direction", DRAWN)
def test_another_direction_resets_what_it_ignores(direction):
    context = Context(direction, random_bits=5 if direction.has_few_bits else 16, draw=3)
    nearest = next(rule for rule in RULES if rule.name == "rounding-RTZ")
    assert nearest.apply(context) == Context("RTZ")
    few = next(rule for rule in RULES if rule.name == "rounding-SRB")
    assert few.apply(context) == context.replace(rounding="SRB")
