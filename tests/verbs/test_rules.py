"""Rules of rounding as rows: every choice of a Context has a description, can be selected, and is shown."""

import pytest

from floatlab import Context
from floatlab.cli.parser import read_question
from floatlab.verbs.option import RULES, context_words
from floatlab.verbs.question import Question
from floatlab.verbs.registry import command_of


def test_every_choice_of_a_context_has_its_rows():
    assert {rule.field for rule in RULES} | {"seed", "random_bits", "draw", "precision"} == set(Context._fields)
    for field in {rule.field for rule in RULES}:
        usual = getattr(Context(), field)
        values = [rule.value for rule in RULES if rule.field == field]
        choices = [True, False] if isinstance(usual, bool) else [choice.value for choice in type(usual)]
        assert sorted(values) == sorted(choices)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_choice_holds_once_it_is_made(rule):
    assert rule.holds(rule.apply(Context()))
    others = [other for other in RULES if other.field == rule.field and other != rule]
    assert others
    assert not any(other.holds(rule.apply(Context())) for other in others)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_choice_that_is_not_the_usual_one_is_named(rule):
    context = rule.apply(Context())
    assert (context_words(context) == "RNE") == (context == Context())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("verb", ["show", "sqrt"])
def test_the_command_takes_every_choice(rule, verb):
    question = Question(verb, ("1",), (), rule.apply(Context()))
    again = read_question(command_of(question).split()[1:])
    assert again == question.replace(context=question.context.replace(fma_invalid=True))
