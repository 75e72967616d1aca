"""Functions that call themselves: XLA has no call stack, and runs out of memory over them."""

from __future__ import annotations

from jaxlib.mlir import ir

from mosaic_grid.program import ProgramError, block_of, is_kernel, symbol_of


def refuse_recursion(program: ir.Operation) -> None:
    """Raises `ProgramError` if a function of the outer program calls itself, whether through others or not."""
    functions = {
        symbol: op.operation
        for op in block_of(program)
        if op.operation.name == "func.func" and (symbol := symbol_of(op.operation))
    }
    calls = {symbol: _calls(function) for symbol, function in functions.items()}
    done: set[str] = set()

    def visit(symbol: str, path: tuple[str, ...]) -> None:
        if symbol in path:
            raise ProgramError(f"the function @{symbol} calls itself, which XLA can't compile", functions[symbol])
        if symbol in done or symbol not in functions:
            return
        for called in sorted(calls[symbol]):
            visit(called, (*path, symbol))
        done.add(symbol)

    for symbol in functions:
        visit(symbol, ())


def _calls(function: ir.Operation) -> set[str]:
    found: set[str] = set()

    def look(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            found.add(ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
        return ir.WalkResult.SKIP if is_kernel(op) else ir.WalkResult.ADVANCE

    function.walk(look, ir.WalkOrder.PRE_ORDER)
    return found
