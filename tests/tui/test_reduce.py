"""The screen Reduce, driven by keys and clicks: orders, additions, the tree and its nodes, libraries."""

import asyncio
import shlex
import threading

import pytest

from floatlab.cli.parser import read_question
from floatlab.page.model import text_of
from floatlab.tui.screens.reduce.tables import OrderTable, TreeTable
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.page_view import PageView
from floatlab.tui.widgets.pickers import HelpWindow, Picker
from floatlab.verbs.registry import answer_question, command_of
from tests.tui.stage import ANY_SIZE, complaint, driven, opened

FORUM = "dot --preset forum"
LONG = "sum random:normal:300:seed=1 --fp32 --schedule numpy"


def tree(person):
    return person.app.shown.query_one(TreeTable)


def rows(person):
    return [text_of(each.cells[0]).strip() for each in tree(person).tree_rows]


def result(person):
    return person.app.shown.query_one("#result", PageView).text


def said(person):
    return str(person.app.shown.query_one("#complaint").render())


def asks(person, command):
    """Return whether the question of the screen is that of a command."""
    return person.app.shown.question == read_question(shlex.split(command))


async def pick(person, text):
    assert isinstance(person.app.screen, Picker)
    await person.press("ctrl+u")  # a name that was refused is still there
    await person.type(text)
    await person.press("enter")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_bits_of_both_forum_results_stand_one_below_the_other(size):
    async with opened(FORUM, size) as person:
        assert "0x3d6533f0" in result(person)
        await person.press("m")
        assert asks(person, "dot --preset forum --fma")
        bits = [each for each in result(person).splitlines() if "01111010" in each]
        marks = next(each for each in result(person).splitlines() if "^" in each)
        assert len(bits) == 2
        column = bits[0].index("01111010")
        now, before = (each[column - 2 : column + 32] for each in bits)
        assert (
            marks[column - 2 :].rstrip()
            == "".join(" " if a == b else "^" for a, b in zip(now, before, strict=True)).rstrip()
        )
        await person.press("u")
        assert "0x3d6533f0" in "".join(result(person).splitlines()[:2])


@driven
async def test_other_data_have_no_result_before():
    async with opened("sum 1,2,3 --fp16") as person:
        await person.press("s")
        await pick(person, "reversed")
        assert "the same bits as serial" in result(person)
        await person.fill("#x Input", "1,2,4")
        assert "before" not in result(person)
        assert "0x4700 7" in result(person)


@driven
async def test_a_result_that_was_pinned_stays_beside_the_others():
    async with opened(FORUM) as person:
        await person.press("a", "m")
        assert "A            " in result(person)
        await person.press("s")
        await pick(person, "pairwise")
        assert "0x3d6533f0" in result(person).splitlines()[2]
        assert person.app.pins["A"] == "bits:0x3d6533f0@fp32"


@driven
async def test_an_order_is_picked_or_typed_and_what_is_wrong_has_a_caret():
    async with opened(LONG) as person:
        await person.press("s")
        await pick(person, "blocked(64, lanes(8), pairwise)")
        assert person.app.shown.question.option("schedule") == "blocked(64, lanes(8), pairwise)"
        kept = result(person)
        await person.press("s")
        await pick(person, "blocked(64, laness)")
        lines = said(person).splitlines()
        assert lines[0].startswith("! 'laness' is not a schedule")
        assert lines[-1].index("^") == lines[-2].index("laness")
        assert result(person) == kept


@driven
async def test_formats_additions_and_machines_are_picked():
    async with opened(FORUM) as person:
        for key, text, command in (
            ("i", "fp64", "dot --preset forum --accumulator fp64"),
            ("p", "bf16", "dot --preset forum --accumulator fp64 --products bf16"),
            ("i", "automatic", "dot --preset forum --products bf16"),
            ("d", "kahan", "dot --preset forum --adder kahan --products bf16"),
            ("f", "fp64", "dot --preset forum --fp64 --adder kahan --products bf16"),
        ):
            await person.press(key)
            await pick(person, text)
            assert asks(person, command)
        await person.press("f")
        await pick(person, "fp32")
        await person.press("x")
        await pick(person, "hopper.tf32.f32")
        assert asks(person, "dot --preset forum --fp32 --machine hopper.tf32.f32")
        assert rows(person)[:2] == ["▾ 4 terms", "+ ▾ 4 at once"]
        await person.press("m")
        assert asks(person, "dot --preset forum --fp32 --fma")
        await person.press("r")
        await pick(person, "RTZ")
        assert "-r RTZ" in command_of(person.app.shown.question)


@driven
async def test_the_tree_folds_and_unfolds():
    async with opened(LONG) as person:
        assert rows(person) == ["▾ 300 terms", "▸ x0 … x143", "+ ▸ x144 … x299"]
        await person.press("down", "right")
        assert rows(person)[1] == "▾ x0 … x143"
        deep = len(rows(person))
        assert deep > 4
        await person.press("left")
        assert len(rows(person)) == 3
        await person.press("space", "down", "down")
        assert tree(person).cursor == 3
        await person.press("left")
        assert tree(person).cursor == 1
        await person.press("asterisk")
        assert len(rows(person)) > 300
        await person.press("asterisk")
        assert len(rows(person)) == 3
        await person.press("m")  # nothing to fuse in a sum
        assert asks(person, LONG)


@driven
async def test_the_worst_are_found_in_turn():
    async with opened(LONG) as person:
        await person.press("n")
        worst = tree(person).tree_shown.worst
        assert tree(person).current_row.id == worst[0]
        await person.press("n")
        assert tree(person).current_row.id == worst[1]
        await person.press("N")
        assert tree(person).current_row.id == worst[0]
    async with opened("sum 1,2,3 --fp16") as person:
        await person.press("n")
        assert said(person) == "no addition has a rounding error"


@driven
async def test_a_click_on_the_mark_folds():
    async with opened(LONG) as person:
        shown = tree(person)
        y, x, _ = shown.places[1]
        offset = (x + 2 + text_of(shown.tree_rows[1].cells[0]).index("▸"), y)
        assert await person.pilot.click(shown, offset=offset)
        assert rows(person)[1] == "▾ x0 … x143"
        assert await person.pilot.click(shown, offset=(30, 0))  # the header turns
        assert shown.turned >= 0


@driven
async def test_a_node_opens_as_a_derivation():
    async with opened(f"{FORUM} --fma -r RTZ") as person:
        await person.press("down", "down", "down", "enter")
        assert person.app.current_mode == "arithmetic"
        asked = person.app.shown.question
        assert asked.verb == "fma"
        assert asked.context.rounding.value == "RTZ"
        node = answer_question(read_question(shlex.split(f"{FORUM} --fma -r RTZ")))[0].found.nodes[1]
        assert person.app.shown.answers[0].results == (node.value,)


@driven
async def test_a_node_with_several_roundings_offers_them():
    async with opened(FORUM) as person:
        await person.press("down", "down", "enter")
        assert isinstance(person.app.screen, Picker)
        await person.press("down", "enter")
        assert person.app.current_mode == "arithmetic"
        assert person.app.shown.question.verb == "mul"


@driven
async def test_a_term_and_a_node_of_many_open_too():
    async with opened("sum 1.5,2,3,4,5,6,7,8.5 --schedule fused(4) --fp16") as person:
        await person.press("down", "enter")
        assert isinstance(person.app.screen, HelpWindow)
        assert "adds 4 numbers at once" in person.screen
        await person.press("escape", "down", "enter")
        assert person.app.current_mode == "inspect"
        assert person.app.shown.question.values == ("bits:0x3e00@fp16",)


@driven
async def test_all_orders_stand_side_by_side_and_one_is_taken():
    async with opened(FORUM) as person:
        await person.press("v", "v")
        orders = person.app.shown.query_one(OrderTable)
        assert orders.names[:3] == ["serial", "serial, fma", "reversed"]
        before = orders.ways[1].result
        await person.press("down", "enter")
        assert asks(person, "dot --preset forum --fma")
        assert person.app.shown.subject() == before
        assert orders.names[:3] == ["serial", "serial, no fma", "reversed"]
        assert "none" in text_of(orders.table.rows[0][3])


@driven
async def test_a_library_is_asked_and_its_order_taken_over():
    async with opened("sum random:normal:100:seed=1 --fp32") as person:
        kept = person.app.shown.question
        await person.press("w")
        await pick(person, "numpy.sum")
        assert asks(person, "reveal numpy.sum --terms 100")
        assert "random sums have the same bits" in person.screen
        assert rows(person)[0] == "▾ 100 terms"
        await person.choose("#controls", "terms")
        await pick(person, "8")
        assert person.app.shown.question.option("terms") == 8
        await person.press("g")
        asked = person.app.shown.question
        assert asked.values == kept.values
        assert asked.option("schedule") is not None
        assert "revealed for 8 terms" in said(person)
        await person.press("u", "u", "u")
        assert person.app.shown.question == kept


@driven
async def test_what_is_no_target_is_said_and_the_data_come_back():
    async with opened("reveal numpy.sum --terms 8") as person:
        await person.press("w")
        await pick(person, "numpy:nonsense")
        assert said(person).startswith("! ")
        assert person.app.shown.question.values == ("numpy.sum",)
        await person.press("escape")
        await person.choose("#controls", "back")
        assert person.app.shown.question.verb == "sum"


@driven
async def test_an_element_of_a_product_is_shown():
    async with opened("matmul 1,2;3,4 5,6;7,8.1 --fp16") as person:
        assert "0x4cc0 19" in result(person)
        await person.press("e")
        await pick(person, "1,1")
        assert "50.4" in result(person)
        assert "before" not in result(person)
        await person.press("e")
        await pick(person, "7,7")
        assert said(person) == "! there is no element '7,7' in a product of shape (2, 2)"
        await person.press("o")
        await pick(person, "dot")
        assert said(person).startswith("! ")
        await person.fill("#x Input", "1,2")
        assert person.app.shown.question.verb == "matmul"


@driven
async def test_the_operation_changes_with_the_arrays_that_there_are():
    async with opened(FORUM) as person:
        await person.press("o")
        await pick(person, "sum")
        assert person.app.shown.question.values == ("1.907607,-0.7862027,1.147311,0.9604002",)
        await person.press("o")
        await pick(person, "dot")
        assert len(person.app.shown.question.values) == 2
        assert "dot ▾" in dict(person.app.shown.query_one("#controls", ChoiceBar).options).values()


@driven
async def test_boxes_are_typed_in_and_a_wrong_one_keeps_the_picture():
    async with opened(FORUM) as person:
        kept = result(person)
        await person.press("slash", "end", *",x")
        assert said(person).startswith("! ")
        assert person.app.focused.has_class("-wrong")
        assert result(person) == kept
        await person.press("escape")
        assert person.app.shown.query_one("#x Input").value.endswith(",0.9604002,x")  # it stays, to be corrected
        await person.press("u")
        assert person.app.shown.query_one("#x Input").value == "1.907607,-0.7862027,1.147311,0.9604002"


@driven
async def test_what_is_typed_takes_the_place_of_an_array():
    async with opened(FORUM) as person:
        await person.press("slash", *"1,2,3,4", "tab", *"1,1,1,1")
        assert asks(person, "dot 1,2,3,4 1,1,1,1")


@driven
async def test_a_mistake_in_an_order_is_seen_whole_and_goes_with_escape():
    async with opened(FORUM, (80, 24)) as person:
        await person.press("s")
        await pick(person, "blocked(8, lans(4))")
        assert said(person).splitlines()[-1].endswith("^")
        assert [line for line in person.screen.splitlines() if line.strip() == "^"]
        await person.press("escape")
        assert not person.app.shown.query_one("#complaint").has_class("-shown")


@driven
async def test_libraries_of_the_operation_come_first_and_random_numbers_are_told():
    async with opened(FORUM) as person:
        await person.press("w")
        assert person.app.screen.query_one("OptionList").get_option_at_index(0).id == "numpy.dot"
        await pick(person, "numpy.sum")
        await person.press("g")
        assert "random numbers are added" in said(person)
        await person.press("u", "u")
        assert asks(person, "dot --preset forum")


@driven
async def test_what_is_no_tree_is_a_page():
    async with opened(f"{FORUM} --observed 0.0559577,0.0559577569366 --difference 8.19563865662e-08") as person:
        assert "order and FMA" in person.screen
        await person.press("m")
        assert asks(person, "dot --preset forum --fma")
    async with opened("sum random:normal:5000:seed=1") as person:
        assert "too many for a tree" in person.screen


@driven
async def test_value_and_command_are_copied():
    async with opened(f"{FORUM} --fma") as person:
        await person.press("y")
        assert person.app.clipboard == "0.055957757"
        await person.press("Y")
        assert person.app.clipboard == "floatlab dot --fma --preset forum"


@driven
async def test_the_palette_knows_orders():
    async with opened(FORUM) as person:
        names = [name for name, _, _ in person.app.shown.commands()]
        for wanted in ("Order: pairwise", "Additions: kahan", "Machine: hopper.f16.f32", "Library: numpy.sum"):
            assert wanted in names


@driven
async def test_orders_come_one_by_one_and_stop_when_another_sum_is_asked_for(monkeypatch):
    import floatlab.tui.screens.reduce.tables

    given, whole, gate = [], floatlab.tui.screens.reduce.tables.compare_orders, threading.Event()

    def slowly(found):
        for rows in whole(found):
            given.append(found)
            yield rows
            if len(given) == 3:
                gate.wait(10)

    monkeypatch.setattr(floatlab.tui.screens.reduce.tables, "compare_orders", slowly)
    monkeypatch.setattr(OrderTable, "SHORT", 0)
    async with opened(FORUM) as person:
        first = person.app.shown.reduction
        await person.press("v", "v")
        orders = person.app.shown.query_one(OrderTable)
        while len(orders.ways) < 2:
            await asyncio.sleep(0.01)
        assert len(orders.ways) <= 3
        await person.press("m")
        gate.set()
        second = person.app.shown.reduction
        while len(orders.ways) < 12 or second not in given:
            await asyncio.sleep(0.01)
        assert orders.ways[0].result == second.result
        assert given.count(first) <= 4 < given.count(second)


@driven
async def test_before_the_answer_there_are_controls_and_one_pane_below():
    async with opened("sum random:normal:4000000:seed=1 -f e5m30", (120, 34), grace=0.0) as person:
        task = person.app.shown
        assert not task.answers
        assert [name for name, _ in task.controls.options][:2] == ["operation", "schedule"]
        names = ("tree", "details", "addition", "orders", "map")
        assert [name for name in names if task.query_one(f"#{name}").region] == ["details"]
        await person.press("escape")


@driven
async def test_a_compensated_sum_is_an_order_too():
    async with opened("dot --preset forum") as person:
        await person.press("s")
        await person.type("kahan")
        await person.press("enter")
        assert person.app.shown.question.option("adder") == "kahan"
        assert complaint(person) == ""
