"""JSON documents: which schema belongs to which kind of answer, for writing and for reading back.

A topic's schemas are imported when the first of its answers is written or read, so that a derivation is written without
importing what adds arrays. What has no row is a derivation.
"""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import FileFormatError, FloatlabError, quoted
from floatlab.record import Record
from floatlab.wire.codecs import FAULTS
from floatlab.wire.derivations import DERIVATION
from floatlab.wire.schema import read_document, write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.wire.codecs import Codec, Wire

_LONGEST = 1 << 26  # characters of a document that is read back


class Document(Record):
    """A kind of answer: its schema, its operations, and a member that no other kind has with them.

    `topic` is the folder below `floatlab.verbs` whose `json.py` has the schema under this `name`.
    """

    topic: str
    name: str
    operations: tuple[str, ...] = ()
    member: str = "steps"


DOCUMENTS = {
    "Attribution": Document("attribute", "ATTRIBUTION", ("attribute",), "observed"),
    "BlockDerivation": Document("block", "BLOCK", ("block",)),
    "Comparison": Document("arithmetic", "COMPARISON", ("compare", "equal", "less", "less_equal")),
    "Contrast": Document("arithmetic", "CONTRAST", ("fma",), "separate"),
    "Conversion": Document("convert", "CONVERSION"),  # is read back as a derivation, of all its stages
    "Differences": Document("compare", "DIFFERENCES", ("compare",), "worst"),
    "Findings": Document("reveal", "FINDINGS", ("reveal",), "nodes"),
    "GradientCheck": Document("train", "GRADIENT_CHECK", ("train check",), "differences"),
    "IntegerResult": Document("arithmetic", "INTEGER_RESULT", ("to_integer",)),
    "Judgement": Document("compare", "JUDGEMENT_DOCUMENT", ("judge",), "causes"),
    "Learnings": Document("train", "LEARNINGS", ("train network",), "configurations"),
    "Plan": Document("reveal", "PLAN", ("plan",), "nodes"),
    "Product": Document("reduce", "PRODUCT", ("matmul",), "elements"),
    "Reduction": Document("reduce", "REDUCTION", ("sum", "dot"), "schedule"),
    "BackendComparison": Document("timing", "COMPARISON", ("matmul",), "backends"),
    "Training": Document("train", "TRAINING", ("train",), "remedies"),
    "Underflow": Document("train", "UNDERFLOW", ("train underflow",), "histogram"),
    "UpdateTrace": Document("train", "UPDATE", ("train step",), "stages"),
}


def schema_of_kind(kind: str) -> Codec:
    """Import and return the schema of a kind of answer."""
    if kind not in DOCUMENTS:
        return DERIVATION
    row = DOCUMENTS[kind]
    schema: Codec = getattr(import_module(f"floatlab.verbs.{row.topic}.json"), row.name)
    return schema


def document_of(answer: object) -> Wire:
    """Return the JSON object of an answer of any kind.

    >>> from floatlab import less
    >>> document_of(less("1", "2", format="fp16"))["result"]
    {'relation': 'less', 'holds': True}
    """
    return write_document(schema_of_kind(type(answer).__name__), answer)


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
        return read_document(schema_of_kind(kind), wire)
    except (FloatlabError, *FAULTS) as error:
        raise FileFormatError(f"no {kind}: {' '.join(str(error).split())[:300]}") from None
