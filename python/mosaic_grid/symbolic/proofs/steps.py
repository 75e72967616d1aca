"""Some points of one grid, by role ("first", "second"), and what is known of the unknowns there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mosaic_grid.symbolic.arith import parameter
from mosaic_grid.symbolic.choice import comparison
from mosaic_grid.symbolic.contract_syntax import is_name
from mosaic_grid.symbolic.evaluate import value_of
from mosaic_grid.symbolic.expr import Expr
from mosaic_grid.symbolic.facts import leaves_of, wraps_in
from mosaic_grid.symbolic.nodes import Const, Load, Param
from mosaic_grid.symbolic.problem import Grid, Window
from mosaic_grid.symbolic.proofs.instances import EVERYWHERE, Application, Instances
from mosaic_grid.symbolic.ranges import Range, type_range
from mosaic_grid.symbolic.substitute import substitute


class Steps:
    """The points `roles` of the grid; without any, only its inputs are spoken of."""

    def __init__(self, grid: Grid, *roles: str) -> None:
        self.grid = grid
        self.points = {role: tuple(f"{role}.{name}" for name in grid.indices) for role in roles}
        self._instances = Instances(grid.indices, grid.contracts)
        self._truths: list[Expr] = []
        self._indices: dict[str, tuple[Expr, ...]] = {}
        self._bounds = tuple(self._instances.at(bound, EVERYWHERE) for bound in grid.bounds)
        for role, names in self.points.items():
            self._place(role, names)

    def _place(self, role: str, names: tuple[str, ...]) -> None:
        indices = []
        for name, bound in zip(names, self._bounds, strict=True):
            # a constant 0 where there is one step, or none
            index = parameter(name, Range(0, max(bound.range.hi - 1, 0)))
            indices.append(index)
            self._truths.append(comparison("<", index, bound))
        self._indices[role] = tuple(indices)
        self._truths += [self._instances.at(truth, role) for truth in self.grid.at_steps]

    def indices(self, role: str) -> tuple[Expr, ...]:
        """The grid indices of a point."""
        return self._indices[role]

    def bounds(self) -> tuple[Expr, ...]:
        """The grid's bounds."""
        return self._bounds

    def at(self, expr: Expr, role: str) -> Expr:
        """The expression at a point."""
        return self._instances.at(expr, role)

    def starts(self, window: Window, role: str) -> tuple[Expr, ...]:
        """What a window's index map gives at a point, where the window is seen."""
        self._truths += [self._instances.at(guard, role) for guard in window.guards]
        return tuple(self._instances.at(index, role) for index in window.index)

    def facts(self) -> list[Expr]:
        """What holds of the unknowns whether or not the points are in the grid: contracts, and that loads are loads."""
        return self._instances.facts()

    def truths(self) -> list[Expr]:
        """What holds because the points are in the grid, and the windows are seen there."""
        return [truth for truth in self._truths if truth != Const(1)]

    def unknowns(self) -> list[Param]:
        """The indices of the points, role by role."""
        return [
            Param(name, Range(0, max(bound.range.hi - 1, 0)))
            for names in self.points.values()
            for name, bound in zip(names, self._bounds, strict=True)
        ]

    def hidden(self) -> frozenset[str]:
        """The names of the unknowns of which not every value need occur."""
        summed = self._instances.hidden_by_sums(self.grid.arrays)
        reads = self._instances.applications.items()
        applied = {name for name, each in reads if not self._is_input(each) or each.function[1] in summed}
        return self.grid.opaque | applied | self._instances.places | summed

    def _is_input(self, application: Application) -> bool:
        """Whether it is an element of an array that may hold anything."""
        return isinstance(application.written, Load) and application.written.name in self.grid.arrays

    def label(self, name: str, values: Mapping[str, int]) -> str:
        """What a person calls an unknown where the unknowns have these values: `lengths[7]` for an element."""
        application = self._instances.applications.get(name)
        if application is None or not self._is_input(application):
            return name
        known = [value_of(arg, {leaf: values[leaf.text] for leaf in leaves_of(arg)}) for arg in application.args]
        return f"{application.function[1]}[{', '.join(map(str, known))}]"

    def every(self, name: str) -> str | None:
        """How a contract speaks of an unknown: `lengths[*]` for an element; None where its name can't be written."""
        application = self._instances.applications.get(name)
        if application is None:
            return name if is_name(name) or name.startswith("sum(") else None
        array = application.function[1]
        if not isinstance(array, str) or not is_name(array):
            return None
        fixed = all(isinstance(arg, Const) for arg in application.args)
        return f"{array}[{', '.join(map(str, application.args))}]" if fixed else f"{array}[*]"

    def overflow(self, exprs: Iterable[Expr], values: Mapping[str, int]) -> str:
        """`n + 127 overflows 32 bits` where it does for these values, in an expression or a bound; else empty."""
        for part in dict.fromkeys(part for expr in (*self._bounds, *exprs) for part in wraps_in(expr)):
            leaves = leaves_of(part)
            if all(leaf.text in values for leaf in leaves):
                inner = value_of(part.inner, {leaf: values[leaf.text] for leaf in leaves})
                if inner not in type_range(part.bits, part.signed):
                    return f"{self.written(part.inner)} overflows {part.bits} bits"
        return ""

    def varying(self) -> frozenset[str]:
        """The hidden unknowns that may differ from step to step, as a load at a grid index."""
        varies = {name for names in self.points.values() for name in names} | self._instances.places
        indices = frozenset(varies) - self._instances.places
        # what an application is applied to was noted before it
        for name, application in self._instances.applications.items():
            if any(leaf.text in varies for arg in application.args for leaf in leaves_of(arg)):
                varies.add(name)
        return frozenset(varies - indices)

    def obstacle(self, exprs: Iterable[Expr]) -> str:
        """Why a claim about these expressions can be neither proved nor refuted."""
        names = dict.fromkeys(leaf.text for expr in (*exprs, *self.truths(), *self.facts()) for leaf in leaves_of(expr))
        for name in names:
            if name in self._instances.applications:
                written = self._instances.applications[name].written
                read = ", which is read at run time" if isinstance(written, Load) else ", which is not linear"
                return f"it depends on {written}{read}"
        hidden = self.hidden()
        opaque = next((name for name in names if name in hidden), "values")
        return f"it depends on {opaque}, of which not every value need occur"

    def written(self, expr: Expr) -> Expr:
        """An expression at a point as the program has it."""
        plain = {f"{role}.{name}": name for role in self.points for name in self.grid.indices}

        def original(part: Expr) -> Expr | None:
            if not isinstance(part, Param):
                return None
            if part.name in self._instances.applications:
                return self._instances.applications[part.name].written
            return Param(plain[part.name], part.values, part.known_divisor) if part.name in plain else None

        return substitute(expr, original)
