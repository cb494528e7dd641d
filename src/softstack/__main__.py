"""`python -m softstack`, which is the command."""

from softstack_command import main

if __name__ == "__main__":
    main()
