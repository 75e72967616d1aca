"""What every unit test shares: JAX on the CPU, libtpu kept quiet, and the `libtpu` marker."""

from __future__ import annotations

import importlib.util
import os
import signal

import hypothesis
import pytest

# Before anything imports jax, and inherited by the processes that tests start.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TPU_SKIP_MDS_QUERY"] = "1"  # libtpu must not ask a metadata server what machine this is
os.environ["NO_COLOR"] = "1"


# A loaded machine is no failure, and a failure must come back when CI runs again.
hypothesis.settings.register_profile("mosaic-grid", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("mosaic-grid")


@pytest.fixture(autouse=True)
def interrupts_are_heeded() -> None:
    """The tools that a test interrupts inherit whether interrupts are ignored.

    They are in what a shell starts in the background, and after a test that interrupts a tool in this process.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips, visibly, what needs libtpu where there is none."""
    if importlib.util.find_spec("libtpu"):
        return
    for item in items:
        if item.get_closest_marker("libtpu"):
            item.add_marker(pytest.mark.skip(reason="libtpu is not installed"))
