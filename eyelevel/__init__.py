"""The program `eyelevel`: its commands, above the libraries, which hold none."""
