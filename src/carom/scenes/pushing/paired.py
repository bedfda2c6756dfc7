"""Which geoms of a pushing scene meet: block and table, block and tool, table and arm; each as a pair with a name."""

from __future__ import annotations

import mujoco
import numpy as np

from carom.core.errors import SceneError
from carom.state import Array


def pair_contacts(
    spec: mujoco.MjSpec, block: str, tool: str, *, condim: int, friction: float | None, feet: str
) -> None:
    """Pairs `ground-GEOM` and `striker-TOOL-GEOM` for each geom of the block, and `table-GEOM` for the arm.

    A parameter of contacts is written into pairs, so a user's own contacts become pairs as well; `friction` None:
    as the geoms have it. A block with geoms whose names begin with `feet` stands on those alone.
    """
    solid = [geom for geom in spec.geoms if friction is not None or geom.contype or geom.conaffinity]
    for i, geom in enumerate(spec.geoms):
        geom.name = geom.name or f"geom_{i}"
    blocks, tools = ([g for g in solid if g.parent.name == name] for name in (block, tool))
    standing = [g for g in spec.geoms if g.parent.name == block and g.name.startswith(feet)]
    blocks = [g for g in blocks if g not in standing]
    tables = [g for g in solid if g.parent.name == "world" and g.name != "base"]
    for what, found in (("target", blocks), ("tool", tools), ("table", tables)):
        if not found:
            raise SceneError(f"pushing needs a geom that meets others on the {what}; found none")
    taken = {frozenset((pair.geomname1, pair.geomname2)) for pair in spec.pairs}
    wanted = [("ground", table, own) for table in tables for own in standing or blocks]
    wanted += [("striker", hand, own) for hand in tools for own in blocks]
    if friction is not None and spec.body("tool").parent.name != "world":  # the arm; a tool on slides stays above
        wanted += [("table", tables[0], spec.geom(name)) for name in ("tool", "forearm")]
    if standing:  # all that they meet is named here, and the table must not carry them beside their feet
        for geom in blocks:
            geom.contype = geom.conaffinity = 0
    names: set[str] = set()
    for kind, one, other in wanted:
        if frozenset((one.name, other.name)) in taken:
            continue
        middle = f"-{one.name}" if kind == "striker" else ""
        name = f"{kind}{middle}-{other.name}"
        name = name if name not in names else f"{name}-{len(names)}"
        names.add(name)
        rubs = max(one.friction[0], other.friction[0]) if friction is None else friction
        spec.add_pair(
            name=name, geomname1=one.name, geomname2=other.name, condim=condim, friction=[rubs, rubs, 0.005, 1e-4, 1e-4]
        )


def tool_point(model: mujoco.MjModel, body: int) -> Array:
    """The tool's tip in its body [3] [m]: its first site, else the body's origin."""
    sites = np.flatnonzero(model.site_bodyid == body)
    return np.array(model.site_pos[sites[0]] if len(sites) else np.zeros(3))
