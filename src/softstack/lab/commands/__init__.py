"""Commands that are not in cli.py: each file has functions and a `register` that adds them to the app."""
