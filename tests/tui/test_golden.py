"""The text of the screen, character by character: a file for each scene and size.

`python -m tests.tui.test_golden` writes the files anew, and the pictures of the documents from the same scenes;
read the difference and look at the pictures before committing them.
"""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from floatlab.tui.themes import CYCLE, SIXTEEN
from tests.tui.pictures import picture
from tests.tui.stage import SIZES, opened

HERE = Path(__file__).parent / "golden"
sys.path.append(str(HERE.parent))  # so that the pictures name the module `tiles`
PICTURES = Path(__file__).parents[2] / "docs" / "images"

START = "show 1.12156456132 --fp16 --bf16 --e4m3 --fp32"
COMPARE = "compare random:normal:64x64:seed=1@fp32 random:normal:64x64:seed=1@bf16 --fp32 --rtol 0.003"
CAUSE = "compare '19,22;43,50' '19,22;43,51' --inputs '1,2;3,4' '5,6;7,8' --fp32"
FORUM = "dot --preset forum"
BLOCK = "block 0.1 -2.5 3 7.3 0.02 --to nvfp4"
AUDIT = "audit random:normal:64x256:seed=1@bf16 random:lognormal:64x256:sigma=3:seed=2@bf16 --to e4m3,mxfp4,nvfp4"
TRAIN = "train 1.125 --update 0.00041999 --steps 101 --remedies plain,master,stochastic,kahan"
FMA = "fma 1.0009765625 1.0009765625 -1.001953125 --fp16"
# Each scene: the command that it opens at, and the keys that lead there.
SCENES = {
    "inspect": (START, []),
    "inspect-flipped": (START, ["left", "left", "space", "left"]),
    "inspect-directions": ("show 0.1 --e4m3 --e5m2", ["v"]),
    "inspect-dialects": ("show bits:0x38 --dialects", []),
    "inspect-path": ("convert 1.00048828126 --through fp32,fp16", []),
    "inspect-field": ("show 1 --fp16 --fp64", ["e", "ctrl+n", "ctrl+n", *"99"]),
    "inspect-wrong": ("show 0.1 --fp16", ["slash", *"x1"]),
    "inspect-pins": ("show 1.5 --fp16", ["a", "plus", "plus", "b"]),
    "inspect-special": ("show nan --fp16 --e4m3 --e2m1", []),
    "inspect-wide-format": ("show 0.1 --fp128", []),
    "arithmetic": ("add 1.125 0.12457275390625 --fp16", []),
    "arithmetic-align": ("add 1.125 0.12457275390625 --fp16", ["home", "n"]),
    "arithmetic-fma": (FMA, ["end"]),
    "arithmetic-fma-parting": (FMA, ["home", "n", "n"]),
    "arithmetic-256-bits": ("mul 0.1 0.3 --fp128", ["home", "n"]),
    "arithmetic-compare": ("cmp 0.1@fp16 0.1@fp32", ["end"]),
    "arithmetic-practice": ("add 1.125 0.12457275390625 --fp16", ["x"]),
    "formats": ("formats", []),
    "formats-compare": ("formats fp16 bf16", []),
    "formats-codes": ("formats e4m3", ["v"]),
    "block": ("block 0.1 -2.5 3 --to mxfp4:up", []),
    "block-array": ("block random:normal:64x64:seed=1@fp32 --to nvfp4 --at 3,17", ["n"]),
    "block-elements": (BLOCK, ["v", "down"]),
    "block-recipe": (f"{BLOCK}:te_4over6_mse256", ["v", "v"]),
    "block-wrong": (BLOCK, ["w", "end", *":bet"]),
    "compare": (COMPARE, []),
    "compare-ulps": (COMPARE, ["v", "home", "down"]),
    "compare-worst": (COMPARE, ["v", "v", "down"]),
    "compare-where": (COMPARE, ["v", "v", "v"]),
    "compare-cause": (CAUSE, []),
    "reduce": (FORUM, ["m", "down", "down"]),
    "reduce-orders": (FORUM, ["m", "v", "v"]),
    "reduce-worst": ("sum random:normal:300:seed=1 --schedule numpy", ["n"]),
    "reduce-machine": (f"{FORUM} --machine hopper.tf32.f32", ["down", "enter"]),
    "reduce-library": ("reveal builtins:sum --terms 9", []),
    "reduce-map": ("reveal tiles:product --kind matmul --shape 20x12x30", ["down", "right"]),
    "train": (TRAIN, ["home", *"nnnnnnnn", "e", *"mas", "enter", "end", *["left"] * 5]),
    "train-step": (TRAIN, ["enter"]),
    "audit": (AUDIT, []),
    "audit-tensors": (AUDIT, ["v", "down"]),
    "audit-plan": (AUDIT, ["v", "v"]),
    "audit-wrong": (AUDIT, ["w", "end", *",mxpf4"]),
    "picker-format": ("show 0.1 --fp16", ["f", *"fp8"]),
    "picker-recipe": (BLOCK, ["f", *"te_4"]),
    "picker-rules": ("show 0.1 --fp16", ["r"]),
    "keys": ("show 0.1 --fp16", ["question_mark"]),
    "first-steps": ("show 0.1 --fp16", ["f1"]),
    "history": ("add 1.125 0.12457275390625 --fp16", ["s", "f6", "f2", "H"]),
}
# The pictures of the documents: the scene, how large, and the theme.
DARK, LIGHT, WIDE = CYCLE[0], CYCLE[1], (120, 40)
SHOWN = {
    "explorer-inspect": ("inspect-flipped", WIDE, DARK),
    "explorer-arithmetic": ("arithmetic-fma", (120, 41), DARK),
    "explorer-align": ("arithmetic-align", WIDE, DARK),
    "explorer-formats": ("formats-compare", WIDE, DARK),
    "explorer-block": ("block-elements", (120, 30), DARK),
    "explorer-compare": ("compare", WIDE, DARK),
    "explorer-worst": ("compare-worst", (80, 24), DARK),
    "explorer-reduce": ("reduce", WIDE, DARK),
    "explorer-orders": ("reduce-orders", (120, 30), DARK),
    "explorer-map": ("reduce-map", (80, 24), DARK),
    "explorer-audit": ("audit-tensors", WIDE, DARK),
    "explorer-train": ("train", WIDE, DARK),
    "explorer-two-topics": ("inspect", (160, 50), DARK),
    "explorer-light": ("formats", WIDE, LIGHT),
    "explorer-16-colours": ("inspect-flipped", (80, 24), SIXTEEN),
}
CASES = [(name, size) for name in SCENES for size in SIZES]


def path_of(name, size):
    return HERE / f"{name}-{size[0]}x{size[1]}.txt"


async def act(name, size, theme=DARK):
    command, keys = SCENES[name]
    async with opened(command, size, theme=theme) as person:
        await person.rested()
        for key in keys:
            await person.press(key)
            await person.rested()
        await person.pilot.pause()
        return person.screen, picture(person.app)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "size"),
    # Errors are most likely on small screens; wide screens are slow tests.
    [pytest.param(*case, marks=[pytest.mark.slow] if case[1] == SIZES[-1] else []) for case in CASES],
    ids=lambda each: each if isinstance(each, str) else "x".join(map(str, each)),
)
def test_the_screen_is_as_recorded(name, size):
    screen, _ = asyncio.run(act(name, size))
    assert f"{screen}\n" == path_of(name, size).read_text(encoding="utf-8")
    assert all(len(line) <= size[0] for line in screen.splitlines())


def test_no_recorded_screen_is_left_over():
    assert {path.name for path in HERE.glob("*.txt")} == {path_of(*case).name for case in CASES}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SHOWN)
def test_the_pictures_of_the_documents_are_these_screens(name):
    _, svg = asyncio.run(act(*SHOWN[name]))
    recorded = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert words_of(recorded) == words_of(svg)
    assert "http" not in recorded.replace("http://www.w3.org/2000/svg", "")


def words_of(svg):
    """Return the text of a picture: how Textual draws it may change with its version."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def write():
    HERE.mkdir(exist_ok=True)
    for case in CASES:
        screen, _ = asyncio.run(act(*case))
        path_of(*case).write_text(f"{screen}\n", encoding="utf-8")
    for name, shown in SHOWN.items():
        _, svg = asyncio.run(act(*shown))
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    write()
