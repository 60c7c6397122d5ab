"""Reduce: the orders of all elements of a library's product, as a picture with a cursor, a shape and a layout."""

import time

import pytest

from floatlab.tui.screens.reduce.map_view import MapView
from floatlab.tui.screens.reduce.tables import TreeTable
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.page_view import PageView
from floatlab.tui.widgets.pickers import Picker
from tests.tui import tiles
from tests.tui.stage import ANY_SIZE, driven, opened
from tests.tui.test_reduce import asks, pick, said

TILES = "reveal tests.tui.tiles:product --kind matmul"
MAP = f"{TILES} --shape 20x12x30"


def figures(person):
    return person.app.shown.query_one("#figures", PageView).text


def view(person):
    return person.app.shown.query_one(MapView)


def slow(a, b):
    time.sleep(0.02)
    return tiles.product(a, b)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_map_opens_as_a_picture_and_tells_the_order_under_the_cursor(size):
    async with opened(MAP, size) as person:
        assert person.app.shown.shown_view == "map"
        lines = view(person).text.splitlines()
        assert lines[0].split() == ["rows", "0–17", "A" * 24 + "B" * 6]
        assert lines[-1].split()[-1] == "C" * 24 + "B" * 6
        assert view(person).has_focus
        assert "A 72 %" in figures(person)
        assert "serial" in figures(person)
        await person.press("right")
        assert "B 20 %" in figures(person)
        assert "lanes(2" in figures(person)
        await person.press("down", "left")
        assert "C 8 %" in figures(person)
        assert "reversed" in figures(person)
        await person.press("down", "left", "left")
        assert "A 72 %" in figures(person) or "B 20 %" in figures(person)


@driven
async def test_the_tree_of_a_block_and_the_whole_page_are_views():
    async with opened(MAP) as person:
        await person.press("right", "enter")
        assert person.app.shown.shown_view == "tree"
        tree = person.app.shown.query_one(TreeTable)
        assert tree.display
        assert tree.tree_shown.plan == person.app.shown.order_map.classes[1].plan
        await person.press("v")
        assert "probing" in person.app.shown.details.text
        await person.press("v")
        assert view(person).display


@driven
async def test_shape_and_layout_are_controls():
    async with opened(f"{TILES} --terms 9") as person:
        assert "whole products …" in dict(person.app.shown.query_one("#controls", ChoiceBar).options).values()
        await person.press("Z")
        await pick(person, "20x12x30")
        assert asks(person, MAP)
        await person.choose("#controls", "layout")
        await pick(person, "A.T@B.T")
        assert asks(person, f"{MAP} --layout A.T@B.T")
        assert "A.T@B.T" in figures(person)
        await person.press("Z")
        await pick(person, "20x12")
        assert said(person).startswith("! ")
        assert asks(person, f"{MAP} --layout A.T@B.T")
        await person.press("Z")
        await pick(person, "0x3")
        assert said(person).startswith("! a shape takes MxKxN")
        await person.press("Z")
        await pick(person, "5x33x70")  # not the 5x33x7 of the list
        assert asks(person, f"{TILES} --shape 5x33x70 --layout A.T@B.T")
        await person.press("u")
        await person.press("Z")
        await pick(person, "only the first")
        assert asks(person, TILES)
        assert not view(person).display
        await person.press("u", "u", "u")
        assert asks(person, f"{TILES} --terms 9")


@driven
async def test_a_sum_has_no_shape():
    async with opened("reveal builtins:sum --terms 9") as person:
        assert "shape" not in dict(person.app.shown.query_one("#controls", ChoiceBar).options)
        await person.press("Z")
        assert not isinstance(person.app.screen, Picker)


@driven
async def test_a_map_that_takes_long_shows_its_progress_and_escape_stops_it():
    async with opened(MAP, grace=0.01) as person:
        end = time.monotonic() + 20
        while person.app.shown.pending is not None and time.monotonic() < end:
            await person.pilot.pause(0.05)
        await person.press("w")
        await pick(person, "tests.tui.test_order_map:slow")
        pending = person.app.shown.pending
        assert pending is not None
        assert "Esc stops" in said(person)
        await person.press("escape")
        assert said(person).startswith("stopped")
        await person.press("u")
        assert asks(person, MAP)
        assert pending.ends(2)  # at the next product, not at the end of the class
        assert "A 72 %" in figures(person)
