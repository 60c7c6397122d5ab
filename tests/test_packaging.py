"""Wheels and sdists built from a copy of the sources: their tags and their contents."""

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import floatlab

HOUSE = Path(floatlab.__file__).parents[1]
BESIDE = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md")
# An extension that compiles at once; the real one is for other tests.
SMALL = """
#define PY_SSIZE_T_CLEAN
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "floatlab._kernels", 0, 0, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit__kernels(void) { return PyModuleDef_Init(&module); }
"""
BUILD = "import setuptools.build_meta as build; build.build_{what}('out')"
FREE_THREADED = """
import sysconfig
usual = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else usual(name)
"""
has_compiler = shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()
needs_compiler = pytest.mark.skipif(not has_compiler, reason="there is no C compiler, or no Python.h")


def is_ours(path):
    made = {"__pycache__", "floatlab.egg-info", ".hypothesis"}
    return path.is_file() and not made & set(path.parts) and path.suffix not in (".so", ".pyd", ".pyc")


@pytest.fixture
def sources(tmp_path):
    """Copy what a build needs, with the small extension in the place of the real one."""
    pytest.importorskip("setuptools", minversion="77")
    for name in BESIDE:
        shutil.copy(HOUSE / name, tmp_path)
    skipped = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")
    shutil.copytree(HOUSE / "floatlab", tmp_path / "floatlab", ignore=skipped)
    for name, text in zip(code_of(HOUSE), [SMALL, *["typedef int nothing;\n"] * 99], strict=False):
        (tmp_path / name).write_text(text)
    return tmp_path


def code_of(where):
    """Return the names of the extension's files of code."""
    settings = tomllib.loads((where / "pyproject.toml").read_text(encoding="utf-8"))
    (extension,) = settings["tool"]["setuptools"]["ext-modules"]
    return extension["sources"]


def build(where, what, before="", **environment):
    """Build a wheel or an sdist with this interpreter's setuptools; return its path."""
    out = where / "out"
    shutil.rmtree(out, ignore_errors=True)
    ended = subprocess.run(
        [sys.executable, "-c", before + BUILD.format(what=what)],
        cwd=where, env=os.environ | environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-2000:]
    (found,) = (each for each in out.iterdir() if each.suffix in (".whl", ".gz"))
    return found


def extension_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (tags,) = (archive.read(name).decode() for name in names if name.endswith(".dist-info/WHEEL"))
    assert "floatlab/py.typed" in names
    assert not [name for name in names if name.endswith((".c", ".h"))]
    extensions = [name for name in names if name.startswith("floatlab/_kernels") and not name.endswith(".pyi")]
    return extensions, tags


@needs_compiler
def test_a_wheel_is_as_wide_as_what_was_built_and_no_wider(sources):
    wheel = build(sources, "wheel")
    extensions, tags = extension_of(wheel)
    assert len(extensions) == 1
    assert "Root-Is-Purelib: false" in tags
    if sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert "-cp311-abi3-" in wheel.name
    # The compiler is missing and the source is newer: files of an earlier build must not be used.
    os.utime(sources / code_of(HOUSE)[0], (2**31, 2**31))
    wheel = build(sources, "wheel", CC="false")
    assert wheel.name == f"floatlab-{floatlab.__version__}-py3-none-any.whl"
    extensions, tags = extension_of(wheel)
    assert extensions == []
    assert "Root-Is-Purelib: true" in tags


@needs_compiler
@pytest.mark.skipif(sys.implementation.name != "cpython", reason="tags of CPython")
def test_a_free_threaded_python_gets_a_wheel_for_its_own_version(sources):
    wheel = build(sources, "wheel", FREE_THREADED)
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{own}-{own}" in wheel.name  # cp313-cp313t on a free-threaded Python
    (extension,) = extension_of(wheel)[0]
    assert "abi3" not in extension


def test_the_extension_leaves_the_choice_of_the_interface_to_the_build():
    texts = [path.read_text() for path in (HOUSE / "floatlab").rglob("*.[ch]")]
    assert texts
    assert not [text for text in texts if "define Py_LIMITED_API" in text]


def compiled(*options):
    """Have the C compiler read the extension's code; return how it ended, with assembler if that is asked for."""
    command = ["cc", "-xc", "-O2", "-ffp-contract=off", *options, f"-I{sysconfig.get_path('include')}"]
    return subprocess.run(
        [*command, str(HOUSE / code_of(HOUSE)[0])],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"LC_ALL": "C"},
    )


@needs_compiler
def test_the_extension_compiles_where_math_h_has_more_names():
    """macOS and MinGW have System V's names of errors in <math.h>, which Python.h includes."""
    names = ("DOMAIN", "SING", "OVERFLOW", "UNDERFLOW", "TLOSS", "PLOSS")
    ended = compiled("-fsyntax-only", *(f"-D{name}={i}" for i, name in enumerate(names, 1)))
    assert ended.returncode == 0, ended.stderr[-2000:]


@needs_compiler
@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="only GCC on x86 computes in a wider format"
)
def test_the_extension_is_not_compiled_where_floats_are_rounded_twice():
    assert "wider format" in compiled("-fsyntax-only", "-mfpmath=387").stderr


@needs_compiler
def test_loops_are_functions_of_their_own():
    """If a loop were inlined into the code that sets the mode, a compiler could compute before the mode is set."""
    assembler = compiled("-S", "-o-", "-DFLOATLAB_MOST=0").stdout
    for name in ("convert64", "accumulate32", "accumulate64", "magic_values32", "magic_uint8_t32"):
        assert re.search(rf"^_?{name}:", assembler, re.MULTILINE), name


def test_the_extension_asks_for_processors_by_names_that_all_compilers_know():
    text = (HOUSE / code_of(HOUSE)[0]).read_text(encoding="utf-8")
    assert set(re.findall(r'cpu_supports\("(.*?)"\)', text)) <= {"avx", "avx2", "fma"}  # "f16c": GCC 11, Clang 18


def test_an_sdist_holds_the_tests_and_what_they_read(sources):
    rooms = ("tests", "docs", "benchmarks", "floatlab")
    for name in rooms:
        shutil.copytree(HOUSE / name, sources / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    with tarfile.open(build(sources, "sdist")) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {str(path.relative_to(HOUSE)) for name in rooms for path in (HOUSE / name).rglob("*") if is_ours(path)}
    assert wanted | set(BESIDE) <= held, sorted((wanted | set(BESIDE)) - held)


@pytest.mark.slow
def test_the_tests_run_from_an_unpacked_sdist_and_a_wheel_is_built_from_it(tmp_path):
    pytest.importorskip("setuptools", minversion="77")
    copy = tmp_path / "copy"
    skipped = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "*.egg-info", "*.so")
    shutil.copytree(HOUSE, copy, ignore=skipped)
    with tarfile.open(build(copy, "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("floatlab-*")
    assert build(unpacked, "wheel", CC="false").name.endswith("-py3-none-any.whl")
    shutil.rmtree(unpacked / "build")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    for more in (["--collect-only"], ["tests/test_house.py", "tests/test_documents.py", "tests/golden", "tests/cli"]):
        ended = subprocess.run([*words, *more], cwd=unpacked, capture_output=True, text=True, timeout=900)
        assert ended.returncode == 0, ended.stdout[-3000:]
