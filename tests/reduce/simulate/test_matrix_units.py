"""Models of matrix units, compared with outputs recorded on the hardware."""

import numpy as np
import pytest

from floatlab import dot, matmul, parse_format
from floatlab.arrays.conversion import encode
from floatlab.arrays.sources import Source
from floatlab.errors import UnsupportedError
from floatlab.reduce import MACHINES, parse_machine
from floatlab.reduce.simulate.matrix_units import VARIANTS

GPUS = {
    "V100": "volta", "A100": "ampere", "A2": "ampere", "Ada": "ada", "L40S": "ada", "H100": "hopper", "H200": "hopper",
    "B200": "blackwell",
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(oracles):
    path = oracles / "tensorcore" / "tensorcore.npz"
    if not path.is_file():
        pytest.skip("outputs recorded on tensor cores are not on this machine (../shared/oracles/tensorcore)")
    with np.load(path, allow_pickle=False) as found:
        return dict(found)


def rows(recorded):
    """Return (set, GPU, name of the model) of all recorded outputs."""
    for name in sorted({key.rpartition(".")[0] for key in recorded}):
        gpu, terms, into = name.split(".")
        yield name, gpu, f"{GPUS[gpu]}.{terms.replace('fp', 'f')}.{into.replace('fp', 'f')}"


def test_what_was_recorded_is_what_the_models_give(recorded):
    matched = []
    for name, gpu, model in rows(recorded):
        machine = parse_machine(model)
        a, b, c, d = (recorded[f"{name}.{each}"].view(np.float32) for each in "abcd")
        x, y = (Source(encode(side.T, machine.terms), machine.terms) for side in (a, b))
        into = machine.adder.accumulator
        if machine.terms.width == 8 and gpu in ("H100", "H200") and into.name == "binary32":
            c = np.zeros_like(c)  # recorded without c
        found = machine.multiply_add(x, y, Source(encode(c, into), into))
        assert (found == encode(d, into)).all(), name
        assert machine.is_checked
        matched.append(model)
    assert len(matched) == 48
    assert {each.name for each in MACHINES.values() if each.is_checked} == set(matched)


def test_a_wrong_model_does_not_match(recorded):
    machine = parse_machine("hopper.f16.f32")
    a, b, c, d = (recorded[f"A100.fp16.fp32.{each}"].view(np.float32) for each in "abcd")
    x, y = (Source(encode(side.T, machine.terms), machine.terms) for side in (a, b))
    found = machine.multiply_add(x, y, Source(c.view(np.uint32), parse_format("fp32")))
    assert 0 < (found == d.view(np.uint32)).mean() < 0.9


def test_versions_of_a_model_part_in_ties():
    """1 − 2^-9 − 2^-24 − 2^-25 + 2^-32 is a tie if its last bit is cut off; mmasim 2.1.1 keeps it."""
    a, b = [1, -(2**-4), -(2**-12), 2**-16, -(2**-12)], [1, 2**-5, 2**-13, 2**-16, 2**-12]
    (first, a), (rest, b) = (a[:1] + [0] * 7, a[1:]), (b[:1] + [0] * 7, b[1:])
    for name, value in (("mi300x.f16.f32", "0x1.fefffep-1"), ("cdna3.f16.f32.v1", "0x1.fefffcp-1")):
        assert float(dot([*first, *a], [*rest, *b], machine=name)) == float.fromhex(value)


@pytest.mark.parametrize("name", [*MACHINES, *VARIANTS])
def test_every_machine_multiplies_matrices(name, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    machine = parse_machine(name)
    scale = 2.0 if machine.terms.exponent_bits < 5 else 1.0
    a, b = rng.uniform(-scale, scale, (5, 40)), rng.uniform(-scale, scale, (40, 3))
    found = matmul(a, b, machine=name)
    one = dot(a[3], b[:, 2], machine=name)
    assert found[3, 2] == float(one)
    assert float(one) == float(one.nodes[-1].value)
    assert machine.adder.context.flush_inputs or abs(one.error) <= one.running_bound
    assert machine.source
    assert machine.name in machine.words


def test_passes_and_the_addition_of_c_matter(recorded):
    """Other orders of the same unit do not give what Hopper and Blackwell recorded for fp8 products in binary16."""
    for gpu in ("H100", "B200"):
        machine = parse_machine(f"{gpu}.e4m3.f16")
        a, b, c, d = (recorded[f"{gpu}.e4m3.fp16.{each}"].view(np.float32) for each in "abcd")
        x, y = (Source(encode(side.T, machine.terms), machine.terms) for side in (a, b))
        into = machine.adder.accumulator
        for other in (
            machine.replace(order="fused(32)"),
            machine.replace(order="blocked(32, fused(16))"),
            machine.replace(order="fused(16)", adds_c_last=False),
        ):
            found = other.multiply_add(x, y, Source(encode(c, into), into))
            assert 0.1 < (found == encode(d, into)).mean() < 0.95


def test_truncation_is_a_bias():
    """Mean errors of the models at K = 400 for uniform numbers, in units of the last place of binary32."""
    rng = np.random.default_rng(1)
    a, b = (rng.random((400, 400)).astype(np.float16) for _ in "ab")
    a, b = a[:60], b[:, :60]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for name, bias in (("volta", -105), ("ampere", -56), ("hopper", -27)):
        error = (matmul(a, b, machine=f"{name}.f16.f32") - exact) / np.spacing(np.float32(exact))
        assert abs(error.mean() - bias) < 3, name
    fused = (matmul(a, b, format="fp32", fma=True) - exact) / np.spacing(np.float32(exact))
    assert abs(fused.mean()) < 1


def test_tf32_units_ignore_what_they_do_not_have():
    found = dot([1 + 2**-11 + 2**-12], [1.0], machine="ampere.tf32.f32")
    assert float(found) == 1.0
    assert found.x.format == parse_format("tf32")


def test_specials_of_tensor_cores():
    inf, nan = np.inf, np.nan
    for name, lost in (("hopper.f16.f32", 0x7FFFFFFF), ("hopper.f16.f16", 0x7FFF)):
        for a, b, code in (
            ([1, nan], [1, 1], lost), ([inf, 1], [0, 1], lost), ([inf, -inf], [1, 1], lost),
            ([inf, 2], [-1, 3], None), ([0, 0], [0, -1], 0),
        ):  # fmt: skip
            found = dot(a, b, machine=name)
            assert found.result.code == (
                code if code is not None else found.result.format.compose(True, found.result.format.infinity_magnitude)
            )
    big = dot([60000.0] * 4, [60000.0] * 4, machine="hopper.f16.f16")
    assert float(big) == inf
    wide = dot([3e38] * 4, [3.0] * 4, machine="hopper.bf16.f32")
    assert float(wide) == inf


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("hopper.f16", "there are hopper.bf16.f32"),
        ("hoper.f16.f32", "did you mean 'hopper.f16.f32'"),
        ("h100.e4m3.bf16", "there are hopper"),
        ("", "not in the table"),
        (3, "a name such as"),
    ],
)
def test_unknown_machines(name, why):
    with pytest.raises(UnsupportedError, match=why):
        parse_machine(name)


def test_names_of_products_are_names_of_their_rows():
    assert parse_machine("H200.fp16.fp32") is parse_machine("hopper.f16.f32")
    assert parse_machine("a2.tf32.f32") is MACHINES["ampere.tf32.f32"]


@pytest.mark.parametrize("given", [{"fma": True}, {"accumulator": "fp32"}, {"adder": "kahan"}, {"terms": "fp16"}])
def test_a_machine_fixes_the_rest(given):
    with pytest.raises(UnsupportedError, match="fixed by the machine"):
        dot([1.0], [1.0], machine="hopper.f16.f32", **given)


def test_a_machine_takes_other_schedules(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    a, b = rng.random(256), rng.random(256)
    split = dot(a, b, schedule="splitk(4, fused(16))", machine="hopper.f16.f32")
    parts = [dot(a[i : i + 64], b[i : i + 64], machine="hopper.f16.f32") for i in range(0, 256, 64)]
    total = np.float32(float(parts[0]))
    for part in parts[1:]:
        total += np.float32(float(part))
    assert float(split) == total


@pytest.mark.parametrize("name", MACHINES)
def test_what_the_nodes_miss_adds_up_to_the_error_of_the_result(name, generator):
    machine, rng = MACHINES[name], np.random.default_rng(generator.getrandbits(64))
    a, b = (rng.standard_normal(40).astype(np.float32) for _ in "ab")
    # A subnormal input that a machine flushes does not appear as the error of a node.
    a, b = (np.where(np.abs(each) < 2.0**-14, np.float32(1), each) for each in (a, b))
    found = dot(a, b, machine=machine)
    read = sum(node.error for node in found.nodes)
    assert read + (0 if found.last_rounding is None else found.last_rounding.error) == found.error
    assert [abs(node.error) for node in found.worst(1)] == sorted(
        abs(node.error) for node in found.nodes if node.error
    )[-1:]
    overflowing = dot([3e38, 3e38], [1, 1], machine=machine) if machine.terms.name == "tf32" else None
    assert overflowing is None or [node.error for node in overflowing.nodes] == [None]


@pytest.mark.parametrize(("name", "instruction"), [
    ("cdna3.e4m3fnuz.f32", "f32_16x16x32_fp8_fp8"), ("cdna3.e5m2fnuz.f32", "f32_16x16x32_bf8_bf8"),
    ("hopper.e4m3.f16.wgmma", "m64n8k32.f16.e4m3.e4m3"),
    ("blackwell.e5m2.f16.tcgen05", "m64n8k32.kind::f8f6f4.f16.e5m2.e5m2"),
    ("blackwell.e4m3.f32.tcgen05", "m64n8k32.kind::f8f6f4.f32.e4m3.e4m3"),
    ("cdna3.f16.f32", "f32_16x16x16_f16"), ("rtxblackwell.e4m3.f32", "m16n8k32.f32.e4m3.e4m3.f32"),
    ("rtxblackwell.e5m2.f16", "m16n8k32.f16.e5m2.e5m2.f16"), ("rtxblackwell.bf16.f32", "m16n8k16.f32.bf16.bf16.f32"),
])  # fmt: skip
def test_the_program_of_the_authors_gives_the_same_bits(name, instruction, generator):
    torch = pytest.importorskip("torch")
    amd, nvidia = pytest.importorskip("mmasim.amd.sim"), pytest.importorskip("mmasim.nv_ptx.sim")
    programs = {
        "cdna3": (amd.MFMA, "CDNA3"), "hopper": (nvidia.WGMMA, "Hopper"), "blackwell": (nvidia.TCGen05MMA, "Blackwell"),
        "rtxblackwell": (nvidia.MMA, "RTX Blackwell"),
    }  # fmt: skip
    simulator, architecture = programs[name.partition(".")[0]]
    machine, program = parse_machine(name), simulator(architecture, instruction)
    rng, into = np.random.default_rng(generator.getrandbits(64)), machine.adder.accumulator
    for spread in (0, 6, 12):
        sides = [
            torch.from_numpy((rng.standard_normal(s) * 2.0 ** rng.integers(-spread, spread + 1, s)).astype(np.float32))
            for s in ((program.m, program.k), (program.k, program.n), (program.m, program.n))
        ]
        kinds = (program.a_type, program.b_type, program.d_type)
        a, b, c = (side.to(kind) for side, kind in zip(sides, kinds, strict=True))
        want = program(a, b, c).numpy()
        x, y = (encode(side.float().numpy(), machine.terms) for side in (a, b))
        x, y = Source(x.T[:, :, None], machine.terms), Source(y[:, None, :], machine.terms)
        found = machine.multiply_add(x, y, Source(encode(c.numpy(), into), into))
        assert (found == want.view(found.dtype)).all()
