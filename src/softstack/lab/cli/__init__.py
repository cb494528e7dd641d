"""The commands, in files by what they do. Each is a few lines: the work is done elsewhere.

softstack_command/app.py lists them, and imports the one that is run.
"""
