"""`audit --from`: finds the recipe that produced the codes of a quantised tensor.

A recipe is a block format with a rule for its scales, such as `nvfp4:te`.
"""

from __future__ import annotations

from floatlab.auditing.recipe_search.finding import find_recipe
from floatlab.auditing.recipe_search.records import RecipeSearch
from floatlab.verbs.audit.codes_page import codes_page
from floatlab.verbs.question import Answer, Question, Started, plain_answer


def codes_answer(found: RecipeSearch) -> Answer:
    """Return the answer that shows which recipe produced the codes. The exit status is 1 if no recipe produced them."""
    names = [each.name for each in found.recipes] or ["none"]
    return plain_answer(found, lambda: codes_page(found), *names).replace(status=0 if found.is_found else 1)


def codes_answers(question: Question, started: Started | None) -> list[Answer]:
    """Return the answer to a question with the option --from."""
    [codes] = question.values
    scales, _, tensor = (question.option("scales") or "").partition(",")
    found = find_recipe(
        codes, question.option("from"), scales or None, tensor or None,
        progress=None if started is None else lambda total: started(total, "elements"),
    )  # fmt: skip
    return [codes_answer(found)]
