"""`python -m framepipe`: the program."""

from ._program import main

main()
