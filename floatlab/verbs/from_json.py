"""JSON documents: the schema of each kind of answer, for writing JSON and for reading it back.

Each schema is imported at its first use, so NumPy is not imported to write and read the JSON of a derivation.
"""

from __future__ import annotations

from floatlab.errors import FileFormatError, FloatlabError, quoted
from floatlab.record import Record
from floatlab.wire.codecs import FAULTS
from floatlab.wire.schema import read_document, write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.wire.codecs import Codec, Wire

    Schemas = dict[str, Codec]

_LONGEST = 1 << 26  # the maximum length of a document that is read back, in characters


def _convert() -> Schemas:
    from floatlab.verbs.convert.json import CONVERSION

    return {"Conversion": CONVERSION}


def _derivations() -> Schemas:
    from floatlab.wire.derivations import DERIVATION

    return {"Derivation": DERIVATION}


def _arithmetic() -> Schemas:
    from floatlab.verbs.arithmetic.json import COMPARISON, CONTRAST, INTEGER_RESULT

    return {"Comparison": COMPARISON, "Contrast": CONTRAST, "IntegerResult": INTEGER_RESULT}


def _attribute() -> Schemas:
    from floatlab.verbs.attribute.json import ATTRIBUTION

    return {"Attribution": ATTRIBUTION}


def _block() -> Schemas:
    from floatlab.verbs.block.json import BLOCK

    return {"BlockDerivation": BLOCK}


def _compare() -> Schemas:
    from floatlab.verbs.compare.json import DIFFERENCES, JUDGEMENT_DOCUMENT

    return {"Differences": DIFFERENCES, "Judgement": JUDGEMENT_DOCUMENT}


def _checkpoints() -> Schemas:
    from floatlab.verbs.compare.checkpoint_json import TENSOR_DIFFERENCE

    return {"TensorDifference": TENSOR_DIFFERENCE}


def _audit() -> Schemas:
    from floatlab.verbs.audit.json import AUDITED_TENSOR, RECIPE_AUDIT, TENSOR_FIGURES

    return {"AuditedTensor": AUDITED_TENSOR, "RecipeAudit": RECIPE_AUDIT, "TensorFigures": TENSOR_FIGURES}


def _recipe_search() -> Schemas:
    from floatlab.verbs.audit.codes_json import RECIPE_SEARCH

    return {"RecipeSearch": RECIPE_SEARCH}


def _dequantize() -> Schemas:
    from floatlab.verbs.dequantize.json import DEQUANTIZATION

    return {"Dequantization": DEQUANTIZATION}


def _formats() -> Schemas:
    from floatlab.verbs.formats.json import RECIPE

    return {"Recipe": RECIPE}


def _practice() -> Schemas:
    from floatlab.verbs.practice.json import MARKING, SHEET

    return {"Marking": MARKING, "Sheet": SHEET}


def _reduce() -> Schemas:
    from floatlab.verbs.reduce.json import PRODUCT, REDUCTION

    return {"Product": PRODUCT, "Reduction": REDUCTION}


def _scaled() -> Schemas:
    from floatlab.verbs.reduce.scaled import SCALED_PRODUCT

    return {"ScaledProduct": SCALED_PRODUCT}


def _reveal() -> Schemas:
    from floatlab.verbs.reveal.json import FINDINGS, INVARIANCE, ORDER_MAP, PLAN

    return {"Findings": FINDINGS, "Invariance": INVARIANCE, "OrderMap": ORDER_MAP, "Plan": PLAN}


def _timing() -> Schemas:
    from floatlab.verbs.timing.json import COMPARISON

    return {"BackendComparison": COMPARISON}


def _train() -> Schemas:
    from floatlab.verbs.train.json import GRADIENT_CHECK, LEARNINGS, TRAINING, UNDERFLOW, UPDATE

    return {
        "GradientCheck": GRADIENT_CHECK, "Learnings": LEARNINGS, "Training": TRAINING, "Underflow": UNDERFLOW,
        "UpdateTrace": UPDATE,
    }  # fmt: skip


class Document(Record):
    """One kind of answer: how its JSON is recognised, and the function that imports its schema.

    `operations` are the possible values of the JSON member `operation`. Among the kinds with the same operation, only
    this one has the JSON member `member`.
    """

    schemas: Callable[[], Schemas]
    operations: tuple[str, ...] = ()
    member: str = "steps"


DOCUMENTS = {
    "AuditedTensor": Document(_audit, ("audit",), "verdict"),
    "Attribution": Document(_attribute, ("attribute",), "observed"),
    "BlockDerivation": Document(_block, ("block",)),
    "Comparison": Document(_arithmetic, ("compare", "equal", "less", "less_equal")),
    "Contrast": Document(_arithmetic, ("fma",), "separate"),
    "Conversion": Document(_convert),  # written only; it is read back as a Derivation
    "Derivation": Document(_derivations),
    "Dequantization": Document(_dequantize, ("dequantize",), "weights"),
    "Differences": Document(_compare, ("compare",), "worst"),
    "Findings": Document(_reveal, ("reveal",), "nodes"),
    "GradientCheck": Document(_train, ("train check",), "differences"),
    "IntegerResult": Document(_arithmetic, ("to_integer",)),
    "Invariance": Document(_reveal, ("reveal",), "circumstances"),
    "Judgement": Document(_compare, ("judge",), "causes"),
    "Learnings": Document(_train, ("train network",), "configurations"),
    "Marking": Document(_practice, ("practice",), "marks"),
    "OrderMap": Document(_reveal, ("reveal",), "classes"),
    "Plan": Document(_reveal, ("plan",), "nodes"),
    "Product": Document(_reduce, ("matmul",), "elements"),
    "Recipe": Document(_formats, ("formats",), "recipe"),
    "RecipeAudit": Document(_audit, ("audit",), "recommendation"),
    "RecipeSearch": Document(_recipe_search, ("audit",), "made_by"),
    "Reduction": Document(_reduce, ("sum", "dot"), "schedule"),
    "ScaledProduct": Document(_scaled, ("matmul",), "scales"),
    "Sheet": Document(_practice, ("practice",), "questions"),
    "BackendComparison": Document(_timing, ("matmul",), "backends"),
    "TensorFigures": Document(_audit, ("audit",), "recipes"),
    "TensorDifference": Document(_checkpoints, ("compare",), "tensor"),
    "Training": Document(_train, ("train",), "remedies"),
    "Underflow": Document(_train, ("train underflow",), "histogram"),
    "UpdateTrace": Document(_train, ("train step",), "stages"),
}


def document_of(answer: object) -> Wire:
    """Return the JSON object of an answer of any kind.

    >>> from floatlab import less
    >>> document_of(less("1", "2", format="fp16"))["result"]
    {'relation': 'less', 'holds': True}
    """
    kind = type(answer).__name__
    return write_document(DOCUMENTS[kind].schemas()[kind], answer)


def from_json(text: str) -> Any:
    """Return the answer that a JSON text describes.

    These answers can be read back: derivations; fma compared with multiply-then-add; comparisons and integers; blocks
    and recipes; plans and order maps; differences and judgements of arrays; single tensors of checkpoints; recipes
    found for codes; dequantized checkpoints; single updates; underflow; curves of gradient checks. Sums, dot products
    and matrix products can be read back if they were written in full (up to 1024 terms or elements). The JSON of other
    answers is only a summary.

    Parameters
    ----------
    text : str
        One JSON object, as written by `to_json`, or a line of the command line's `--json`.

    Returns
    -------
    An answer of the kind that was written. Expensive values, such as the error, are recomputed at their first use.

    Raises
    ------
    FileFormatError
        If the text is not such an object; the message says what is invalid.

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
            raise FileFormatError(f"the document has {len(text):,} characters, but at most {_LONGEST:,} can be read")
        wire = loads(text)
    except FloatlabError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"not JSON: {str(error)[:200]}") from None
    return answer_of_document(wire)


def answer_of_document(wire: object) -> object:
    """Return the answer that a parsed JSON object describes; raises FileFormatError if it describes no answer."""
    if not isinstance(wire, dict):
        raise FileFormatError("not an answer: a JSON object is expected")
    operation = wire.get("operation")
    kinds = (kind for kind, row in DOCUMENTS.items() if operation in row.operations and row.member in wire)
    kind = next(kinds, "Derivation")
    if kind == "Derivation" and "steps" not in wire and isinstance(operation, str):
        raise FileFormatError(f"the JSON of {quoted(operation)} is a summary, which cannot be read back")
    try:
        return read_document(DOCUMENTS[kind].schemas()[kind], wire)
    except (FloatlabError, *FAULTS) as error:
        raise FileFormatError(f"not a valid {kind}: {' '.join(str(error).split())[:300]}") from None
