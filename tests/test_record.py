"""Records: frozen values with defaults, equality, hash, repr, copies and pickles."""

from __future__ import annotations  # records read their annotations as text

import copy
import inspect
import pickle

import pytest

from floatlab import Context, Exact, Flags, FloatlabError, Format, decode, parse_format, read
from floatlab.record import Individual, Record


class Point(Record):
    x: int
    y: int = 2


class Named(Point):
    """A subclass may add fields."""

    name: str = "origin"
    _fields = ("x", "y", "name")


class Checked(Record):
    n: int

    def __post_init__(self):
        if self.n < 0:
            raise ValueError("negative")


class Empty(Record):
    pass


class Single(Individual):
    x: object


def test_fields_are_taken_by_place_and_by_name_with_defaults():
    assert (Point(1).x, Point(1).y) == (1, 2)
    assert Point(1, 2) == Point(1) == Point(x=1, y=2) == Point(y=2, x=1)
    for wrong in ({}, {"x": 1, "z": 3}):
        with pytest.raises(TypeError):
            Point(**wrong)
    with pytest.raises(TypeError):
        Point(1, 2, 3)


def test_classes_with_as_many_fields_keep_their_own_parameters():
    class Other(Record):
        a: int
        b: str = "b"

    assert str(inspect.signature(Other)) == "(a, b='b')"
    assert str(inspect.signature(Point)) == "(x, y=2)"
    assert repr(Other(a=1)) == "Other(a=1, b='b')"
    with pytest.raises(TypeError, match="a field without a default follows one with a default"):

        class Wrong(Record):
            a: int = 1
            b: int


def test_a_record_is_frozen_and_has_no_room_for_more():
    point = Point(1)
    with pytest.raises(AttributeError, match=r"Point\.x cannot be assigned: records are frozen"):
        point.x = 5
    with pytest.raises(AttributeError, match="frozen"):
        point.z = 5
    with pytest.raises(AttributeError, match=r"Point\.x cannot be deleted: records are frozen"):
        del point.x
    assert not hasattr(point, "__dict__")
    assert point == Point(1)


def test_equality_and_hash_are_by_type_and_fields():
    class Other(Record):
        x: int
        y: int = 2

    assert Point(1) == Point(1)
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)
    assert Point(1) != (1, 2)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert len({Point(1), Point(1, 2), Point(1, 3)}) == 2
    assert Empty() == Empty()


def test_repr_names_the_fields_and_can_be_evaluated():
    assert repr(Point(1)) == "Point(x=1, y=2)"
    assert eval(repr(Point(3, 4))) == Point(3, 4)
    assert repr(Empty()) == "Empty()"


def test_replace_changes_some_fields_and_checks_again():
    assert Point(1).replace(y=5) == Point(1, 5)
    assert Point(1).replace() == Point(1)
    with pytest.raises(TypeError):
        Point(1).replace(z=5)
    with pytest.raises(ValueError, match="negative"):
        Checked(1).replace(n=-1)


def test_a_record_validates_itself():
    assert Checked(0).n == 0
    with pytest.raises(ValueError, match="negative"):
        Checked(-1)


def test_records_match_patterns_by_place():
    match Point(1, 7):
        case Point(1, y):
            assert y == 7
        case _:
            pytest.fail("no match")


EVERYDAY = [
    Point(1, 5),
    Checked(3),
    Empty(),
    Exact(True, 3, -1),
    Context(rounding="RTZ", seed=7, overflow="saturate", flush_results=True),
    Format("mine", 5, 4, nans=1, infinities=False),
    parse_format("p3109_k6p3ue"),
    decode(0x3C7C, "fp16"),
    read("1/3", "fp16"),
    read("1e9", "e4m3", Context(rounding="SR", seed=3)),
    read("nan(0x3)", "fp16"),
]


@pytest.mark.parametrize("record", EVERYDAY, ids=lambda record: type(record).__name__)
def test_copies_and_pickles_are_equal(record):
    for again in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record)), record.replace()):
        assert again == record
        assert hash(again) == hash(record)
        assert repr(again) == repr(record)
        assert type(again) is type(record)


@pytest.mark.parametrize("record", EVERYDAY, ids=lambda record: type(record).__name__)
def test_nothing_of_a_record_can_be_assigned(record):
    for field in (*record._fields, "another"):
        with pytest.raises(AttributeError):
            setattr(record, field, None)


def test_a_subclass_may_add_fields_or_its_own_initializer():
    context = Context("RTZ")
    assert context._fields[0] == "rounding"
    assert context == Context(rounding="minMag")
    assert context != Context()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounding": "RNX"}, "unknown rounding direction 'RNX'"),
        ({"overflow": "saturat"}, "did you mean 'saturate'?"),
        ({"absent": "null"}, "absent must be one of largest zero nan error"),
        ({"tininess": "during"}, "tininess must be one of after before"),
        ({"nan": "mips"}, "the NaN rule must be one of first x86 arm riscv"),
        ({"seed": -1}, "a seed must be an integer"),
        ({"seed": 1 << 64}, "a seed must be an integer"),
        ({"seed": 1.5}, "a seed must be an integer"),
        ({"seed": "x" * 1000}, "a seed must be an integer"),
    ],
)
def test_a_context_says_what_its_words_are(arguments, words):
    with pytest.raises(FloatlabError) as caught:
        Context(**arguments)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_context_takes_words_in_any_case_and_enums():
    context = Context(overflow="SATURATE", absent="Zero", tininess="Before", nan="X86")
    again = Context(overflow=context.overflow, absent=context.absent, tininess=context.tininess, nan=context.nan)
    assert again == context
    assert Context() == Context(rounding="RNE", seed=0, overflow="native", absent="largest", tininess="after",
                                flush_inputs=False, flush_results=False, nan="first", fma_invalid=True)  # fmt: skip


def test_flags_are_pickled_and_copied_as_themselves():
    both = Flags.OVERFLOW | Flags.INEXACT
    assert pickle.loads(pickle.dumps(both)) is both
    assert copy.deepcopy(both) is both


def test_an_individual_is_equal_to_nothing_but_itself():
    one = Single([1])
    assert one == one
    assert one != Single(one.x)
    assert hash(one) == hash(one)
    assert one.replace(x=2).x == 2
