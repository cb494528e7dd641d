"""Sentences for a person who lacks something. This module imports nothing."""

INSTALL = "pip install 'softstack[lab]', or in a checkout pip install '.[lab]'"
