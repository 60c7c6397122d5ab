"""The OpenBLAS kernel that NumPy uses here, and whether it is the requested kernel.

`OPENBLAS_CORETYPE=Haswell python -m tests.reduce.openblas_kernel Haswell` has status 0 if the kernel is used. If
OpenBLAS uses another kernel, the status is 1, and that kernel is printed. OpenBLAS does so silently if it does not know
the name or the processor cannot run the kernel. Without a name, only the kernel in use is printed.
"""

import ctypes
import sys
from pathlib import Path

import numpy as np

# Names of one kernel.
ALIKE = ({"Katmai", "Prescott"}, {"Haswell", "Zen"})


def kernel():
    """Return the name that OpenBLAS itself gives the kernel in use; None where NumPy brings no OpenBLAS with it."""
    package = Path(np.__file__).parent
    folders = package.parent / "numpy.libs", package / ".dylibs"
    for library in (each for folder in folders if folder.is_dir() for each in sorted(folder.iterdir())):
        if "openblas" not in library.name:
            continue
        loaded = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename64_",
                     "openblas_get_corename"):  # fmt: skip
            if hasattr(loaded, name):
                ask = getattr(loaded, name)
                ask.restype = ctypes.c_char_p
                return ask().decode()
    return None


def is_called(found, name):
    """Return whether two names denote the same kernel."""
    return name == found or {name, found} in ALIKE


if __name__ == "__main__":
    found = kernel()
    print(found)
    sys.exit(len(sys.argv) > 1 and not is_called(found, sys.argv[1]))
