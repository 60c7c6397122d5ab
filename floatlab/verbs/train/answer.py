"""`train`: one update, many updates under remedies, networks in formats, and what becomes of gradients."""

from __future__ import annotations

from importlib import import_module

from floatlab.fpmode import in_default_mode
from floatlab.verbs.question import Answer, Question, Started
from floatlab.verbs.train.forms import form_of


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question in the form that its first value names, else as many updates; each form has its folder."""
    home = import_module(f"floatlab.verbs.train.{form_of(question)}.answer")
    answer: Answer = home.answer_question(question, started)
    return [answer]
