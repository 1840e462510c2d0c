"""The workflow of `eyelevel answer`: one page is recorded, completed, measured and reported in one go."""
