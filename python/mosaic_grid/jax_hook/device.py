"""Which TPU a kernel is traced for, where there is none: the one that `jax_mosaic_grid_cpu` names."""

from __future__ import annotations

from types import ModuleType

from jax._src import mesh
from jax._src.interpreters import pxla

from mosaic_grid.jax_hook import options
from mosaic_grid.jax_hook.internals import internal
from mosaic_grid.targets import Target, parse_target


def simulated() -> Target | None:
    """The chip that the CPU plays in this thread; `None` where there is a real or an abstract TPU, or no such wish."""
    if not options.cpu.value:
        return None
    described = mesh.get_abstract_mesh().abstract_device or pxla.get_default_device()
    return parse_target(options.cpu.value) if described.platform == "cpu" else None


def patch(module: ModuleType) -> None:
    """Kernels that ask for the kind of their device, or how many cores it has, get those of the simulated chip."""
    stock_kind = internal(module, "get_device_kind", ())
    stock_cores = internal(module, "get_num_device_cores", ())

    def get_device_kind() -> str:
        chip = simulated()
        return str(stock_kind()) if chip is None else chip.device_kind

    def get_num_device_cores() -> int:
        chip = simulated()
        return int(stock_cores()) if chip is None else chip.cores

    vars(module).update(get_device_kind=get_device_kind, get_num_device_cores=get_num_device_cores)
