"""JAX and MJX, imported when they are needed, and models made ready for derivatives."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import mujoco

from carom.core.errors import CaromError
from carom.scenes.mjcf import strike_spec
from carom.scenes.strike import StrikeScene

SOLVER = (20, 10)  #: most iterations of the solver and of its line search


def load() -> tuple[Any, Any]:
    """jax and mjx, or what to install. MJX greets on stdout when its GPU half is absent; nobody asked."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import jax
            from mujoco import mjx
    except ImportError as error:
        raise CaromError(f"MJX is not installed ({error}); it comes with: pip install carom[mjx]") from error
    return jax, mjx


def float64(jax: Any) -> Any:
    """Double precision for as long as this lasts: a process that uses JAX otherwise keeps its own setting."""
    return jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64()


def put(mjx: Any, scene: StrikeScene) -> tuple[Any, Any, Any]:
    """The scene as a MuJoCo model, an MJX model and MJX data."""
    spec = strike_spec(scene)
    for sensor in list(spec.sensors):
        spec.delete(sensor)  # MJX knows no contact sensor; contacts are read from its data instead
    host = spec.compile()
    return host, *differentiable(mjx, host, f"scene '{scene.name}' (target: {scene.shape.kind})")


def differentiable(mjx: Any, host: mujoco.MjModel, what: str) -> tuple[Any, Any]:
    """A MuJoCo model as MJX model and data, with cones (changed in `host` too) that have derivatives."""
    host.opt.cone = mujoco.mjtCone.mjCONE_PYRAMIDAL
    host.opt.iterations, host.opt.ls_iterations = SOLVER
    try:
        model = mjx.put_model(host)
        return model, mjx.make_data(model)
    except (NotImplementedError, ValueError, TypeError) as error:
        raise CaromError(f"MJX cannot simulate {what}: {error}") from error
