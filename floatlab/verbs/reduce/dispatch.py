"""Which answer a question about sums and products gets: its causes, the time of real ones, or a simulated one."""

from __future__ import annotations

from floatlab.formats import parse_format
from floatlab.numbers.rounding import DEFAULT
from floatlab.reduce.timing.ways import RUNS
from floatlab.verbs.question import Answer, Question, Started
from floatlab.verbs.reduce.answer import answer_of, reduce_words


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: what was observed explained, products timed, or a sum in the stated order."""
    verb, words, format = question.verb, question.values, next(iter(question.formats), None)
    options = dict(question.options)
    if "observed" in options:
        wanted = {name: options[name] for name in ("observed", "difference", "preset", "targets") if name in options}
        from floatlab.verbs.attribute.answer import attribute_words

        return [attribute_words(verb, words, format=format, context=question.context, started=started, **wanted)]
    if "ways" in options:
        from floatlab.verbs.ways.answer import ways_answer

        return [ways_answer(words, format or parse_format("binary32"), options.get("runs", RUNS))]
    if "backends" in options:
        from floatlab.verbs.backends.answer import backends_answer

        return [backends_answer(words, options["backends"], format, options.get("runs", RUNS), started)]
    # A machine rounds in its own way, and takes none that was not asked for.
    context = None if question.context == DEFAULT else question.context
    found = reduce_words(verb, words, format, context=context, **options)
    return [answer_of(found, options.get("preset"))]
