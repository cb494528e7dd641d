"""A real browser for the tests of the page, Debian's Chromium driven by Playwright, and networks to show."""

import json
import os
import re
import shutil
from collections import defaultdict

import pytest

from softstack.lab.reports import network_page
from softstack.lab.runs import store
from softstack.lab.training.conditions import Condition
from softstack.lab.training.draws import initial
from softstack.lab.training.epochs import Epoch
from softstack.lab.training.train import Trial, train

REVERSAL = Condition("reversal", "linear", "stack")
XOR = Condition(
    "xor", "linear", "stack", memory_size=6, buffered=True, steps_per_symbol=2, discard_first=True
)

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.chromium
READY = "softstack && softstack.page.panels[0].run"


def launched(playwright):
    arguments = ["--disable-gpu"]  # which would be computed
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")  # root cannot set one up
    return playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)


@pytest.fixture(scope="session")
def browser():
    """A real browser; tests that take it are marked `needs_chromium`."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launched(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def run_root(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def reverser(run_root):
    """A network that reverses: trained here, by the paper's protocol."""
    return store.load(store.save(run_root, train(REVERSAL, [0])[0]))


@pytest.fixture(scope="session")
def untrained(run_root):
    def made(condition, seed=0):
        weights = dict(initial(condition, seed).state_dict())
        trial = Trial(condition, seed, [Epoch(1.0, 0.5)], 0.5, 0.5, weights, 0.1, 0.5)
        return store.load(store.save(run_root, trial))

    return made


@pytest.fixture(scope="session")
def idle_tabs():
    return defaultdict(list)


@pytest.fixture
def tab(browser, idle_tabs):
    """Opens a file in a tab, and sees that it asks for nothing and that nothing goes wrong in it. The tabs of
    earlier tests are taken again, as a new one is a new process."""
    busy, wrong = [], []

    def failed(error):
        wrong.append(f"error: {error}")

    def asked(request):
        if not request.url.startswith(("file:", "data:", "about:")):
            wrong.append(request.url)

    def open_(file, fragment="", width=1280, height=900, **kind):
        idle = idle_tabs[tuple(sorted(kind.items()))]
        page = idle.pop() if idle else browser.new_context(**kind).new_page()
        busy.append((page, idle))
        page.set_viewport_size({"width": width, "height": height})
        page.on("pageerror", failed)
        page.on("request", asked)
        page.goto(file.as_uri() + fragment)
        return page

    yield open_
    for page, idle in busy:
        page.remove_listener("pageerror", failed)
        page.remove_listener("request", asked)
        page.mouse.move(0, 0)
        page.goto("about:blank")
        idle.append(page)
    assert not wrong, wrong


@pytest.fixture
def opened(tab, tmp_path):
    """Opens the page of some runs."""

    def open_(runs, fragment="", symbols=None, **kind):
        file = tmp_path / "view.html"
        file.write_text(network_page.page(runs, symbols=symbols), encoding="utf-8")
        page = tab(file, fragment, **kind)
        page.wait_for_function(READY)
        return page

    return open_


def page_data(text):
    """The data in the text of a page. JSON knows no NaN, and neither does the page's parser."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1]
    return json.loads(data, parse_constant=refuse)


def row(page, name):
    """A row of the tape, as it is seen."""
    return [cell.strip() for cell in page.locator(f".tape tr:has(th:text-is('{name}')) td").all_inner_texts()]
