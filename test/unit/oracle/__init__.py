"""An interpreter for unpacked programs, on numpy: what a program means, so that tests can compare two of them.

It is strict where the machine is not: an access beyond an array, a block beyond its operand, a division by zero, and an
op it doesn't know are errors. Memory that nobody wrote holds poison. A `core_parallel` dimension can run its cores in
turn, in reverse, or interleaved step by step, each with scratch and window buffers of its own.
"""

from __future__ import annotations

from oracle.machine import Machine, OracleError
from oracle.outer import Interpreter, run_program

__all__ = ["Interpreter", "Machine", "OracleError", "run_program"]
