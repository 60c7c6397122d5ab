"""`compare`: two arrays, from files or from the command line, and their differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from floatlab.arrays.compare.differences import ComparedElement, Differences
from floatlab.arrays.compare.measure import compare
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.files.readers import is_checkpoint, kind_of, split_place
from floatlab.fpmode import in_default_mode
from floatlab.page.model import Gap, Note, Page
from floatlab.sandbox import exists, is_folder
from floatlab.verbs.compare.options import VERB
from floatlab.verbs.option import UsageError
from floatlab.verbs.question import Answer, Question, Started, code_of, written


def element_codes(found: Differences, element: ComparedElement) -> tuple[str, str]:
    """Return both numbers of an element as codes with their formats.

    A code can denote every datum exactly, for instance a NaN; a decimal cannot.

    >>> [answer] = answers(Question("compare", ("1,2", "1,nan@fp16")))
    >>> element_codes(answer.found, answer.found.worst[0])
    ('bits:0x4000@fp16', 'bits:0x7e00@fp16')
    """
    actual, expected = found.data(element)
    return code_of(actual), code_of(expected)


def answer_of(
    found: Differences,
    causes: Page | None = None,
    causes_to_wire: Callable[[], dict[str, object]] = dict,
) -> Answer:
    """Return the answer that shows the differences of two arrays.

    If the inputs are known, the page begins with the first line of the diagnosis and with `causes`. `causes_to_wire`
    returns the members that `--inputs` adds to the JSON object.
    """

    def parts() -> list[Page]:
        from floatlab.verbs.compare.page import differences_page

        return [differences_page(found), *([] if causes is None else [causes])]

    def page() -> Page:
        measured, *explained = parts()
        diagnosed = getattr(found.diagnosis, "first", None)
        first = (Note(diagnosed), *(block for part in explained for block in part.blocks), Gap()) if diagnosed else ()
        return Page((*first, *measured.blocks), measured.title)

    def records() -> list[dict[str, object]]:
        [wire] = written(found)()
        return [wire | causes_to_wire()]

    failing = str(found.allclose.failing if found.shape is not None else "shapes")
    status = 0 if found.within else 1
    return Answer(page, records, lambda: [failing], lambda: [failing], found=found, parts=parts, status=status)


def are_checkpoints(words: Sequence[str], options: Mapping[str, object]) -> bool:
    """Return whether two words name checkpoints, not arrays.

    The words name checkpoints if an option for checkpoints is given, or if both files can be checkpoints and one of
    these files has several tensors. If one word is a folder and the other names no file, the answer is also true,
    because reading checkpoints then gives the better error.
    """
    if not {"only", "stored"}.isdisjoint(options):
        return True
    local = [word for word in words if "://" not in word]
    if any(map(is_folder, local)) and any(not exists(split_place(word)[0]) for word in local):
        return True  # one word names nothing; the error of reading checkpoints will say so
    if not all(map(is_checkpoint, words)):
        return False
    from floatlab.files.checkpoints import has_several

    return any(map(has_several, words))


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: the differences of two arrays or checkpoints, and their causes if the inputs are given.

    If the question names a format, differences are counted in ulps of this format, and typed numbers are read into it.
    If it names none, typed numbers are read into the format of the other array. If both arrays are typed, they are read
    into the format of the first input (binary32 if the inputs are typed, too) or, without inputs, into binary64.
    Raises FloatlabError.
    """
    words, format, options = question.values, next(iter(question.formats), None), dict(question.options)
    inputs, dtype, shape = (options.pop(name, None) for name in ("inputs", "dtype", "shape"))
    operation, bias = options.pop("op", None) or "matmul", options.pop("bias", None)
    if bias == "" or (inputs is not None and "" in inputs):
        raise UsageError(f"{'--bias' if bias == '' else '--inputs'} '' names no array")
    if len(words) != 2:
        raise UsageError(f"compare takes two arrays, not {len(words)}, as in floatlab {VERB.examples[0]}")
    if "-" in words:
        raise UsageError("compare does not read standard input: name a file instead of -")
    if are_checkpoints(words, options):
        from floatlab.verbs.compare.checkpoints import checkpoint_answer

        return [checkpoint_answer(question, started)]
    if shape is not None and dtype is None:
        raise UnsupportedError("--shape is for files of raw numbers: give their type with --dtype NAME")
    if dtype is not None and all(kind_of(word, dtype) != "raw" for word in words):
        raise UnsupportedError("--dtype is for files of raw numbers, but both arrays have a type already")
    if {"rtol", "atol"} <= options.keys():
        options["torch_tolerances"] = options["rtol"], options["atol"]
    usual = "binary64"
    # Read text as the diagnosis does: into the format of the inputs or, if they are text, into binary32.
    if inputs is not None:
        with open_arrays(inputs, format, dtype=dtype) as (x, _):
            usual = x.format.name
    with open_arrays(words, format, usual, dtype=dtype, shape=shape) as (actual, expected):
        progress = None if started is None else started(actual.size, "elements")
        found = compare(actual, expected, format=format, progress=progress, **options)
    if inputs is None:
        return [answer_of(found)]
    from floatlab.verbs.judge.answer import explain_differences

    causes, to_wire, diagnosis = explain_differences(words, inputs, format, dtype, started, operation, bias)
    return [answer_of(found.replace(diagnosis=diagnosis), causes, to_wire)]
