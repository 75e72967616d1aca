"""The options that JAX learns: made with its own mechanism, so that all the ways of setting one work.

`JAX_MOSAIC_GRID=on`, `jax.config.update("jax_mosaic_grid", "on")` and `with options.grid("on"):` say the same. Values
are a part of the key of JAX's caches: a function is traced and lowered again where one differs. Importing this module
makes the options; nothing of JAX is touched before one of them is set.
"""

from __future__ import annotations

from typing import Any

from jax._src import config

OFF, CHECK, ON = "off", "check", "on"
CHOICES = (OFF, CHECK, ON)


def _name_choices(text: str) -> str:
    import difflib  # here, so that `import jax` doesn't wait for it

    near = difflib.get_close_matches(text.lower(), CHOICES, n=1)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    return f"choose one of {', '.join(CHOICES)}{meant}, or a pipeline as mosaic-opt -p takes it"


def _check_grid(value: Any) -> None:
    """Raises `ValueError` for what is neither a choice nor a pipeline."""
    if value in (*CHOICES, ""):
        return
    if not isinstance(value, str):
        raise ValueError(f"jax_mosaic_grid is a text, not {value!r}: {_name_choices(str(value))}")
    from mosaic_grid.context import create_context
    from mosaic_grid.errors import UserError
    from mosaic_grid.passes import PASSES
    from mosaic_grid.pipeline import parse_pipeline

    try:
        with create_context():
            parse_pipeline(value, PASSES)
    except UserError as error:
        message = f"jax_mosaic_grid can't be '{value}': {error.message}; {_name_choices(value)}"
        raise ValueError("\n".join([message, *error.notes])) from None


def _check_cpu(value: Any) -> None:
    """Raises `ValueError` for what is no chip."""
    if value == "":
        return
    from mosaic_grid.errors import UserError
    from mosaic_grid.targets import parse_target, target_names

    if not isinstance(value, str):
        raise ValueError(f"jax_mosaic_grid_cpu is a text, not {value!r}: choose one of {', '.join(target_names())}")
    try:
        parse_target(value)
    except UserError as error:
        raise ValueError("\n".join([f"jax_mosaic_grid_cpu: {error.message}", *error.notes])) from None


def _check_contracts(value: Any) -> None:
    """Raises `ValueError` for what can't be read as contracts."""
    if value == "":
        return
    if not isinstance(value, str):
        raise ValueError(f"jax_mosaic_grid_contracts is a text, not {value!r}: write 'n >= 1, n <= 64'")
    from mosaic_grid.symbolic.contract_syntax import ContractError, parse
    from mosaic_grid.symbolic.contracts import split_contracts

    try:
        for each in split_contracts(value):
            parse(each)
    except ContractError as error:
        message = f"contract '{error.text}', column {error.column}: {error.message}"
        raise ValueError(f"jax_mosaic_grid_contracts: {message}") from None


def _check_report(value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"jax_mosaic_grid_report is the name of a directory, not {value!r}")


def _in_use(value: str | None) -> None:
    """Has JAX's functions replaced as soon as an option says that there is something to do."""
    if value not in (None, "", OFF):
        from mosaic_grid.jax_hook.install import install

        install()


def _option(name: str, default: str, check: Any, text: str) -> Any:
    return config.string_or_object_state(
        name=name,
        default=default,
        help=text,
        validator=check,
        update_global_hook=_in_use,
        update_thread_local_hook=_in_use,
        include_in_jit_key=True,
        include_in_trace_context=True,
    )


grid = _option("jax_mosaic_grid", OFF, _check_grid, "What mosaic-grid does with Pallas TPU kernels that are lowered: "
               "off; check, which reports; on, which also resolves and shares grids; or a pipeline.")  # fmt: skip
cpu = _option("jax_mosaic_grid_cpu", "", _check_cpu, "The chip that Pallas TPU kernels are run for on the CPU, "
              "for instance v5p; empty: they aren't.")  # fmt: skip
contracts = _option("jax_mosaic_grid_contracts", "", _check_contracts, "What is promised of the integer arguments of "
                    "lowered functions, as 'n >= 1, 0 <= lengths[*] < 1024'.")  # fmt: skip
report = _option("jax_mosaic_grid_report", "", _check_report, "A directory that each lowered program with kernels is "
                 "written to, before and after mosaic-grid's passes, with what they say.")  # fmt: skip


def mode() -> str:
    """What `jax_mosaic_grid` says in this thread."""
    return grid.value or OFF


def asks_for_something() -> bool:
    """Whether there is anything to do with a lowered program."""
    return mode() != OFF or bool(cpu.value) or bool(report.value)


def rewrites() -> bool:
    """Whether kernels may be changed: `off` and `check` leave them as JAX lowers them."""
    return mode() not in (OFF, CHECK)
