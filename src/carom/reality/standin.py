"""Stand-in realities, for demos, tests and benchmarks: strikes carried out by physics that is not MuJoCo's.

Rigid impact with friction and speed-dependent restitution, sliding on a pressure patch, a compliant arm, scatter,
and motion capture with noise and lost samples. A method that does well here has at least not been tested on the
engine it was distilled from; it is still a simulation, and a table of such results has to say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from carom.core.errors import CaromError, SceneError, unknown_name
from carom.reality.folder import check_new, write_strikes
from carom.reality.mocap import Mocap, Motion, Sampled, com_pose, record
from carom.reality.pressure_slide import Footprint, footprint, friction_acceleration, slide
from carom.reality.rigid_impact import impact, inverse_mass, restitution_at, tangent_of
from carom.reality.settings import STRIKERS, Effects, Setting, find_setting, find_shape
from carom.reality.touch import Touch, check_on_outline, flat_touch, round_touch
from carom.scenes.shapes import Body, Shape, polygon_properties
from carom.state import Array, StrikeCommands, Strikes, rotate, wrap_angle

CHUNK = 256  #: strikes worked on at once, which bounds the memory
LANDINGS = 8  #: how often the two ends of a flush face may strike in turn; what is left after that is negligible


@dataclass(frozen=True)
class Truth:
    """What really came of N strikes. Only a stand-in can tell; it is never written into the folder."""

    strikes: Strikes  #: the states at first touch, exact
    post: Array  #: [N, 3] velocity at separation of the declared centre of mass (the shape's centroid), world
    post_mass_centre: Array  #: [N, 3] the same of the true centre of mass, which the folder does not declare
    rest: Array  #: [N, 3] pose of the target's frame at rest, yaw in (-pi, pi] [m, m, rad]
    contact_point: Array  #: [N, 2] first point touched, in the target's frame [m]


@dataclass(frozen=True)
class _Scatter:
    """What is particular to each strike: factors of the impulse and both frictions, and a flat striker's yaw error."""

    impulse: Array  #: [N]
    friction: Array  #: [N]
    ground: Array  #: [N]
    facing: Array  #: [N] rad


@final
class StandIn:
    """A simulated lab: one block of one material on one ground, a striker on an arm, and motion capture.

    Build it with `standin`. It fulfils `Reality`.
    """

    def __init__(
        self, setting: Setting, shape: Shape, effects: Effects, *, striker: str, seed: int, mocap: Mocap
    ) -> None:
        if striker not in STRIKERS:
            raise SceneError(unknown_name("striker", striker, STRIKERS))
        self.setting, self.shape, self.effects = setting, shape, effects
        self.striker, self.seed, self.mocap = striker, seed, mocap
        area, centroid, second = polygon_properties(shape.planar_outline)
        self.mass = round(setting.density * area * shape.full_height, 4)
        angles = np.random.default_rng([seed, 1]).uniform(0, 2 * np.pi, 5)
        offset = effects.com_offset * np.array([np.cos(angles[0]), np.sin(angles[0])])
        self._centroid = centroid
        self._com = centroid + offset
        # A density that changes evenly across the block moves the centre and takes the offset's square off k^2.
        self._gyration = float(np.sqrt(second - effects.com_offset**2))
        self._tilt = effects.pressure_tilt * np.array([np.cos(angles[1]), np.sin(angles[1])])
        self._phases, self._arm_angle = angles[2:4], float(angles[4])
        self._base = self._footprint(offset)

    def _footprint(self, offset: Array) -> Footprint:
        """The base, with the pressure's centre under the true centre of mass and a further tilt."""
        outline = self.shape.planar_outline
        even = footprint(outline, self._centroid, self._gyration)
        spread = np.einsum("q,qi,qj->ij", even.share, even.points, even.points)
        reach = float(np.linalg.norm(outline - self._centroid, axis=1).max())
        gradient = np.linalg.solve(spread, offset) + self._tilt / reach
        rise = self.setting.ground_rise
        return footprint(outline, self._com, self._gyration, gradient=gradient, rise=rise)

    @property
    def com_offset(self) -> Array:
        """The true centre of mass from the declared one, in the block's frame [2] [m]. Only a stand-in can tell."""
        return np.asarray(self._com - self._centroid)

    @property
    def bodies(self) -> dict[str, Body]:
        """The bodies as the folders declare them."""
        return {
            "block": Body("block", "target", self.shape, mass=self.mass),
            "striker": Body("striker", "striker", STRIKERS[self.striker]),
        }

    def execute(self, commands: StrikeCommands, folder: str | Path, *, seed: int) -> Path:
        """Carry out the strikes and write the recordings; the same seed gives the same bytes."""
        folder = Path(folder)
        check_new(folder)
        tags = {
            "reality": f"stand-in {self.setting.name}",
            "material": self.setting.material,
            "ground": self.setting.ground,
        }
        return write_strikes(folder, self.bodies, self._sample(commands, seed), tags)

    def truth(self, commands: StrikeCommands, *, seed: int, scatter: bool = True) -> Truth:
        """What really comes of the strikes that `execute` carries out with that seed.

        Without `scatter` the strikes land the same but every impulse and friction is the mean one: the best that
        anyone could predict.
        """
        parts = []
        for start in range(0, len(commands), CHUNK):
            chunk = commands[start : start + CHUNK]
            touch, motion = self._motion(chunk, self._scatter(seed, start, len(chunk), scatter))
            parts.append(self._truth(touch, motion))
        if not parts:
            raise CaromError("commands: expected at least one strike, got none")
        rows = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        still = np.zeros_like(rows[0])
        return Truth(Strikes(rows[0], still, rows[1], rows[2]), *rows[3:])

    def _sample(self, commands: StrikeCommands, seed: int) -> list[Sampled]:
        if not len(commands):
            raise CaromError("commands: expected at least one strike, got none")
        heights = (self.shape.full_height / 2, STRIKERS[self.striker].full_height / 2)
        sampled: list[Sampled] = []
        for start in range(0, len(commands), CHUNK):
            chunk = commands[start : start + CHUNK]
            _, motion = self._motion(chunk, self._scatter(seed, start, len(chunk), True))
            streams = [self._stream(seed, index, 1) for index in range(start, start + len(chunk))]
            sampled += record(motion, heights, streams, self.mocap)
        return sampled

    def _stream(self, seed: int, index: int, purpose: int) -> np.random.Generator:
        sequence = np.random.SeedSequence([self.seed, seed], spawn_key=(index, purpose))
        return np.random.Generator(np.random.PCG64(sequence))

    def _scatter(self, seed: int, start: int, count: int, scatter: bool) -> _Scatter:
        draw = np.array([self._stream(seed, i, 0).standard_normal(4) for i in range(start, start + count)])
        # Three standard deviations are the most a strike may stray, so that no draw makes an absurd one.
        draw = np.clip(draw, -3, 3)
        impulse, friction = (self.effects.impulse_scatter, self.effects.friction_scatter) if scatter else (0.0, 0.0)
        return _Scatter(
            1 + impulse * draw[:, 0],
            1 + friction * draw[:, 1],
            1 + friction * draw[:, 2],
            self.effects.facing_error * draw[:, 3],
        )

    def _motion(self, commands: StrikeCommands, scatter: _Scatter) -> tuple[Touch, Motion]:
        """Touch (in the target's frame) and true motion (in the world's) of a chunk of strikes."""
        points, normal = check_on_outline(self.shape, commands.contact_point, commands.velocity)
        if self.striker == "flat":
            depth, width, _ = STRIKERS["flat"].size
            yaw = np.arctan2(normal[:, 1], normal[:, 0]) + scatter.facing
            touch = flat_touch(self.shape, points, yaw, commands.velocity, width=width, depth=depth)
        else:
            touch = round_touch(points, normal, radius=float(STRIKERS["round"].radius or 0.0))
        pose = commands.target_pose
        turn = pose[:, 2]
        struck, recoil = self._blow(touch, commands.velocity, turn, scatter)
        ground = self.setting.ground_friction * scatter.ground
        duration = self.effects.contact_duration
        separation = _to_world(self._dragged(struck, ground, duration), turn)
        start = com_pose(pose, self._com) + separation * duration / 2
        striker = np.concatenate([pose[:, :2] + rotate(touch.striker[:, :2], turn), touch.striker[:, 2:]], axis=1)
        striker[:, 2] += turn
        return touch, Motion(
            target_pose=pose,
            com=self._com,
            striker_pose=striker,
            striker_before=rotate(commands.velocity, turn),
            striker_after=rotate(recoil, turn),
            separation=separation,
            duration=duration,
            slide=slide(self._base, start, separation, ground),
        )

    def _blow(self, touch: Touch, velocity: Array, turn: Array, scatter: _Scatter) -> tuple[Array, Array]:
        """Velocities of the centre of mass [N, 3] and of the striker [N, 2] after the blow, in the target's frame."""
        inertia = self.mass * self._gyration**2
        held = self._striker_inverse(turn)
        target, striker = np.zeros((len(velocity), 3)), velocity.copy()
        frame = np.stack([tangent_of(touch.normal), touch.normal], axis=-2)
        friction = self.setting.friction * scatter.friction
        for landing in range(LANDINGS if touch.flush.any() else 1):
            lever = touch.points[:, 2 - landing % 2 if landing else 0] - self._com
            at_contact = target[:, :2] + target[:, 2:] * np.stack([-lever[:, 1], lever[:, 0]], axis=-1)
            relative = np.einsum("nai,ni->na", frame, at_contact - striker)
            if landing:
                relative[~touch.flush] = 0.0  # only a flush face can land again
            inverse = inverse_mass(touch.normal, lever, mass=self.mass, inertia=inertia, striker=held)
            e = self._restitution(lever, -relative[:, 1])
            blow = impact(relative, inverse, friction=friction, restitution=e)
            impulse = np.einsum("na,nai->ni", blow.impulse * scatter.impulse[:, None], frame)
            target[:, :2] += impulse / self.mass
            target[:, 2] += (lever[:, 0] * impulse[:, 1] - lever[:, 1] * impulse[:, 0]) / inertia
            striker = striker - np.einsum("nij,nj->ni", held, impulse)
        return target, striker

    def _striker_inverse(self, turn: Array) -> Array:
        """Inverse effective mass of the striker [N, 2, 2] in the frames of targets turned by `turn` [N] [1/kg]."""
        if self.effects.striker_mass is None:
            return np.zeros((len(turn), 2, 2))
        angle = self._arm_angle - turn
        first = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        second = np.stack([-first[:, 1], first[:, 0]], axis=-1)
        light, heavy = self.effects.striker_mass
        outer = [axis[:, :, None] * axis[:, None, :] for axis in (first, second)]
        return np.asarray(outer[0] / light + outer[1] / heavy)

    def _restitution(self, lever: Array, speed: Array) -> Array:
        """Restitution [N] at contacts seen from the centre of mass, at normal approach speeds [N] [m/s]."""
        around = np.arctan2(lever[:, 1], lever[:, 0])
        # Two harmonics with weights that add to one: together never more than the stated variation.
        wave = 0.6 * np.cos(around - self._phases[0]) + 0.4 * np.cos(2 * around - self._phases[1])
        e0 = self.setting.restitution * (1 + self.effects.restitution_variation * wave)
        soft = 1 - self.effects.pads * np.cos(around) ** 2  # most at the two ends, nothing in the middle
        return soft * restitution_at(speed, e0=e0, exponent=self.setting.restitution_exponent)

    def _dragged(self, velocity: Array, ground: Array, duration: float) -> Array:
        """Velocity [N, 3] at separation, after the ground has dragged for the second half of the contact.

        In the first half the striker still pushes and makes up for the drag; while the two part, nothing does.
        """
        pull = friction_acceleration(self._base, np.zeros(len(velocity)), velocity, ground) * duration / 2
        lever = np.array([1.0, 1.0, self._gyration])
        share = np.linalg.norm(pull * lever, axis=1) / np.maximum(np.linalg.norm(velocity * lever, axis=1), 1e-12)
        return np.asarray(velocity + pull * np.minimum(1.0, 0.5 / np.maximum(share, 1e-12))[:, None])

    def _truth(self, touch: Touch, motion: Motion) -> tuple[Array, ...]:
        """Rows of target pose, striker pose, striker velocity, post, post of the mass centre, rest, contact point."""
        lever = rotate(self._centroid - self._com, motion.target_pose[:, 2])
        post = motion.separation.copy()
        post[:, :2] += motion.separation[:, 2:] * np.stack([-lever[:, 1], lever[:, 0]], axis=-1)
        rest = motion.target_at(motion.rest_time[:, None])[:, 0]
        rest[:, 2] = wrap_angle(rest[:, 2])
        striker = np.concatenate([motion.striker_before, np.zeros((len(rest), 1))], axis=1)
        return motion.target_pose, motion.striker_pose, striker, post, motion.separation, rest, touch.points[:, 0]


def _to_world(velocity: Array, turn: Array) -> Array:
    return np.concatenate([rotate(velocity[:, :2], turn), velocity[:, 2:]], axis=1)


def standin(
    setting: str,
    shape: str | Shape | ArrayLike = "semi-cylinder",
    *,
    seed: int,
    effects: Effects | None = None,
    striker: str = "round",
    mocap: Mocap | None = None,
) -> StandIn:
    """The stand-in for a setting (a name of `SETTINGS`) and a shape (a name of `SHAPES`, a Shape, or an outline).

    `effects` replaces the setting's own; `striker` is "round" or "flat"; `seed` draws what the setting leaves open:
    to which side the mass is off, how restitution varies around the block, how the arm stands.

    >>> standin("resin-high", seed=0).mass
    0.2256
    """
    chosen = find_setting(setting)
    return StandIn(
        chosen,
        find_shape(shape),
        chosen.effects if effects is None else effects,
        striker=striker,
        seed=seed,
        mocap=Mocap() if mocap is None else mocap,
    )
