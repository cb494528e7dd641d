"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright."""

import os
import shutil

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium found: `apt-get install chromium` to test the page in a browser"
)


def launched(playwright):
    # a sandbox cannot be set up by root
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
