"""`python -m framepipe`: the program."""

from ._program import main

if __name__ == "__main__":
    main()
