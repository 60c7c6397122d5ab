"""The arguments of audits of recipes: wrong ones are refused in one line, and one bad tensor is one row."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.cli.main import main

X = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
MODEL = {"w": X}


class Module:
    """An object like a network of PyTorch."""

    def state_dict(self):
        return MODEL


@pytest.mark.parametrize(
    ("place", "options", "said"),
    [
        (X, {}, "a checkpoint must be a path or a mapping of names to arrays, not numpy.ndarray: give {'name': array}"),
        (None, {}, "not NoneType"),
        (b"abc", {}, "not bytes"),
        ([], {}, "at least one checkpoint is needed"),
        ([MODEL, 3], {}, "not int"),
        (Module(), {}, "Module: give its state_dict()"),
        (MODEL, {"min_sqnr": "20"}, "min_sqnr must be a number of decibels, such as 20, not '20'"),
        (MODEL, {"min_sqnr": float("nan")}, "not nan"),
        (MODEL, {"min_sqnr": 10**400}, "min_sqnr must be a number"),
        (MODEL, {"min_sqnr": True}, "not True"),
        (MODEL, {"executor": object()}, "executor must be an executor of concurrent.futures or of Dask, not object"),
        (MODEL, {"only": 3}, "only must be a text such as '*.mlp.*', not int"),
        (MODEL, {"overflow": "wrap"}, "overflow must be native or saturate, not 'wrap'"),
        (MODEL, {"resume": 3}, "resume must be the path of a file, not int"),
        (MODEL, {"notice": "x"}, "notice must be a function that takes a text, not str"),
        (MODEL, {"activations": X}, "activations must be a path or a mapping of names to arrays, not numpy.ndarray"),
        (MODEL, {"activations": {"w": np.ones((0, 64))}}, "'w' in 'the mapping' has no samples"),
        (
            MODEL,
            {"activations": {"w": np.ones((3, 64), complex)}},
            "w must be an array of floats or integers, not of complex128",
        ),
        (MODEL, {"activations": {"w": np.full((3, 64), np.nan)}}, "the inputs 'w' have NaNs or infinities"),
        (MODEL, {"activations": {"w": np.zeros((3, 64))}}, "the inputs 'w' are all 0"),
    ],
)
def test_wrong_arguments(place, options, said):
    with pytest.raises(fl.FloatlabError) as refused:
        fl.audit(place, to="e4m3", **options)
    assert isinstance(refused.value, ValueError)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_unknown_keywords():
    with pytest.raises(TypeError, match=r"audit\(\) has no keyword 'jobs'; with to, it has min_sqnr, .*executor"):
        fl.audit(MODEL, to="e4m3", jobs=2)


def test_numbers_of_numpy_are_numbers():
    assert fl.audit(MODEL, to="e4m3", min_sqnr=np.float32(20)).survives


def test_whole_numbers_can_be_inputs():
    inputs = np.random.default_rng(1).integers(-9, 9, (5, 64))
    found, same = (fl.audit(MODEL, to="mxfp4", activations={"w": each}) for each in (inputs, inputs.astype(float)))
    assert found == same
    assert found.tensors[0].recipes[0].output_sqnr is not None


BAD = {"complex": X.astype(complex), "objects": np.array([{}], dtype=object), "texts": np.array(["a"]), "none": None}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_in_a_mapping_is_one_row(name):
    found = fl.audit({"bad": BAD[name], **MODEL}, to="e4m3")
    assert [(each.tensor, each.is_readable, len(each.recipes)) for each in found.tensors] == [
        ("bad", False, 0), ("w", True, 1),
    ]  # fmt: skip
    assert "bad must be an array of" in found.tensors[0].left_out
    with pytest.raises(fl.FloatlabError, match="bad must be an array of"):
        fl.audit({"bad": BAD[name]}, to="e4m3")


@pytest.mark.parametrize("name", ["complex", "objects", "texts"])
def test_a_bad_array_in_a_file_is_one_row(name, tmp_path, capsys):
    np.savez(tmp_path / "model.npz", bad=BAD[name], w=X)
    assert main(["audit", str(tmp_path / "model.npz"), "--to", "e4m3", "--quiet"]) == 1
    assert capsys.readouterr().out.startswith("e4m3 for the tensor.")
    [row, sound] = fl.audit(tmp_path / "model.npz", to="e4m3").tensors
    assert (row.tensor, row.is_readable, sound.tensor) == ("bad", False, "w")
    assert "not of complex128" in row.left_out or "which is not read" in row.left_out


def test_one_layer_without_usable_inputs_is_one_row():
    found = fl.audit({**MODEL, "v": X}, to="e4m3", activations={"w": np.ones((2, 64)), "v": np.full((2, 64), np.inf)})
    assert [(each.tensor, each.is_readable) for each in found.tensors] == [("v", False), ("w", True)]
