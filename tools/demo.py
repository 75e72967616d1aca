"""`make demo`: a kernel that ships with JAX runs on one core of two, is shared between them, and libtpu says so.

The kernel is megablox's grouped matmul, the heart of a mixture-of-experts layer, over a number of live columns that is
only known at run time. It is lowered here, on a machine without a TPU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from real_kernels import dynamic_gmm

TARGET = "v5p"
DIRECTORY = Path(__file__).resolve().parent.parent / ".cache" / "demo"


def main() -> int:
    """Runs the commands that it shows, in a directory of the checkout where the programs stay."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    os.chdir(DIRECTORY)
    say("1. Lower jax.experimental.pallas.ops.tpu.megablox.gmm for TPU, its column tiles dynamic.")
    Path("gmm.mlir").write_text(dynamic_gmm(), encoding="utf-8")
    say("2. What is in the dump?")
    run("mosaic-opt", "gmm.mlir", "--summary", f"--target={TARGET}")
    say("3. Share the dynamic dimension between the cores.")
    run("mosaic-opt", "gmm.mlir", "-p", "resolve-grid,partition-cores", f"--target={TARGET}", "-o", "shared.mlir")
    run("mosaic-opt", "shared.mlir", "--summary", f"--target={TARGET}")
    print("Each core has its share of the steps: partition[0] is the last step of all, which the launch computes.")
    say("4. Ask the real TPU compiler about both programs: first the original, then the shared one.")
    before = run("mosaic-opt", "gmm.mlir", f"--compile={TARGET}")
    after = run("mosaic-opt", "shared.mlir", f"--compile={TARGET}")
    if "cores used: 1 of 2" in before and "cores used: 2 of 2" in after:
        say("The kernel ran on one core of two and now runs on both.")
        place = os.path.relpath(DIRECTORY, DIRECTORY.parent.parent)
        print(f"The programs are in {place}, to look at and to try things on.")
        return 0
    if "libtpu is not installed" in before:
        return 0
    print("this is not what should have come out; please report it", file=sys.stderr)
    return 1


def say(text: str) -> None:
    """A heading."""
    print(f"\n{text}", flush=True)


def run(*command: str) -> str:
    """Shows a command, runs it and returns what it printed, which is shown too."""
    print(f"$ {' '.join(repr(word) if ',' in word else word for word in command)}", flush=True)
    tool = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    done = subprocess.run(
        [tool, *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout, end="", flush=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
