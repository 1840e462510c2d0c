"""The commands of `eyelevel`, one file each; `eyelevel.program` lists them."""
