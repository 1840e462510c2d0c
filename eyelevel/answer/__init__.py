"""The workflow of `eyelevel answer`: it records, completes and measures one page and reports the result."""
