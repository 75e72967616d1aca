"""Symbolic integers: expressions built by smart constructors, what is known of them, and verdicts about them.

Pure: neither MLIR nor JAX is imported, and nothing else of this package.
"""

from __future__ import annotations

from mosaic_grid.symbolic.arith import add, constant, load, mul, neg, parameter, sub, wrap
from mosaic_grid.symbolic.choice import (
    absolute,
    clamp,
    comparison,
    conjunction,
    disjunction,
    maximum,
    minimum,
    negation,
    sign,
)
from mosaic_grid.symbolic.division import ceildiv, floordiv, mod, truncdiv, truncrem
from mosaic_grid.symbolic.evaluate import value_of
from mosaic_grid.symbolic.expr import Expr, Origin
from mosaic_grid.symbolic.facts import (
    compare,
    constant_of,
    divisor_of,
    leaves_of,
    range_of,
    wraps_in,
)
from mosaic_grid.symbolic.nodes import Const, Load, Param, Relation, Total
from mosaic_grid.symbolic.ranges import Range, may_wrap, type_range
from mosaic_grid.symbolic.selection import select
from mosaic_grid.symbolic.substitute import substitute
from mosaic_grid.symbolic.totals import in_range, inputs_of, total, totals_of, within_totals
from mosaic_grid.symbolic.verdict import Enough, Proved, Refuted, Unknown, Verdict, Witness

__all__ = [
    "Const",
    "Enough",
    "Expr",
    "Load",
    "Origin",
    "Param",
    "Proved",
    "Range",
    "Refuted",
    "Relation",
    "Total",
    "Unknown",
    "Verdict",
    "Witness",
    "absolute",
    "add",
    "ceildiv",
    "clamp",
    "compare",
    "comparison",
    "conjunction",
    "constant",
    "constant_of",
    "disjunction",
    "divisor_of",
    "floordiv",
    "in_range",
    "inputs_of",
    "leaves_of",
    "load",
    "maximum",
    "may_wrap",
    "minimum",
    "mod",
    "mul",
    "neg",
    "negation",
    "parameter",
    "range_of",
    "select",
    "sign",
    "sub",
    "substitute",
    "total",
    "totals_of",
    "truncdiv",
    "truncrem",
    "type_range",
    "value_of",
    "within_totals",
    "wrap",
    "wraps_in",
]
