"""The verb `completion`; it has no options."""

from __future__ import annotations

from floatlab.errors import guess, quoted
from floatlab.verbs.option import UsageError
from floatlab.verbs.question import Question, Verb

SHELLS = ("bash", "zsh", "fish")


def _validate(question: Question) -> Question:
    """Raise UsageError unless the only value is the name of a shell."""
    if len(question.values) != 1 or question.values[0] not in SHELLS:
        typed = " ".join(question.values)
        near = guess(typed, list(SHELLS)) if typed else ""
        raise UsageError(f"completion takes one shell: {' '.join(SHELLS)}, not {quoted(typed)}{near}")
    return question


VERB = Verb(
    name="completion",
    summary="write the script by which bash, zsh or fish completes verbs and options",
    examples=("completion bash", "completion zsh"),
    explanation=(
        'bash: eval "$(floatlab completion bash)" in ~/.bashrc; zsh: floatlab completion zsh > _floatlab in a folder '
        "of $fpath; fish: floatlab completion fish > ~/.config/fish/completions/floatlab.fish. Needs shtab: "
        "pip install 'floatlab[completion]'."
    ),
    takes=("SHELL", "|".join(SHELLS)),
    options=(),
    validate=_validate,
    needs_values=False,
)
