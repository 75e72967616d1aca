"""The chips a program may be made for: what passes need to know of each, and how libtpu is asked for it.

The facts are those of JAX's own chip table, `jax._src.tpu_info`. They are repeated here because importing JAX takes
longer than the tool's whole start-up; a unit test compares every row with the installed JAX.
"""

from __future__ import annotations

import dataclasses
import difflib

from mosaic_grid.errors import UserError

_KIB = 1024
_MIB = 1024 * _KIB


@dataclasses.dataclass(frozen=True)
class Chip:
    """One row of the chip table. Memory sizes are bytes per TensorCore.

    `topology` is a slice of one host in libtpu's notation, empty where the libtpu this was written against knows none.
    `configs` says by which chip configuration (libtpu's `chip_config_name`) a device of that many cores comes about,
    the default first.
    """

    name: str
    device_kinds: tuple[str, ...]
    tensor_cores: int
    vmem_bytes: int
    smem_bytes: int
    topology: str = ""
    configs: tuple[tuple[int, str], ...] = ((1, ""),)

    @property
    def core_counts(self) -> tuple[int, ...]:
        """How many TensorCores one device may have, the default first: two is megacore, one on such a chip is split."""
        return tuple(cores for cores, _ in self.configs)


# libtpu names a configuration for what is not its own default: "legacy" splits a v5p into two devices, "megacore" joins
# the two halves of a v4.
CHIPS = (
    Chip("v2", ("TPU v2",), 2, 16 * _MIB, 16 * _KIB, "v2:2x2"),
    Chip("v3", ("TPU v3",), 2, 16 * _MIB, 16 * _KIB, "v3:2x2"),
    Chip("v4i", ("TPU v4 lite",), 1, 16 * _MIB, _MIB, "v4 lite:2x2"),
    Chip("v4", ("TPU v4",), 2, 16 * _MIB, _MIB, "v4:2x2x1", ((2, "megacore"), (1, ""))),
    Chip("v5e", ("TPU v5 lite", "TPU v5e"), 1, 128 * _MIB, _MIB, "v5e:2x2"),
    Chip("v5p", ("TPU v5", "TPU v5p"), 2, 64 * _MIB, _MIB, "v5p:2x2x1", ((2, ""), (1, "legacy"))),
    Chip("v6e", ("TPU v6 lite", "TPU v6e"), 1, 128 * _MIB, _MIB, "v6e:2x2"),
    Chip("tpu7", ("TPU7",), 2, 64 * _MIB, _MIB),
    Chip("tpu7x", ("TPU7x",), 2, 64 * _MIB, _MIB, "tpu7x:2x2x1"),
    Chip("tpu8i", ("TPU8i",), 2, 192 * _MIB, _MIB),
    Chip("tpu8t", ("TPU8t",), 1, 128 * _MIB, _MIB),
)


@dataclasses.dataclass(frozen=True)
class Target:
    """What a program is made for: one device of a chip.

    `cores` counts the TensorCores that one kernel launch may use, which is what the chip has only where its cores form
    one device (megacore). So it is 2 on v4 and v5p, and 1 on v2, v3 and TPU7x, whose two cores are two devices. `v4:1`
    and `v5p:1` are one half of a split chip. libtpu compiles for all of these; its own ahead-of-time topology of a v4
    is the split one, unless it is told otherwise.
    """

    chip: Chip
    cores: int

    @property
    def name(self) -> str:
        """The shortest text that `parse_target` reads back: the core count only where it isn't the chip's default."""
        return self.chip.name if self.cores == self.chip.core_counts[0] else f"{self.chip.name}:{self.cores}"

    @property
    def vmem_bytes(self) -> int:
        """Vector memory of one core, in bytes."""
        return self.chip.vmem_bytes

    @property
    def smem_bytes(self) -> int:
        """Scalar memory of one core, in bytes."""
        return self.chip.smem_bytes

    @property
    def device_kind(self) -> str:
        """What JAX calls the device, e.g. `TPU v5`."""
        return self.chip.device_kinds[0]

    @property
    def topology(self) -> str:
        """The name of an ahead-of-time topology with such devices, empty where libtpu knows none."""
        return self.chip.topology

    @property
    def chip_config(self) -> str:
        """libtpu's `chip_config_name` that gives devices of `cores` cores; empty for its default."""
        return dict(self.chip.configs)[self.cores]

    def __str__(self) -> str:
        """Its name."""
        return self.name


def parse_target(text: str) -> Target:
    """Reads `CHIP[:CORES]`, where CHIP is a name in the table or what JAX calls the device (`TPU v5 lite`), in any
    case.

    Raises `UserError` for an unknown chip, with the nearest name, and for a number of cores that a device can't have.
    """
    name, colon, count = text.partition(":")
    chip = _BY_NAME.get(_folded(name))
    if chip is None:
        raise UserError(f"unknown target '{text}'{_suggestion(name)}", notes=[f"targets: {', '.join(target_names())}"])
    if not colon:
        return Target(chip, chip.core_counts[0])
    # int() would also take signs, underscores and digits of other scripts.
    cores = int(count) if count.isascii() and count.isdigit() else 0
    if cores not in chip.core_counts:
        choices = " or ".join(f"'{chip.name}:{n}'" for n in sorted(chip.core_counts))
        raise UserError(
            f"target '{text}': a {chip.name} device can't have '{count}' cores; use {choices}",
            notes=[f"a {chip.name} chip has {chip.tensor_cores} TensorCore(s); a launch runs on one device"],
        )
    return Target(chip, cores)


def target_names() -> tuple[str, ...]:
    """The names of all chips, oldest first."""
    return tuple(chip.name for chip in CHIPS)


def _folded(name: str) -> str:
    return " ".join(name.lower().split())


def _spellings(chip: Chip) -> tuple[str, ...]:
    """The name here (`tpu7x`), JAX's value for it (`7x`), the same as a version (`v7x`), what devices are called."""
    version = chip.name.removeprefix("tpu")
    kinds = [_folded(kind) for kind in chip.device_kinds]
    return (chip.name, version, f"v{version.removeprefix('v')}", *kinds, *(kind.replace(" ", "") for kind in kinds))


_BY_NAME = {spelling: chip for chip in reversed(CHIPS) for spelling in _spellings(chip)}


def _suggestion(name: str) -> str:
    wanted = _folded(name)
    near = difflib.get_close_matches(wanted, _BY_NAME, n=len(_BY_NAME))
    if not near:
        return ""
    # Of `v5x` every letter but one is in `v5p` and in `v7x`: among equals the one that begins alike is meant.
    best = max(near, key=lambda known: (_likeness(known, wanted), known[:2] == wanted[:2]))
    return f"; did you mean '{_BY_NAME[best].name}'?"


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other).ratio()
