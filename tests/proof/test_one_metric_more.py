"""Only the list of metrics determines their number: the tests of tables and figures pass with one more."""

import os
import subprocess
import sys
from pathlib import Path

from base.places import PROJECT


def test_the_tests_of_tables_and_figures_hold_with_one_metric_more(tmp_path: Path) -> None:
    lines = ["from dataset.metrics import METRICS, Metric"]
    lines += ['METRICS.append(Metric("weight", "g", "Weight", lambda evidence: None))']
    (tmp_path / "toy_metric.py").write_text("\n".join(lines))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    tests = [PROJECT / "tests" / "analysis", PROJECT / "tests" / "measure" / "campaign" / "test_results.py"]
    command = [sys.executable, "-m", "pytest", "-p", "toy_metric", "--basetemp", str(tmp_path / "base")]
    # Films do not depend on metrics.
    command += ["-m", "not slow", "--ignore-glob=*/test_film_frames.py", *map(str, tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=PROJECT)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
