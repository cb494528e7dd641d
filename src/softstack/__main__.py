"""`softstack` and `python -m softstack`."""

import sys

WITH_WORKERS = ("sweep", "table", "transducers")  # commands that will most likely start some


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in WITH_WORKERS and "--engine" not in sys.argv:
        from softstack.lab import clusters

        clusters.prepare()
    try:
        from softstack.lab.cli import main as run  # meanwhile
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
