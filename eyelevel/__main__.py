"""`python -m eyelevel`: the same as `eyelevel`."""

from eyelevel.program import main

main()
