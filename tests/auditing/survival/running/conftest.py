"""A checkpoint whose audit takes a few seconds, and its answer by one process."""

import ml_dtypes
import numpy as np
import pytest

from floatlab.cli.main import main
from tests.auditing.making import nvfp4, write_checkpoint

RECIPES = "mxfp4,nvfp4,e4m3/tensor"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory):
    """Some tensors of floats in several formats, one of which takes several pieces, and a quantised one."""
    rng = np.random.default_rng(5)
    tensors = {f"layers.{i}.weight": ("F32", rng.normal(size=(256, 512)).astype(np.float32)) for i in range(12)}
    tensors["embed.weight"] = "F32", rng.normal(size=(1500, 1000)).astype(np.float32)
    tensors["norm.weight"] = "BF16", rng.normal(size=100).astype(ml_dtypes.bfloat16)
    names = (f"packed.weight{part}" for part in ("", "_scale", "_scale_2"))
    tensors |= dict(zip(names, nvfp4(rng.normal(size=(64, 128)).astype(np.float32)), strict=True))
    path = tmp_path_factory.mktemp("checkpoint") / "model.safetensors"
    write_checkpoint(path, tensors, {"quant_method": "modelopt", "quant_algo": "NVFP4"})
    return str(path)


@pytest.fixture
def answer(capsys):
    """Return the output of `floatlab audit … --json` with some options."""

    def ask(checkpoint, *options, status=0):
        assert main(["audit", checkpoint, "--to", RECIPES, "--json", *options]) == status
        return capsys.readouterr().out

    return ask
