"""Output of commands byte for byte: a file per command, with its exit status, standard output and standard error.

`python -m tests.golden.test_golden` writes the files anew; read the difference before committing it.
The files are made from the lines of INVOCATIONS, and from every recipe of a library.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from floatlab.cli.main import main
from tests.auditing.making import example_folder, needs_examples
from tests.differential.quantized import RECIPES

HERE = Path(__file__).parent

INVOCATIONS = """
show 1.12156456132 --fp16
show 1.12156456132 --fp32
show 1.12156456132 --fp16 --json
show 1.12156456132 --fp16 --svg -
show 1.12156456132 --fp16 --color always
show 1.12156456132 --fp16 --ascii
show 1.12156456132 --fp16 --width 40
show 1.12156456132 --fp16 --width 24
show 0.1
show 0.1 --fp64 --interval
show 1/3 --fp128
show 1/3 -f x87 --width 40
show 1e5 --tf32
show 0.75 -f e8m0 --interval
show -inf inf nan -0 0 --fp16
show 1e-7 --fp16 --interval --json
show 1e999999999 --fp16
show 1e-999999999 --fp16 --json
show 0x1p-99999999999 --fp16
show 500 -inf nan --e4m3
show 500 -inf --e4m3 --e5m2 --overflow saturate
show nan inf -0 --e2m1
show 4097 --fp16 -r RTO
show 1.1 --bf16 -r SR --seed 7
show 0.1 --fp16 --directions
show 65520 --fp16 --directions --json
show bits:0x38 --dialects
show bits:0x38 --dialects --json
show bits:0x7d01 --fp16
show bits:0x7c3c --little-endian
show bits:0_01111_0001111100 --fp16
show bits:0x3fff4000000000000000 -f x87
show bits:0x00008000000000000000 -f x87
show 0x3c7c --fp16 --quiet=code
show 0.1 0.2 0.3 --bf16 --quiet
show 1.1 -f p3109_k8p1ue -f p3109_k8p3se
show 6e-8 6e-5 65504 --fp16 --ftz
show 0.1 --posit16
show -3.7 1e-40 nan --posit8
show 0.1 --hif8 --interval
show 0.3 -9 --nf4
show 0.1 -f takum_log16
show 0.1 -f takum_log8 --json
show bits:0x9 --dialects
formats hif8
formats takum_log16 posit16 nf4 --width 100
convert 0.1 --through posit8,takum_log8,fp16
add 1 2 -f takum_linear16
add 1 2 -f takum_log16
fma 0.1 3 -0.3 --posit8
div 1 0 --posit8
mul 0.11 3 --posit8 --why
convert 1.00048828126 --through fp32,fp16
convert 1.00048828126 --through fp32,fp16 --json
convert 1.00048828126 --through fp32,fp16 --svg -
convert 1.5 --through fp64,fp32,bf16 --width 40
convert snan(0x155) --through fp32,fp16
convert bits:0x3f8f8f6d --through fp32,fp16
div 1 3 -f x87 --precision 24
practice --seed 7 --questions 2 --format e4m3
practice --seed 7 --questions 2 --format e4m3 --key
practice fma sqrt --seed 3 --questions 2 --fp16 -r RTZ --key --json
practice add --seed 2 --questions 1 --width 40
practice tan
mul 0x1.05fp-1030 0x1.ebf3538667817p0 -f x87 --precision 53
add 1 2 --precision 53
sqrt 2 -f x87 --precision 32
add 1.125 0.12457275390625 --fp16
add 1.125 0.12457275390625 --fp16 --json
add 1.125 0.12457275390625 --fp16 --svg -
add 1.125 0.12457275390625 --fp16 --width 40
add 1.125 0.12457275390625 --fp16 --steps 3
add 1.125 0.12457275390625 --fp16 --brief
add 1.125 0.12457275390625
add 1.125@fp32 0.1246@fp16
add 1e30 1 --fp32
sub 1.001 1 --fp16
mul 0.1 3 --fp16
mul 0 inf --e5m2
div 1 3 --fp16
div 1 0 --e4m3
rem 5 3 --fp16
sqrt 2 --fp16
sqrt -1 --bf16 --json
fma 1.0009765625 1.0009765625 -1.001953125 --fp16
fma 1.0009765625 1.0009765625 -1.001953125 --fp16 --width 120
fma 1.0009765625 1.0009765625 -1.001953125 --fp16 --json
fma 1.0009765625 1.0009765625 -1.001953125 --fp16 --svg -
fma 1.0009765625 1.0009765625 -1.001953125 --fp16 --brief
fma 1.0009765625 1.0009765625 -1.001953125 --fp16 --steps 6
fma inf 0 nan --fp16
fma inf 0 nan --fp16 --silent-nan --brief
cmp 0.1@fp16 0.1@fp32
cmp nan 1 --fp16 --signaling --json
toint 2.5 --fp16
toint nan --fp32 --int ui64 --json
rint -0.5 --fp16
rint 7.5 -f e2m3fn --why
min 0 -0 --fp16 --why
minnum snan 1 --fp16 --json
maxmag -3 2 --fp16 --brief
negate snan --fp16 --why
copysign 3@fp16 -nan@fp32
scaleb 1.999 -24 --fp16 --why
scaleb 1.5 4.5 --fp16
logb 0 --fp32
logb 3e-40 --fp32 --why
nextup -0 --e4m3 --why
nextdown inf --fp32 --json
show 500 -inf -f Binary8p4sf -f Binary8p4ue --overflow none
show 1.03 -f Binary8p4se -r SRB --random-bits 3 --draw 5
show 1.03 --e4m3 -r SRA --random-bits 3 --draw 8
show -5 1e6 -f ue5m3 --negative drop --json
add 1 0.03 -f Binary8p4se -r SRC --random-bits 3 --draw 5 --why
formats Binary8p4sf ue5m3
show 1e9 -inf --e4m3 --e5m2 --as riscv-zvfofp8min
show -3 -f ue5m3 --as cuda
show 1.03 -f Binary8p4se -r SRA --random-bits 3 --interval
show 500 --e4m3 --as cud
convert 1e9 --through fp16,e4m3 --as torch
div 1 0 --e4m3 --as ocp-sat --brief
block 957 --to mxfp8_e4m3
block 957 --to mxfp8_e4m3 --scale up --width 46
block 957 1/3 --to mxfp8_e4m3 --json
block 957 1/3 --to mxfp8_e4m3 --svg -
block 0.1 -2.5 3 7.3 1e-3 -0 --to mxfp4 --scale even
block 0.1 -2.5 3 7.3 1e-3 -0 --to mxfp6_e2m3 --width 46 --ascii
block 0.3 -1.1 9 --to nvfp4
block 0.3 -1.1 9 2 5 --to nvfp4 --tensor-scale 0.01 --quiet=code
block 1.9999 -1.9999 0.3 --to mxint8 -r RTZ
block 1 nan 2 --to mxfp8_e5m2
block 1e300 --to mxfp4
block 0 --to nvfp4
block 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 --to nvfp4 --scale up
block 1 --to mxfp5
block 0.3 -1.1 9 --to nvfp4:torchao
block 0.3 -1.1 9 0.02 4 --to nvfp4/16x16:te_4over6_mse256 --width 60
block 0.3@bf16 -1.1@bf16 9@bf16 --to e4m3/tensor:ct
block 957 1/3 --to mxfp4:modelopt --json
block 0.3 -1.1 9 --to 'block(e2m1, ue5m3, 16)'
block 0.3 inf 9 --to mxfp8_e4m3:te --quiet=code
block 0.3 -1.1 9 1 2 3 --to nvfp4:4over6
block 0.3 -1.1 9 1 2 3 0.1 --to hif4
block 0.3 -1.1 9 1 2 3 0.1 --to int8/channel:ct
block 0.3 -1.1 9 --to int4/32:modelopt
block 0.3 -1.1 9 0.1 --to nf4/flat64:bnb
block 0.3 -1.1 9 0.1 --to q8_0:ggml
block 0.3 -1.1 9 0.1 --to q4_0:ggml
block 0.3 -1.1 9 1 2 3 0.1 --to q4_1
block 0.3 -1.1 9 1 2 3 0.1 --to q4_k
block 0.3 -1.1 9 --to q4_k --json
formats q4_k
formats int8/channel:modelopt
block 1 --to int8/channel:te
block 1 --to 'block(e2m1 ue5m3, 16)'
block 1 --to nvfp4:flor
formats nvfp4
formats e4m3/128x128:te_pow2 --json
block 1
vectors generate e4m3_mulAdd --lines 5 --seed 3
formats
formats --json
formats --width 40
formats e4m3
formats e8m0 --width 40
formats e2m1 --json
formats x87
formats e5m2fnuz p3109_k6p3ue
show abc
show 1.5 --fp17
convert 1.5
show 1 --e4m3 --interval
show 1 --e4m3 --interval --ascii --width 46
show 0.1 --fp32 -r SR --interval --svg -
cmp 1.5 1.25 --fp16
cmp 0.1 0.3 --fp64 --width 46
formats fp16 bf16
formats e4m3 e5m2 fp16 bf16 --width 40 --ascii
compare 0.1,0.2,0.3 0.1,0.2,0.30000001 --fp32
compare 1,2,3,nan,inf 1,2.5,3,nan,-inf --fp16
compare 1,2,3,nan,inf 1,2.5,3,nan,-inf --fp16 --json
compare 1,2,3,4 1,2,3,5 --rtol 0.5 --quiet
compare 1,2 1,2,3
compare 1,2 nowhere.npy
compare half.safetensors original.safetensors
compare half.safetensors original.safetensors --json
compare model.safetensors original.safetensors --rtol 0.3 --atol 0.02 --width 120
compare model.safetensors original.safetensors --stored --width 46
compare original.safetensors original.safetensors --only *.mlp.* --quiet
compare original.safetensors original.safetensors --only *.conv.*
dequantize model.safetensors numbers.safetensors
dequantize model.safetensors numbers.safetensors --to bf16 --json --only *.mlp.*
dequantize model.safetensors model.safetensors
dequantize half.safetensors numbers.npz
audit model.safetensors --against original.safetensors
audit model.safetensors
audit half.safetensors
audit model.safetensors::model.layers.0.mlp.down_proj.weight --from original.safetensors
audit model.safetensors::model.layers.0.mlp.down_proj.weight --from original.safetensors --json
audit model.safetensors::model.layers.0.self_attn.q_proj.weight_scale --from original.safetensors::model.norm.weight
audit model.safetensors --from original.safetensors
audit trained.safetensors --to e4m3,int8/tensor,nvfp4
audit trained.safetensors --to nvfp4,e4m3/128x128 --min-sqnr 19 --width 120 --ascii
audit trained.safetensors --to mxfp4 --json --only *.norm.*
audit trained.safetensors --to int8/tensor,nvfp4 --activations inputs.npz --only *.mlp.* --width 120
audit half.safetensors trained.safetensors --to bf16,e5m2 --quiet
audit trained.safetensors --to e4m3,mxpf4
audit trained.safetensors --to 'block(e2m1, ue5m3, 16)' --worst 2
compare random:uniform:64x64:seed=1@fp32 random:uniform:64x64:seed=1@bf16 --rtol 0.01
compare random:uniform:64x64:seed=1@fp32 random:uniform:64x64:seed=1@fp16 --rtol 1e-4
compare random:uniform:64x64:seed=1@fp32 random:uniform:64x64:seed=1@fp16 -f fp32 --rtol 1e-4 --atol 1e-4
compare random:uniform:64x64:seed=1@fp32 random:uniform:64x64:seed=2@fp32 --width 46 --ascii
compare random:uniform:64x64:seed=1@fp32 random:uniform:64x64:seed=2@fp32 --svg -
dot --preset forum
dot --preset forum --schedule serial --fma
dot --preset forum --schedule pairwise --fma --width 46 --ascii
dot --preset paper --accumulator fp64 --fp32 --json
dot 1,2,3 4,5,6 --fp16
dot 0.1,0.2,3,7 0.1,-0.1,0.3,1 --machine hopper.f16.f32
dot --preset forum --fma --svg -
sum 1,2e-4,3 --fp16 --schedule pairwise
sum random:uniform:1000:seed=1 --fp32
sum 1,0.001,0.001,0.001 --fp16 --adder neumaier
sum 1,2 --schedule 'blocked(2, lans)'
matmul '1,2;3,4' '0.5,6;7,0.8' --bf16
matmul '1,2;3,4' '0.5,6;7,0.8' --bf16 --fma --json
matmul random:uniform:8x32:seed=1@fp32 random:uniform:32x8:seed=2@fp32 --fma --width 46 --ascii
matmul 6,1.5,-2,3 '2;1;0.5;-6' --machine rtxblackwell.mxf8f6f4.f32 --scale-a 2 --scale-b 0x1p-30
matmul 1,2 '3;4' --machine b200.nvf4.f32 --scale-a 1
train step 1.125 0.00041999 --weights fp16 --grads fp16
train step 1.125 0.00041999 --fp16 --json
train step 1 --grad 0.5 --lr 1e-4 --bf16 --remedies kahan --width 46 --ascii
train 1.125 --update 0.00041999 --steps 101
train 1.125 --update 0.00041999 --steps 101 --width 46 --ascii
train 1.125 --update 0.00041999 --steps 5 --remedies plain,master,kahan --csv -
train 1,2 --grad 1e-3,0.5 --lr 0.1 --steps 20 --optimizer adamw --remedies plain,bf16+stochastic,fp32 --width 120
train 60000 --update 1000 --steps 12 --remedies plain,fp32 --svg -
train underflow random:uniform:1000:seed=1:low=-1e-7:high=1e-7 --fp16
train underflow 1e-9,1 --fp16 --scale 1024
train check x^3 1.5 --reported 6.8
train 1 --update 1 --remedies mastr
train 1.125
"""


def slug(command: str) -> str:
    words = re.sub(r"[^a-z0-9.]+", "-", command.lower().replace("--", "-")).strip("-")
    return f"{words}.txt"


def run(command: str) -> str:
    """Run a command in this process; return its record."""
    out, err = io.StringIO(), io.StringIO()
    where = example_folder() if needs_examples(command) else contextlib.nullcontext()
    with where, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(shlex.split(command))
    return f"$ floatlab {command}\nstatus {status}\n--- stdout\n{out.getvalue()}--- stderr\n{err.getvalue()}"


COMMANDS = [each for each in INVOCATIONS.splitlines() if each]
COMMANDS += [f"block 0.3 -1.1 9 0.02 -0.004 --to {recipe}" for recipe in sorted(set(RECIPES.values()))]


@pytest.mark.parametrize("command", COMMANDS)
def test_answers_as_recorded(command):
    recorded = (HERE / slug(command)).read_text(encoding="utf-8")
    assert run(command) == recorded


def test_every_record_has_its_invocation():
    assert {path.name for path in HERE.glob("*.txt")} == {slug(each) for each in COMMANDS}


if __name__ == "__main__":
    for path in HERE.glob("*.txt"):
        path.unlink()
    for each in COMMANDS:
        (HERE / slug(each)).write_text(run(each), encoding="utf-8")
