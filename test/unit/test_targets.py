"""The chip table: what a name means, and that every row says what the installed JAX says."""

from __future__ import annotations

import pytest

from mosaic_grid.errors import UserError
from mosaic_grid.targets import CHIPS, Chip, parse_target, target_names


@pytest.mark.parametrize(
    ("text", "name", "cores"),
    [
        ("v5p", "v5p", 2),
        ("v5p:2", "v5p", 2),
        ("v5p:1", "v5p:1", 1),
        ("v4", "v4", 2),
        ("v4:1", "v4:1", 1),
        ("TPU v5", "v5p", 2),
        ("TPU v5 lite", "v5e", 1),
        ("tpu V6 Lite", "v6e", 1),
        ("TPU7x", "tpu7x", 1),
        ("7x", "tpu7x", 1),
        ("v7x", "tpu7x", 1),
    ],
)
def test_spellings(text: str, name: str, cores: int) -> None:
    """Every usual spelling of a chip is read, and its name is the shortest text that reads back to the same target."""
    target = parse_target(text)
    assert (target.name, target.cores) == (name, cores)
    assert parse_target(target.name) == target


@pytest.mark.parametrize(
    ("text", "meant"), [("v5", "v5p"), ("v5x", "v5p"), ("v6p", "v6e"), ("tpu7xx", "tpu7x"), ("TPU v5 light", "v5e")]
)
def test_unknown_name_offers_the_nearest(text: str, meant: str) -> None:
    """A misspelt chip is an error that names the nearest one and lists them all."""
    with pytest.raises(UserError, match=rf"unknown target '{text}'; did you mean '{meant}'\?") as caught:
        parse_target(text)
    assert caught.value.notes == (f"targets: {', '.join(target_names())}",)


@pytest.mark.parametrize("text", ["", "gpu-h100", "???"])
def test_unknown_name_without_a_near_one(text: str) -> None:
    """Where nothing is near nothing is offered."""
    with pytest.raises(UserError) as caught:
        parse_target(text)
    assert caught.value.message == f"unknown target '{text}'"


@pytest.mark.parametrize("text", ["v5p:4", "v5p:", "v5p:0", "v5p:-1", "v5p:+1", "v5p:1_", "v5p:\u00b2", "v5p:1:1"])
def test_impossible_core_count(text: str) -> None:
    """A count that no v5p device can have is refused with the two it can have."""
    with pytest.raises(UserError, match="use 'v5p:1' or 'v5p:2'"):
        parse_target(text)


def test_two_devices_are_not_two_cores() -> None:
    """A TPU7x has two TensorCores but each is a device of its own, so one launch can't have both."""
    with pytest.raises(UserError, match="a tpu7x device can't have '2' cores; use 'tpu7x:1'"):
        parse_target("tpu7x:2")


@pytest.mark.parametrize("chip", CHIPS, ids=target_names())
def test_row_agrees_with_jax(chip: Chip) -> None:
    """TensorCores, megacore and memory sizes are those of JAX's own table, and each device kind is that chip's."""
    tpu_info = pytest.importorskip("jax._src.tpu_info")
    topologies = pytest.importorskip("jax.experimental.topologies")._DEVICE_KIND_TO_TOPOLOGY
    versions = {tpu_info.chip_version_from_device_kind(kind) for kind in chip.device_kinds}
    assert len(versions) == 1
    (version,) = versions
    assert parse_target(version.value).chip is chip
    assert chip.tensor_cores == version.num_physical_tensor_cores_per_chip
    assert (max(chip.core_counts) == 2) == version.supports_megacore
    info = tpu_info.get_tpu_info_for_chip(version, 1)
    assert (chip.vmem_bytes, chip.smem_bytes) == (info.vmem_capacity_bytes, info.smem_capacity_bytes)
    for kind in chip.device_kinds:
        known, _ = topologies.get(kind, ("", ""))
        assert known.partition("=")[0] == chip.topology.partition(":")[0]


def test_every_chip_that_jax_knows_has_a_row() -> None:
    """A chip that a newer JAX adds shows up here."""
    tpu_info = pytest.importorskip("jax._src.tpu_info")
    assert {parse_target(version.value).chip for version in tpu_info.ChipVersion} == set(CHIPS)
