"""Random commands of `train`: each gives an answer or one line of error, in any combination of options."""

import json
import random

import pytest

from floatlab.cli.main import main

NUMBERS = [
    "0", "1", "-1", "1.125", "nan", "inf", "1e400", "x", "", "1e-3", "0.00041999", "1/3", "1,2,3", "1,nan", "1e-400",
    "random:normal:3", "random:normal:3x4", "0.1@bf16", "1@e8m0", "2^-24", "bits:0x3c00@fp16", "65504", "-0",
]  # fmt: skip
FORMATS = ["fp16", "fp64", "bf16", "e4m3", "e2m1", "e8m0", "mxfp4", "posit8", "x87", "tf32", "e1m1", "", "fp16,fp32"]
REMEDIES = [
    "plain", "master", "master:e4m3", "stochastic", "kahan", "static:1024", "static:1e30", "dynamic:3", "wide",
    "bf16+kahan", "fp16+master+dynamic", "nvfp4+kahan", "e4m3+dynamic", "e2m1", "fp128", "x", "mxint8+stochastic",
]  # fmt: skip
CONFIGS = ["fp32", "fp16", "fp8+master", "e2m1", "e8m0", "mxfp4", "fp64", "bf16+kahan", "x", "fp16+fp8"]
OF_STEPS = {
    "--optimizer": ["sgd", "momentum", "adamw", "x"], "--weights": FORMATS, "--grads": FORMATS,
    "--update-format": FORMATS, "--accumulator": FORMATS, "--state": FORMATS, "--remedies": REMEDIES,
}  # fmt: skip
OWN = {
    "W": OF_STEPS | {"--every": ["1", "3", "50"], "--remedies": ["plain,master", *REMEDIES]},
    "step": OF_STEPS | {"--master": FORMATS, "--brief": None},
    "network": {"--problem": ["linear", "logistic", "x"], "--seeds": ["2"], "--noise": NUMBERS, "--weight": NUMBERS,
                "--lr": NUMBERS, "--optimizer": ["adam"]},
    "underflow": {"--grads": FORMATS, "--scale": NUMBERS},
    "check": {"--reported": NUMBERS, "--h": NUMBERS, "--derivative": NUMBERS},
}  # fmt: skip
ANY = {
    "--csv": ["-", "/nowhere/x"], "-f": FORMATS, "-r": ["RTZ", "SR", "x"], "--overflow": ["saturate"], "--ftz": None,
    "--absent": ["error", "zero"], "--json": None, "--quiet": None, "--width": ["20", "46"], "--svg": ["-"],
}  # fmt: skip
FUNCTIONS = ["x^2", "1/x", "sqrt", "exp", "log", "x", "math:atan", "math:pi", "math:pow", "numpy:array", "builtins:str"]


def command(draw):
    form = draw.choice(["W", "W", "step", "step", "network", "underflow", "check"])
    words = {
        "W": [draw.choice(NUMBERS), f"--steps={draw.choice(['0', '1', '5'])}"],
        "step": ["step", draw.choice(NUMBERS)],
        "network": ["network", "--steps=1", "--samples=3", "--features=2", "--hidden=2",
                    f"--configs={','.join(draw.sample(CONFIGS, 2))}"],
        "underflow": ["underflow", draw.choice(NUMBERS)],
        "check": ["check", draw.choice(FUNCTIONS), draw.choice(NUMBERS)],
    }[form]  # fmt: skip
    if form in ("W", "step"):
        rate = f"--lr={draw.choice(['0.1', '1e30'])}"
        given = draw.choice(NUMBERS)
        words += draw.choice([[f"--update={given}"], [f"--grad={given}", rate]])
    for options, share in ((OWN[form], 0.18), (ANY, 0.07)):
        for option, values in options.items():
            if draw.random() < share:
                joined = [option] if values is None else [f"{option}={draw.choice(values)}"]
                words += joined[0].split("=", 1) if option[1] != "-" else joined
    return ["train", *words]


def no_constant(name):
    raise AssertionError(f"{name} is not JSON")


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_random_commands_are_answered_or_refused_in_one_line(seed, capsys):
    draw = random.Random(seed)
    answered = 0
    for _ in range(60):
        words = command(draw)
        status = main(words)
        out, err = capsys.readouterr()
        assert status in (0, 1, 2), words
        if status == 2:
            assert (out, err.count("\n")) == ("", 1), words
            assert err.startswith("floatlab: "), words
        else:
            answered += 1
            assert out, words
        if status < 2 and "--json" in words and "--svg=-" not in words:
            json.loads(out, parse_constant=no_constant)
    assert answered > 5
