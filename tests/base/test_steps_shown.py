"""The progress of long steps on a terminal."""

import io

from rich.console import Console

from base.progress import each_shown


def test_a_terminal_of_80_columns_shows_no_time_left_before_it_is_known() -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=80, height=24)
    steps = each_shown(["lte", "fibre"], "measuring {}".format, lambda _: 1.0, console)
    assert list(steps) == ["lte", "fibre"]
    assert "-:--" not in output.getvalue()
