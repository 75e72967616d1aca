"""Runs a command that must end with one exact exit code: `expect_exit.py CODE COMMAND...`, `%expect-exit` in lit tests.

lit's own `not` accepts any failure, so it can't tell a diagnosed error (1) from bad input (2), nor either from a Python
traceback (1). This does, and never lets a traceback pass. What the command prints is handed on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Runs `argv[1:]`; returns 0 if its exit code is `argv[0]` and it printed no traceback, else 1."""
    wanted, command = int(argv[0]), argv[1:]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    sys.stderr.buffer.write(done.stderr)
    sys.stderr.flush()
    if b"Traceback (most recent call last)" in done.stderr:
        print("expect-exit: the command ended in a traceback", file=sys.stderr)
        return 1
    if done.returncode != wanted:
        print(f"expect-exit: exit code {done.returncode}, expected {wanted}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
