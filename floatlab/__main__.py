"""`python -m floatlab`."""

from floatlab.cli.main import run

run()
