"""The program `floatlab`, also as `python -m floatlab`."""


def run() -> None:
    """Import the command line and run it; Ctrl-C ends it quietly, also while modules are being imported."""
    try:
        from floatlab.cli.main import run as run_command

        run_command()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    run()
