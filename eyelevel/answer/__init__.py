"""The workflow of `eyelevel answer`: one page is recorded, closed, measured and reported in one go."""
