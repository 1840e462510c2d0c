"""One command of `eyelevel` a file; `eyelevel.program` lists them."""
