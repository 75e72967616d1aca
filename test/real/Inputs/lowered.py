"""Prints a kernel that ships with JAX, lowered for TPU: `NAME`, or `dynamic NAME` with a parallel dimension dynamic."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(TESTS / "unit"), str(TESTS.parent / "tools")]


def main() -> None:
    """Does what the command line says."""
    match sys.argv[1:]:
        case ["dynamic", name]:
            import real_kernels

            print(getattr(real_kernels, f"dynamic_{name}")())
        case [name]:
            from shipped_kernels import KERNELS

            print(KERNELS[name]().decode())


if __name__ == "__main__":
    main()
