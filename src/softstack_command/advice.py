"""What a person is told who lacks something. It imports nothing."""

INSTALL = "pip install 'softstack[lab]', or in a checkout pip install '.[lab]'"
