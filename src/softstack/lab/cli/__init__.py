"""Commands that are not in cli.py: each file has functions, and those in its COMMANDS are the app's."""
