"""A verb is one folder and one entry: a toy verb appears everywhere, and the words of a verb are only in its folder."""

import ast
import json
import sys
from pathlib import Path

import pytest

import floatlab
from floatlab.cli.main import main
from floatlab.cli.parser import read_question
from floatlab.verbs.option import DIALECT, FORMATS, OUTPUT, ROUNDING, SILENT_NAN
from floatlab.verbs.question import Question
from floatlab.verbs.registry import VERBS, Entry, answer_question, command_of, verb_named
from tests.tui.stage import driven, opened

HOUSE = Path(floatlab.__file__).parent
OPTIONS = """
from floatlab.verbs.option import DIRECTION, DIALECT, FORMATS, OUTPUT, Option, OptionRule, grouped, whole
from floatlab.verbs.question import Verb

VERB = Verb(
    name="toy",
    summary="double a number, as a toy does",
    examples=("toy 1.5 --fp16", "toy 3 --times 2"),
    explanation="A verb of the tests.",
    takes=("VALUE", "a number"),
    options=(
        *grouped(
            "toys",
            Option("times", "N", "double it N times", read=whole(1, 9)),
            Option("once", "", "double it once"),
            Option("paint", "HUE", "what it is painted", choices=(("red", "as a ball"), ("blue", "as a ship"))),
        ),
        FORMATS,
        *DIRECTION,
        *OUTPUT,
    ),
    rules=(OptionRule(("times",), "once is once", excludes=("once",)),),
    also=("twice → toy VALUE",),
)
"""
ANSWER = """
from floatlab import encode, multiply
from floatlab.verbs.question import answer_for

def answers(question, started=None):
    format = next(iter(question.formats), "fp32")
    factor = 2 ** question.option("times", 1)
    return [answer_for([multiply(value, str(factor), format, question.context)]) for value in question.values]
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Add the folder of a verb, and its entry."""
    folder = tmp_path / "toy_verb"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "options.py").write_text(OPTIONS)
    (folder / "answer.py").write_text(ANSWER)
    monkeypatch.syspath_prepend(tmp_path)

    def verb(name):
        from toy_verb.options import VERB

        return VERB

    def answers():
        from toy_verb.answer import answers

        return answers

    monkeypatch.setitem(VERBS, "toy", Entry(verb, answers, "inspect"))
    yield
    for name in ("toy_verb", "toy_verb.options", "toy_verb.answer"):
        sys.modules.pop(name, None)


def said(capsys, *words, status=0):
    assert main(list(words)) == status
    out, err = capsys.readouterr()
    return out if status == 0 else err


def test_the_overview_and_its_own_help_list_it(toy, capsys):
    assert "toy        double a number, as a toy does" in said(capsys, "help")
    help = said(capsys, "toy", "--help")
    assert help == said(capsys, "help", "toy")
    for words in (
        "usage: floatlab toy",
        "double it N times",
        "what it is painted: red|blue",
        "floatlab toy 1.5 --fp16",
    ):
        assert words in help


def test_it_answers_as_text_as_json_and_as_one_word(toy, capsys):
    assert "3" in said(capsys, "toy", "1.5", "--fp16")
    assert json.loads(said(capsys, "toy", "1.5", "--fp16", "--json"))["result"]["code"] == "0x4200"
    assert said(capsys, "toy", "1.5", "--times", "3", "--quiet") == "12\n"


def test_its_question_can_be_asked_again(toy):
    question = read_question(["toy", "1.5", "--times", "3", "-r", "RTZ", "--fp16"])
    assert question == Question("toy", ("1.5",), question.formats, question.context).having(times=3)
    assert command_of(question) == "floatlab toy 1.5 --fp16 -r RTZ --times 3"
    assert read_question(command_of(question).split()[1:]) == question
    assert answer_question(question)[0].words() == ["12"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1", "--times", "10"], "--times takes a whole number from 1 to 9, not '10'"),
        (["1", "--times", "2", "--once"], "--times and --once exclude each other: once is once"),
        (["1", "--time", "2"], "did you mean '--times'?"),
        (["1", "--times"], "--times needs N: double it N times"),
        ([], "toy needs a value, as in floatlab toy 1.5 --fp16"),
        (["twice"], "did you mean floatlab toy VALUE?"),
    ],
)
def test_its_errors_come_from_its_table(toy, capsys, words, message):
    command = words if words == ["twice"] else ["toy", *words]
    assert message in said(capsys, *command, status=2)


@driven
async def test_the_palette_of_the_explorer_offers_it(toy):
    async with opened("show 1 --fp16") as person:
        await person.press("ctrl+p")
        await person.type("example toy 1.5")
        await person.pilot.pause(0.4)
        assert "Example: toy 1.5 --fp16" in person.screen


def test_completion_offers_it(toy, capsys):
    pytest.importorskip("shtab", reason="shtab writes the scripts")
    script = said(capsys, "completion", "bash")
    assert "--times" in script
    assert "_paint_choices=(red blue)" in script


def own_options(verb):
    """Return the options that are a verb's own, and not shared ones."""
    shared = {FORMATS.name, *(option.name for option in (*ROUNDING, DIALECT, SILENT_NAN, *OUTPUT))}
    return [option for option in verb.options if option.name not in shared]


def own_texts(verb):
    """Return the texts that only the folder of a verb may contain."""
    texts = {verb.summary, verb.explanation, *verb.examples, *(option.help for option in own_options(verb))}
    return {text for text in texts if " " in text}


def strings_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_no_text_of_a_verb_stands_in_a_door_or_in_another_verb():
    texts = set().union(*(own_texts(verb_named(name)) for name in VERBS))
    doors = [path for room in ("cli", "tui", "verbs") for path in (HOUSE / room).rglob("*.py")]
    outside = {path.name: strings_in(path) & texts for path in doors if path.name != "options.py"}
    assert {name: found for name, found in outside.items() if found} == {}


def test_no_flag_of_a_verb_is_written_where_all_verbs_are_treated_alike():
    flags = {flag for name in VERBS for option in own_options(verb_named(name)) for flag in option.spellings}
    flags -= {"--csv", "--html", "--plan", "--plot"}  # files that the command line itself writes
    flags -= {"--little-endian"}  # which a question spells out
    alike = [HOUSE / "cli" / f"{name}.py" for name in ("main", "parser", "output", "hints", "completion")]
    alike += [HOUSE / "verbs" / f"{name}.py" for name in ("option", "question", "registry")]
    outside = {path.name: strings_in(path) & flags for path in alike}
    assert {name: found for name, found in outside.items() if found} == {}
