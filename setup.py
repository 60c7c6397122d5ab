"""What pyproject.toml cannot say of the build: the stable ABI only where it exists, and wheels without the extension.

A free-threaded Python refuses the limited API (PEP 703), so there the wheel is tagged for that very version. Where
the extension cannot be compiled, the wheel holds only Python and is tagged so.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

OLDEST = (3, 11)  # the stable ABI that is asked for, as in requires-python


def has_stable_abi() -> bool:
    """Say whether this interpreter builds and loads extensions of the stable ABI."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


class BuildExtension(build_ext):
    """Build what compiles, and forget what does not: an extension that is missing is no part of the distribution."""

    def finalize_options(self):
        """Ask for the stable ABI, in the file's name and in the code, where there is one; name the headers."""
        stable = has_stable_abi()
        for extension in self.distribution.ext_modules or []:
            extension.py_limited_api = stable
            extension.depends = [str(each) for source in extension.sources for each in Path(source).parent.glob("*.h")]
            extension.define_macros = [each for each in extension.define_macros if each[0] != "Py_LIMITED_API"]
            if stable:
                extension.define_macros.append(("Py_LIMITED_API", "0x{:02X}{:02X}0000".format(*OLDEST)))
        super().finalize_options()

    def build_extension(self, ext):
        """Compile one extension; where that fails, leave nothing of an earlier build."""
        try:
            super().build_extension(ext)
        except Exception:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise  # setuptools reports the error, and continues if the extension is optional

    def run(self):
        """Build all extensions, and keep those that were built."""
        super().run()
        built = [each for each in self.extensions if Path(self._built_path(each)).exists()]
        for extension in self.extensions:
            if extension not in built:
                self.warn(f"{extension.name} was not built: floatlab works without it, and arrays are slower")
        self.extensions = self.distribution.ext_modules = built

    def _built_path(self, extension):
        return Path(self.build_lib, self.get_ext_filename(self.get_ext_fullname(extension.name)))


class BuildWheel(bdist_wheel):
    """Choose the tag by what was built."""

    def initialize_options(self):
        """Promise the stable ABI where there is one."""
        super().initialize_options()
        if has_stable_abi():
            self.py_limited_api = "cp{}{}".format(*OLDEST)

    def run(self):
        """Build the extension first: without it the wheel is for every platform."""
        if not self.skip_build:
            self.run_command("build_ext")
            self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()


if __name__ == "__main__":
    setup(cmdclass={"build_ext": BuildExtension, "bdist_wheel": BuildWheel})
