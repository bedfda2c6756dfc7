"""Arms with motors off that strike a block: spatial and planar ones of any mass, in any posture, at any speed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from carom.engines.contact_frames import contact_frames
from carom.hybrid.step import HybridStep, ImpactEvent
from carom.learn.impact.adapted_model import Prediction
from carom.scenes.strike import Striker, StrikeScene, builtin
from carom.state import Array, Strikes

HEIGHT, RADIUS, GAP = 0.025, 0.02, 1e-5  #: [m] of the contact, of the tool, between them at the start
KINDS = ("planar", "spatial", "free")


@dataclass(frozen=True)
class Arm:
    """How an arm strikes."""

    kind: str = "planar"  #: two upright hinges; or a turning base with two lying ones; or a tool that flies
    tip: float = 0.38  #: mass of the tool [kg]
    link: float = 0.05  #: mass of each link [kg]
    posture: tuple[float, float] = (0.5, -1.2)  #: of the two last joints [rad]
    yaw: float = 0.0  #: of the block [rad]
    offset: float = 0.0  #: of the contact along the block's side [m]
    speed: float = 0.5  #: of the tool [m/s]
    deflection: float = 0.0  #: of its velocity from the normal [rad]
    moving: tuple[float, float, float] = (0.0, 0.0, 0.0)  #: velocity of the block [m/s, m/s, rad/s]


@dataclass(frozen=True)
class Rule:
    """A rigid impact by a striker of the scene's mass: restitution, impulse ratio, and a couple at the contact."""

    scene: StrikeScene
    restitution: float = 0.6
    ratio: float = 0.0  #: of the tangential to the normal impulse
    couple: float = 0.0  #: over the normal impulse [m]
    gain: float = 1.0  #: 1 is physics

    def predict(self, strikes: Strikes) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        m, k2 = self.scene.mass, self.scene.gyration_radius**2
        along = np.array([self.ratio, 1.0])
        turn = frames.lever[:, 0] * along[1] - frames.lever[:, 1] * along[0] + self.couple
        parting = (1 / m + 1 / self.scene.striker_mass) + frames.lever[:, 0] * turn / (m * k2)
        push = self.gain * (1 + self.restitution) * frames.velocity[:, 1] / parting
        linear = np.einsum("nai,a->ni", frames.axes, along) * push[:, None] / m
        change = np.column_stack([linear, push * turn / (m * k2)])
        return Prediction(strikes.target_velocity + change, np.zeros_like(change), np.ones(len(strikes)))


@dataclass(frozen=True)
class Blow:
    """What a strike came to: kinetic energies [J], and speeds along the normal [m/s]."""

    event: ImpactEvent
    before: float
    after: float
    approach: float
    separation: float
    target_momentum: Array  #: [3] gained by the block: x, y [N s], about the vertical at the contact [N m s]
    arm_momentum: Array  #: [nv] gained by the joints
    arm_expected: Array  #: [nv] that the reaction to the block's gain gives

    @property
    def growth(self) -> float:
        return (self.after - self.before) / self.before

    @property
    def restitution(self) -> float:
        return self.separation / self.approach


def scene_for(arm: Arm, *, held: bool = True) -> StrikeScene:
    """The scene that the model has learned: the square, and a striker held stiffly or of 1.5 kg."""
    scene = replace(builtin("square"), speed=(0.1, 3.0))
    return scene if held else replace(scene, striker=Striker(radius=RADIUS, mass=1.5))


def lab(arm: Arm) -> mujoco.MjSpec:
    """A block on smooth ground and an arm whose tool is a hair away from it, on its way."""
    touching = rotated(np.array([-0.04 - RADIUS - GAP, arm.offset]), arm.yaw)
    link = f'<geom type="capsule" fromto="0 0 0 .25 0 0" size=".012" mass="{arm.link}" contype="0" conaffinity="0"/>'
    tool = f'<geom name="tool" type="sphere" size="{RADIUS}" mass="{arm.tip}" condim="1"/>'
    tip = f'<body name="tool" pos=".25 0 0" gravcomp="1">{tool}</body>'
    if arm.kind == "free":
        body = f'<body name="tool" gravcomp="1"><freejoint/>{tool}</body>'
    else:
        axis = "0 0 1" if arm.kind == "planar" else "0 1 0"
        base = "" if arm.kind == "planar" else '<joint name="base" axis="0 0 1"/>'
        body = f"""<body name="upper" gravcomp="1">{base}<joint name="shoulder" axis="{axis}"/>{link}
          <body name="lower" pos=".25 0 0" gravcomp="1"><joint name="elbow" axis="{axis}"/>{link}{tip}</body></body>"""
    spec = mujoco.MjSpec.from_string(f"""<mujoco><option timestep="2e-6"/><worldbody>
        <geom type="plane" size="2 2 .1" condim="1"/>
        <body name="block" pos="0 0 .025" euler="0 0 {np.degrees(arm.yaw)}"><freejoint/>
          <geom name="block" type="box" size=".04 .04 .025" mass=".25" condim="1"/></body>
        {body}</worldbody></mujoco>""")
    # the arm stands where its tool, in this posture, is at the block
    model = spec.compile()
    data = mujoco.MjData(model)
    _pose(model, data, arm)
    mujoco.mj_forward(model, data)
    first = spec.body("tool" if arm.kind == "free" else "upper")
    first.pos = np.array([*touching, HEIGHT]) - data.body("tool").xpos
    return spec


def strike(arm: Arm, rule: Rule) -> Blow | None:
    """The blow of an arm, by a rule; None if the posture cannot strike that way."""
    hybrid = HybridStep(rule, rule.scene)
    model = hybrid.attach(lab(arm), target="block", striker="tool")
    data = mujoco.MjData(model)
    _pose(model, data, arm)
    mujoco.mj_forward(model, data)
    normal = rotated(np.array([1.0, 0.0]), arm.yaw)
    wanted = arm.speed * rotated(normal, arm.deflection)
    _, striker, _ = _jacobians(model, data, data.body("tool").xpos)
    wide = striker if arm.kind != "planar" else striker[:2]
    data.qvel[:] = np.linalg.lstsq(wide, np.array([*wanted, 0.0])[: len(wide)], rcond=1e-6)[0]
    data.qvel[:2], data.qvel[5] = arm.moving[:2], arm.moving[2]
    if np.linalg.norm((striker @ data.qvel)[:2] - wanted) > 1e-6 or np.abs(data.qvel).max() > 60:
        return None  # a singular posture
    for _ in range(400):
        held, where = data.qvel.copy(), data.qpos.copy()
        hybrid.step(model, data)
        if hybrid.log:
            break
    else:
        return None  # it misses: a block that moves away
    after = data.qvel.copy()
    data.qpos[:] = where  # at one instant: the step itself moved both by some micrometres
    mujoco.mj_forward(model, data)
    return _judged(model, data, hybrid.log[0], (held, after), normal)


def _judged(model, data, event: ImpactEvent, velocities: tuple[Array, Array], normal: Array) -> Blow:
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass)
    energies = [0.5 * v @ mass @ v for v in velocities]
    target, striker, turning = _jacobians(model, data, event.point)
    closing = [float(normal @ (striker - target)[:2] @ v) for v in velocities]
    gained = mass @ (velocities[1] - velocities[0])
    arm = event.point - data.body("block").xpos
    linear, about = gained[:3], data.body("block").xmat.reshape(3, 3) @ gained[3:6] - np.cross(arm, gained[:3])
    expected = -(linear[:2] @ striker[:2] + about[2] * turning[2])
    block = np.array([*linear[:2], about[2]])
    return Blow(event, *energies, closing[0], -closing[1], block, gained[6:], expected[6:])


def _jacobians(model, data, point: Array) -> tuple[Array, Array, Array]:
    """Velocity of the block's and the tool's points there [3, nv], and of the tool's turning [3, nv]."""
    target, striker, turning = (np.zeros((3, model.nv)) for _ in range(3))
    mujoco.mj_jac(model, data, target, None, point, model.body("block").id)
    mujoco.mj_jac(model, data, striker, turning, point, model.body("tool").id)
    return target, striker, turning


def _pose(model, data, arm: Arm) -> None:
    if arm.kind != "free":
        data.qpos[-2:] = arm.posture


def rotated(vector: Array, angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]])


def random_arm(rng: np.random.Generator) -> tuple[Arm, Rule]:
    """Any arm of 0.1 to 10 kg, and any rule, some of them beyond what physics allows."""
    total = float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
    share = float(rng.uniform(0.2, 0.95))
    kind = KINDS[rng.integers(len(KINDS))]
    links = 0.0 if kind == "free" else (1 - share) * total / 2
    moving = rng.uniform(-1, 1, 3) * [0.05, 0.05, 0.5] * rng.integers(0, 2)
    arm = Arm(
        kind=kind,
        tip=total - 2 * links,
        link=max(links, 1e-3),
        posture=(float(rng.uniform(-1.2, 1.2)), float(rng.choice([-1, 1]) * rng.uniform(0.3, 2.6))),
        yaw=float(rng.uniform(-np.pi, np.pi)),
        offset=float(rng.uniform(-0.036, 0.036)),
        speed=float(rng.uniform(0.2, 2.0)),
        deflection=float(rng.uniform(-0.6, 0.6)),
        moving=(float(moving[0]), float(moving[1]), float(moving[2])),
    )
    rule = Rule(
        scene_for(arm, held=bool(rng.integers(2))),
        restitution=float(rng.uniform(0, 1.0)),
        ratio=float(rng.uniform(-0.6, 0.6)),
        couple=float(rng.uniform(-0.01, 0.01) * rng.integers(0, 2)),
        gain=1.0 if rng.random() < 0.7 else float(rng.uniform(0.2, 3.0)),
    )
    return arm, rule
