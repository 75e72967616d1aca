"""What Python runs when it starts, wherever mosaic-grid is installed: it waits for JAX, and costs nothing without it.

The file `mosaic_grid_startup.pth` imports this module at every start of the interpreter, so that `JAX_MOSAIC_GRID=on`
works for scripts that know nothing of us. It imports nothing: JAX's options become known, and its functions are
replaced, when the modules that hold them have been executed. So it doesn't matter in which order a program imports and
traces.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Waiting:
    """An import hook that finds nothing itself: it calls what waits for a module once that has been executed."""

    def __init__(self) -> None:
        self.actions: dict[str, list[Callable[[ModuleType], None]]] = {}

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """What the other hooks find, if something waits for it."""
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._listen(name, spec.loader)
                return spec
        return None

    def _listen(self, name: str, loader: object) -> None:
        """Has the loader, which is this one module's, tell us when it is done."""
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: "ModuleType") -> None:
            execute(module)
            for action in self.actions.pop(name, ()):
                action(module)

        vars(loader)["exec_module"] = exec_module


_waiting = _Waiting()


def when_loaded(name: str, action: "Callable[[ModuleType], None]") -> None:
    """Calls `action` with the module of this name: now if it is loaded, else as soon as it has been executed."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    if _waiting not in sys.meta_path:
        sys.meta_path.insert(0, _waiting)
    _waiting.actions.setdefault(name, []).append(action)


def _make_options(_: "ModuleType") -> None:
    try:
        import mosaic_grid.jax_hook.options  # noqa: F401  # making them is what it does
    except ValueError as error:
        # a variable has a value that no option can have: how JAX came to look at it is of no use to its author
        raise error.with_traceback(None) from None


when_loaded("jax._src.config", _make_options)
