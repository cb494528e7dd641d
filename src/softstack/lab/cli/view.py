"""`softstack view`, `softstack gallery` and `softstack play`: pages for a browser."""

import os
import sys
import webbrowser
from pathlib import Path

from softstack import viewer
from softstack.lab import tasks
from softstack.lab.cli.options import NoOpen, opened, writable
from softstack.lab.cli.screen import say
from softstack.lab.reports import gallery as exhibits
from softstack.lab.reports import network_page
from softstack.lab.runs import store
from softstack.lab.tasks.data import check_symbols


def view(
    *run_dirs: Path, symbols: str | None = None, out: Path = Path("view.html"), no_open: NoOpen = False
) -> None:
    """Look inside trained networks in a browser, on any input that you type.

    Writes one page that needs no server and no network, and opens it. The networks run in the page.

    softstack view RUN_DIR

    softstack view RUN_DIR RUN_DIR --symbols "1 0 0 1"    # side by side

    Parameters
    ----------
    run_dirs
        directories of trials, as `softstack train` prints them; the first two are shown side by side, if
        they read the same symbols
    symbols
        the input to begin with, symbols separated by spaces
    out
        the page, FILE.html
    """
    writable(out, ".html")
    runs = [opened(path) for path in run_dirs]
    typed = None if symbols is None else symbols.split()
    if typed is not None and runs:
        task = tasks.find(runs[0].condition.task)
        check_symbols(task, typed)
        task.example(tuple(typed))  # refuses what the task cannot score
    if len({tasks.find(run.condition.task).inputs for run in runs[:2]}) > 1:
        say("these two read different symbols, so that no string is for both: the page shows one at a time")
    _show(out, network_page.page(runs, symbols=typed), no_open)


def gallery(*, out: Path = Path("gallery.html"), runs: Path | None = None, no_open: NoOpen = False) -> None:
    """Look inside networks that come with softstack: some work, some fail, and each can be broken.

    Writes one page that needs no server and no network, and opens it. The networks run in the page; each
    has two sentences on what to look for, an input that it gets right and one that breaks it.

    softstack gallery --runs exhibits    # their run directories too

    Parameters
    ----------
    out
        the page, FILE.html
    runs
        a folder for copies of their run directories
    """
    writable(out, ".html")
    if runs is not None:
        exhibits.copy(runs)
        print(f"Run directories: {runs}")
    _show(out, exhibits.page(), no_open)


def play(*, out: Path = Path("play.html"), no_open: NoOpen = False) -> None:
    """Push and pop by hand: a page with a stack or a queue, and no network.

    Sliders and keys set how much is popped and pushed, and what. The page draws the memory and writes down
    the numbers of each step as the paper does. It needs no server; its link holds what you did.

    Parameters
    ----------
    out
        the page, FILE.html
    """
    writable(out, ".html")
    _show(out, viewer.play(stamp=network_page.stamp()), no_open)


def _show(out: Path, text: str, no_open: bool) -> None:
    """Write a page and open it."""
    store.write(out, text)
    print(f"Written: {out}")
    if not no_open and _has_screen():
        webbrowser.open(out.resolve().as_uri())


def _has_screen() -> bool:
    """Whether a browser would open a window; without a screen it might take over the terminal."""
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
