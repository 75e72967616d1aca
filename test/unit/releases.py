"""What differs between the supported releases of JAX, for tests that run on all of them."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax.experimental.pallas import tpu as pltpu

OLD = jax.__version_info__ < (0, 12)
"""Whether this is the JAX that a Python without a newer one gets."""


def needs_0_12(reason: str) -> pytest.MarkDecorator:
    """Skips a test with an older JAX, which `reason` says something of: "prints integers only"."""
    return pytest.mark.skipif(OLD, reason=f"JAX {jax.__version__} {reason}")


def tensor_cores(count: int | None = None) -> Any:
    """A mesh with one axis, `core`, of as many cores as are asked for, else as the chip has."""
    make: Any = pltpu.create_tensorcore_mesh if OLD else pltpu.TensorCoreMesh
    return make(axis_name="core", **({} if count is None else {"num_cores": count}))
