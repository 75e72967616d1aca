"""`specialize-grid`: static variants of a dynamic grid, one of which is picked at run time."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

from jaxlib.mlir import ir

from mosaic_grid.errors import UserError
from mosaic_grid.passbase import Kind, Pass, option
from mosaic_grid.program import Program
from mosaic_grid.session import Session
from mosaic_grid.targets import Target, parse_target
from mosaic_grid.unchanged import nothing_done
from mosaic_grid.variants.wishes import parse_ladder, parse_wishes, wishes_of

MOST_VARIANTS = 64
"""A kernel in so many variants compiles for minutes."""


@dataclasses.dataclass(frozen=True)
class SpecializeGrid(Pass):
    """Gives a kernel whose grid is dynamic static variants, picks the one that fits when it runs, and falls back to the
    original where none does.

    A static variant is the original with a constant for the bound: what asks for it, guards of the last step, dead
    branches and trip counts of inner loops are worked out by MLIR, the operand goes, and the compiler shares a parallel
    dimension between the cores by itself. Where the dynamic bound kept a false `parallel` from doing harm, the
    dimension is made arbitrary and a remark says why. Launches that agree share their variants.

    Which bounds: `values`, `ladder`, or with neither all that are proved to be possible if those are few. A dimension
    is named by its number or by the argument that its bound is computed from: `values=0=8,16,1=1..4` or
    `values=n=1024`; `KERNEL:` before it is a glob pattern of kernels. `@FILE` stands for the values in a file, a line
    like that each.

    With `bucket=round-up` a variant runs every bound up to its own, down to the variant below it: steps beyond the true
    bound do nothing, and move no block. Results are exact, not padded. The compiler shares neither the guarded
    dimension nor those inside it between cores; if the guarded one is parallel the variant does it itself, as
    `partition-cores` would, for the cores of the target.

    With `keep=profitable` libtpu compiles each variant and the original for the target, and those stay whose step,
    divided by the cores in use, is shorter by `min-gain` percent; a remark has the table. docs/specialize.md says what
    decides where there is no libtpu.

    ```mlir
    %0 = stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, ...}   // iteration_bounds = [?, 4]
    ```

    becomes, with `values=8,16`,

    ```mlir
    %index = ...
    %0 = "stablehlo.case"(%index) ({
      stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @double_d0_8, ...}     // iteration_bounds = [8, 4]
    }, {
      stablehlo.custom_call @tpu_custom_call(%x) {mosaic.kernel = @double_d0_16, ...}    // iteration_bounds = [16, 4]
    }, {
      stablehlo.custom_call @tpu_custom_call(%n, %x) {mosaic.kernel = @double, ...}
    })
    ```
    """

    name: ClassVar[str] = "specialize-grid"
    kind: ClassVar[Kind] = "rewrite"

    values: tuple[str, ...] = option((), "bounds to specialize for: 8,16 or 0=8,16,1=1..4 or n=1024 or @FILE")
    ladder: str = option("", "bounds up to the largest that is proved: pow2, multiples-of:K, or auto: all if few")
    bucket: Literal["exact", "round-up"] = option("exact", "whether a variant also runs the bounds below its own")
    budget: int = option(8, "the most variants that a launch gets")
    keep: Literal["all", "profitable"] = option("all", "whether variants that gain too little are dropped")
    min_gain: int = option(2, "how many percent a variant has to gain with keep=profitable")
    code_budget: int | None = option(None, "with keep=profitable, the most bytes of code of all variants together")
    compile_budget: int | None = option(None, "with keep=profitable, the most seconds that compiling them all may take")
    target: str = option("", "the chip that keep=profitable compiles for (default: that of the tool)")

    def __post_init__(self) -> None:
        """Refuses what can't be read, and budgets of nothing."""
        parse_wishes(element for element in self.values if not element.startswith("@"))
        parse_ladder(self.ladder)
        if not 1 <= self.budget <= MOST_VARIANTS:
            raise ValueError(f"option 'budget' expects an integer from 1 to {MOST_VARIANTS}, got {self.budget}")
        if not 0 <= self.min_gain <= 100:
            raise ValueError(f"option 'min-gain' expects a percentage from 0 to 100, got {self.min_gain}")
        for name, most in (("code-budget", self.code_budget), ("compile-budget", self.compile_budget)):
            if most is not None and (most < 1 or self.keep == "all"):
                raise ValueError(f"option '{name}' expects a positive integer, and keep=profitable")
        if self.target:
            try:
                parse_target(self.target)
            except UserError as refusal:
                raise ValueError(f"option 'target': {refusal.message}") from None

    def target_for(self, session: Session) -> Target | None:
        """The chip that variants are judged for."""
        return parse_target(self.target) if self.target else session.target

    def run(self, program: ir.Operation, session: Session) -> None:
        """Specializes every selected launch, in place; what it leaves, it says why."""
        # imported where they are needed: the tool's start-up shouldn't pay for analyses
        from mosaic_grid.dataflow.outer import OuterScalars
        from mosaic_grid.variants.build import Kernels
        from mosaic_grid.variants.launch import carry_out
        from mosaic_grid.variants.planner import Planner, Wanted

        target = self.target_for(session)
        view = Program(program)
        wanted = Wanted(
            wishes_of(self.values),
            parse_ladder(self.ladder),
            self.budget,
            self.bucket == "round-up",
            target.cores if target else 2,
            shares=target is not None,
        )
        planner = Planner(view, OuterScalars(program, session.contracts), wanted)
        plans = planner.plans([launch for launch in view.launches if session.selects(launch.kernel.name)])
        for remark in planner.remarks:
            session.emit(remark)
        if not plans:
            session.emit(nothing_done(self.name, planner.left, program, "not-specialized"))
        if plans and self.keep == "profitable":
            from mosaic_grid.variants.profit import Judge
            from mosaic_grid.variants.verdict import Thresholds

            judge = Judge(target, Thresholds(self.min_gain, self.code_budget, self.compile_budget))
            plans = judge.profitable(plans)
            for remark in judge.remarks:
                session.emit(remark)
        carry_out(view, plans, Kernels(view))
