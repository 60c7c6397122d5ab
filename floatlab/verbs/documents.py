"""JSON documents: which schema belongs to which kind of answer, for writing and for reading back.

A topic's schemas are imported when the first of its answers is written or read, so that a derivation is written without
importing what adds arrays.
"""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import FileFormatError, FloatlabError, quoted
from floatlab.record import Record
from floatlab.wire.schema import FAULTS, read_document, write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.wire.schema import Codec, Wire

_LONGEST = 1 << 26  # characters of a document that is read back


class Document(Record):
    """A kind of answer: where its schema is, its operations, and a member that no other kind has with them."""

    module: str
    name: str
    operations: tuple[str, ...] = ()
    member: str = "steps"

    @property
    def schema(self) -> Codec:
        """Import and return the schema."""
        schema: Codec = getattr(import_module(self.module), self.name)
        return schema


DOCUMENTS = {
    "Attribution": Document("floatlab.verbs.attribute.json", "ATTRIBUTION", ("attribute",), "observed"),
    "BlockDerivation": Document("floatlab.verbs.block.json", "BLOCK", ("block",)),
    "Comparison": Document("floatlab.verbs.arithmetic.json", "COMPARISON", ("compare", "equal", "less", "less_equal")),
    "Contrast": Document("floatlab.verbs.arithmetic.json", "CONTRAST", ("fma",), "separate"),
    # Is read back as a derivation, of all its stages.
    "Conversion": Document("floatlab.verbs.convert.json", "CONVERSION"),
    "Derivation": Document("floatlab.wire.derivations", "DERIVATION"),
    "Differences": Document("floatlab.verbs.compare.json", "DIFFERENCES", ("compare",), "worst"),
    "Findings": Document("floatlab.verbs.reveal.json", "FINDINGS", ("reveal",), "nodes"),
    "GradientCheck": Document("floatlab.verbs.train.json", "GRADIENT_CHECK", ("train check",), "differences"),
    "IntegerResult": Document("floatlab.verbs.arithmetic.json", "INTEGER_RESULT", ("to_integer",)),
    "Judgement": Document("floatlab.verbs.compare.json", "JUDGEMENT_DOCUMENT", ("judge",), "causes"),
    "Learnings": Document("floatlab.verbs.train.json", "LEARNINGS", ("train network",), "configurations"),
    "Plan": Document("floatlab.verbs.reveal.json", "PLAN", ("plan",), "nodes"),
    "Product": Document("floatlab.verbs.matmul.json", "PRODUCT", ("matmul",), "elements"),
    "Reduction": Document("floatlab.verbs.reduce.json", "REDUCTION", ("sum", "dot"), "schedule"),
    "BackendComparison": Document("floatlab.verbs.backends.json", "STANDING", ("matmul",), "backends"),
    "Training": Document("floatlab.verbs.train.json", "TRAINING", ("train",), "remedies"),
    "Underflow": Document("floatlab.verbs.train.json", "UNDERFLOW", ("train underflow",), "histogram"),
    "UpdateTrace": Document("floatlab.verbs.train.json", "UPDATE", ("train step",), "stages"),
}


def document_of(answer: object) -> Wire:
    """Return the JSON object of an answer of any kind.

    >>> from floatlab import less
    >>> document_of(less("1", "2", format="fp16"))["result"]
    {'relation': 'less', 'holds': True}
    """
    kind = type(answer).__name__
    return write_document(DOCUMENTS[kind].schema, answer)


def from_json(text: str) -> Any:
    """Return the answer that its JSON describes.

    Read back are derivations and `contrast`, comparisons and integers, blocks, sums, dot and matrix products of which
    nothing was left out (up to 1024 terms or elements), plans, differences and judgements of arrays, single updates,
    underflow, and curves of gradient checks. The JSON of the other answers is a summary.

    Parameters
    ----------
    text : str
        One JSON object, as `to_json` gives it, or a line of the command line's `--json`.

    Returns
    -------
    An answer of the kind that was written. What takes work, such as the error, is computed again when it is asked for.

    Raises
    ------
    FileFormatError
        Where the text is no such object; the message says in which member.

    Examples
    --------
    >>> from floatlab import add, less
    >>> d = add("0.1", "0.2", "fp16")
    >>> from_json(d.to_json()) == d
    True
    >>> from_json(less("1", "2", format="fp16").to_json()).relation.value
    'less'
    """
    from json import loads

    try:
        if len(text) > _LONGEST:
            raise FileFormatError(f"{len(text):,} characters are too long: at most {_LONGEST:,}")
        wire = loads(text)
    except FloatlabError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"not JSON: {str(error)[:200]}") from None
    return answer_of_document(wire)


def answer_of_document(wire: object) -> object:
    """Return the answer that a JSON object (already parsed) describes; raises FileFormatError where it is none."""
    if not isinstance(wire, dict):
        raise FileFormatError("not an answer: a JSON object is expected")
    operation = wire.get("operation")
    kinds = (kind for kind, row in DOCUMENTS.items() if operation in row.operations and row.member in wire)
    kind = next(kinds, "Derivation")
    if kind == "Derivation" and "steps" not in wire and isinstance(operation, str):
        raise FileFormatError(f"the JSON of {quoted(operation)} is a summary, which is not read back")
    try:
        return read_document(DOCUMENTS[kind].schema, wire)
    except (FloatlabError, *FAULTS) as error:
        raise FileFormatError(f"no {kind}: {' '.join(str(error).split())[:300]}") from None
