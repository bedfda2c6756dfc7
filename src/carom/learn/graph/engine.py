"""The graph simulator behind the engines' contract: free convex bodies over level ground, any number of rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import ArrayLike

from carom.core.errors import CaromError, SceneError, unknown_name
from carom.engines.contract import Validation, row_values
from carom.identify.tosses.predict import MotionModel
from carom.learn.graph.conditions import CONDITIONS, FORMS, TAKES, Number, contact_of, corrected_world, encoded
from carom.learn.graph.dynamics import Moving, World
from carom.learn.graph.model import GraphModel
from carom.learn.graph.rollout import GraphRun, moving_of
from carom.learn.graph.solids import SOLID, solids_of
from carom.scenes.free import FreeScene
from carom.scenes.scene import Scene
from carom.scenes.shapes import Body
from carom.scenes.solids import calibrated_body
from carom.state import Array, SceneState

BEYOND = 0.05  #: of a range's end: so far outside of what was trained with is not worth a word
IGNORED = ("torsional and rolling friction", "impedance (solimp)", "rounded edges", "a ground that leans")


@final
class GraphEngine:
    """A trained graph simulator for one scene; `parameters` names those that `open` may be given values of."""

    def __init__(
        self,
        model: GraphModel,
        scene: Scene,
        parameters: Sequence[str] = (),
        *,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
    ) -> None:
        cannot = self.validate(scene).cannot
        if cannot or not isinstance(scene, FreeScene):
            raise SceneError(f"the graph simulator cannot run scene '{scene.name}': {'; '.join(cannot)}")
        for name in parameters:
            if name not in TAKES:
                raise SceneError(unknown_name("parameter of the graph simulator", name, TAKES))
        self.model, self._scene, self.parameters = model, scene, tuple(parameters)
        self.dtype, self.device = dtype, device
        # a model of its own: another engine may want the same one with other numbers
        self.network = copy.deepcopy(model.network).to(device=device, dtype=dtype)

    @property
    def scene(self) -> FreeScene:
        return self._scene

    @property
    def timestep(self) -> float:
        """[s]"""
        return self.model.step

    def validate(self, scene: Scene) -> Validation:
        """Free convex bodies with faces, over level ground."""
        if not isinstance(scene, FreeScene):
            return Validation(cannot=(f"scene '{scene.name}': only free bodies over level ground",))
        cannot = [
            f"body '{body.name}': shapes are {', '.join(SOLID)}, not {body.solid.kind}"
            for body in scene.bodies
            if body.solid.kind not in SOLID
        ]
        if scene.planar:
            cannot.append("bodies that glide in a plane: it was trained on bodies that fall")
        return Validation(IGNORED, tuple(cannot))

    def open(
        self,
        start: SceneState,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        bodies: Sequence[Sequence[Body]] | None = None,
    ) -> GraphRun:
        """See `Engine`."""
        self._check(start)
        own = row_values(values, len(start), self.parameters)
        if bodies is not None and (len(bodies) != len(start) or any(len(row) != len(start.bodies) for row in bodies)):
            raise CaromError(f"bodies: expected {len(start.bodies)} in each of {len(start)} rows")
        return GraphRun(self, start, self.world(own, len(start), bodies))

    def _check(self, start: SceneState) -> None:
        names = tuple(body.name for body in self._scene.bodies)
        if start.bodies != names or start.joints:
            got = ", ".join((*start.bodies, *start.joints)) or "none"
            raise CaromError(f"start: expected the bodies {', '.join(names)}, and no joints; got {got}")

    def follow(
        self,
        start: SceneState,
        steps: int,
        *,
        values: Mapping[str, ArrayLike] | None = None,
        velocity: torch.Tensor | None = None,
        spin: torch.Tensor | None = None,
        contact: Mapping[str, torch.Tensor] | None = None,
    ) -> Track:
        """So many steps from a start, as tensors that can be differentiated.

        Derivatives are those by `velocity` and `spin` [N, B, 3] (they take the place of the start's, and are of the
        centres of mass) and by parameters of the contact by name, each [N].
        """
        self._check(start)
        own = row_values(values, len(start), self.parameters)
        world = self.world(own, len(start))
        if contact:
            for name in contact:
                if name not in (*CONDITIONS, *FORMS):
                    raise CaromError(unknown_name("parameter of a contact", name, (*CONDITIONS, *FORMS)))
            found = encoded(contact_of({**own, **contact}, self.model.defaults), self.timestep, len(start))
            world = self._corrected(replace(world, conditions=found.to(dtype=self.dtype, device=self.device)))
        now = moving_of(self, world, start)
        now = replace(now, velocity=now.velocity if velocity is None else velocity.to(self.dtype))
        now = replace(now, spin=now.spin if spin is None else spin.to(self.dtype))
        return Track(*self.followed(world, now, steps))

    def followed(self, world: World, now: Moving, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Positions [N, T, B, 3] of the bodies' frames and rotations [N, T, B, 3, 3], the start's and of each step."""
        places, turns = [now.position], [now.rotation]
        for step in range(steps):
            now = self.network.advance(world, now, half=step == 0).moving
            places.append(now.position)
            turns.append(now.rotation)
        rotation = torch.stack(turns, dim=1)
        arm = torch.einsum("ntbij,nbj->ntbi", rotation, world.solids.centre)
        return torch.stack(places, dim=1) - arm, rotation

    def world(self, values: Mapping[str, Array], count: int, bodies: Sequence[Sequence[Body]] | None = None) -> World:
        """What stays the same in rows with these parameters [N], and with these bodies where they differ."""
        rows = bodies or [self._scene.bodies] * count
        made = [self._with_values(row, {n: v[i] for n, v in values.items()}) for i, row in enumerate(rows)]
        contact = contact_of(values, self.model.defaults)
        self._warn(contact, made)
        gravity = values.get("gravity", np.full(count, self._scene.gravity))
        return self._corrected(
            World(
                solids_of(made, len(self._scene.bodies), dtype=torch.float64).to(dtype=self.dtype, device=self.device),
                self.tensor(gravity),
                self.tensor(np.full(count, self._scene.ground_height)),
                encoded(contact, self.timestep, count).to(dtype=self.dtype, device=self.device),
                self.timestep,
            )
        )

    def _corrected(self, world: World) -> World:
        """Rows with the model's correction, if it has one."""
        if not self.model.correction:
            return world
        count = len(world.conditions)
        return corrected_world(world, {n: self.tensor(np.full(count, v)) for n, v in self.model.correction.items()})

    def _warn(self, contact: Mapping[str, Number], rows: Sequence[Sequence[Body]]) -> None:
        """Say what lies outside of what the network was trained with: there it guesses."""
        told = {name: np.asarray(value, dtype=float) for name, value in contact.items()}
        told["width"] = np.array([body.solid.width for row in rows for body in row])
        told["bodies"] = np.full(1, float(len(self._scene.bodies)))
        outside = []
        for name, values in told.items():
            low, high = self.model.ranges.get(name, (-np.inf, np.inf))
            least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
            if least < (1 - BEYOND) * low or most > (1 + BEYOND) * high:
                outside.append(f"{name} {least:.4g} to {most:.4g}, trained with {low:.4g} to {high:.4g}")
        if outside:
            words = "the graph simulator guesses outside of what it was trained with"
            warnings.warn(f"{words}: {'; '.join(outside)}", stacklevel=4)

    def tensor(self, values: Array) -> torch.Tensor:
        """Numbers as this engine computes with them."""
        return torch.as_tensor(values, dtype=self.dtype, device=self.device)

    def _with_values(self, row: Sequence[Body], values: Mapping[str, float | Array]) -> list[Body]:
        """The bodies of a row with the parameters that belong to them written in."""
        if not values:
            return list(row)
        offset = np.asarray(values.get("com_offset", 0.0), dtype=float)
        heavy = offset if offset.ndim else offset * np.array([1.0, 0.0, 0.0])
        plain = {name: float(v) for name, v in values.items() if name != "com_offset"}
        towards = {**plain, "com_offset": 1.0}
        none = np.zeros(3)
        return [calibrated_body(body, towards, none if i else heavy) for i, body in enumerate(row)]


def in_graph(model: MotionModel, learned: GraphModel) -> MotionModel:
    """A calibration's parameters, and what it knows of heavy sides, in a graph simulator."""
    return replace(model, engine=lambda scene, names: GraphEngine(learned, scene, names))


@dataclass(frozen=True)
class Track:
    """Where bodies go, as tensors."""

    position: torch.Tensor  #: [N, T, B, 3] of the bodies' frames [m]
    rotation: torch.Tensor  #: [N, T, B, 3, 3] world from body
