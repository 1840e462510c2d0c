"""The kernel's files about a process are read whole."""

import subprocess
import sys

from measure.host.process_files import BLOCK_BYTES, command_line


def test_the_last_word_of_a_long_command_line_is_read() -> None:
    # Firefox's processes have their kind there (`browsers.firefox_browser`).
    command = [sys.executable, "-c", "print(flush=True); input()", "x" * 3 * BLOCK_BYTES, "tab"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        # The kernel has no command line of a process that has just been started.
        process.stdout.readline()
        assert command_line(process.pid).split()[-1] == "tab"
        process.stdin.write("\n")
