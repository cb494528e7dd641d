"""`softstack` and `python -m softstack`. Workers of a sweep import this file again when they start, so it
imports the command line only where a command is run: that saves each of them a second."""


def main() -> None:
    from softstack.lab.cli import main as run

    run()


if __name__ == "__main__":
    main()
