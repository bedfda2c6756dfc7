"""The learned impact in a user's own loop: when, what comes of it, and that everything else is MuJoCo's."""

import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from carom.core.errors import CaromError, SceneError
from carom.engines.contact_frames import contact_frames
from carom.hybrid.step import HybridStep
from carom.learn.impact.adapted_model import Prediction
from carom.scenes.strike import Striker, builtin
from carom.state import Strikes

SQUARE = builtin("square")
BLOCK = '<geom name="block" type="box" size=".04 .04 .025" mass=".25" {surface}/>'


class Bounce:
    """Frictionless rigid impact with restitution 0.6 on a striker of the scene's mass; `gain` 1 is physics."""

    def __init__(self, scene, gain=1.0, known=1.0):
        self.scene, self.gain, self.known, self.asked = scene, gain, known, []

    def predict(self, strikes: Strikes) -> Prediction:
        self.asked.append(strikes)
        frames = contact_frames(self.scene, strikes)
        k2, lever, mass = self.scene.gyration_radius**2, frames.lever[:, 0], self.scene.mass / self.scene.striker_mass
        gain = self.gain * 1.6 * frames.velocity[:, 1] / (1 + mass + lever**2 / k2)
        change = np.column_stack([gain[:, None] * frames.axes[:, 1], gain * lever / k2])
        return Prediction(strikes.target_velocity + change, np.zeros((1, 3)), np.array([self.known]))


def lab(
    *,
    start=-0.1,
    offset=0.0,
    surface='friction=".3"',
    step=0.002,
    tool_mass=1000.0,
    target=BLOCK,
    extra="",
    integrator="Euler",
) -> mujoco.MjSpec:
    """A table, a block, a tool on two slides, and a cup that has nothing to do with it."""
    return mujoco.MjSpec.from_string(f"""<mujoco>
      <option timestep="{step}" integrator="{integrator}" cone="elliptic"/>
      <worldbody>
        <geom name="floor" type="plane" size="2 2 .1" {surface}/>
        <body name="block" pos="0 0 .025"><freejoint name="block"/>{target.format(surface=surface)}</body>
        <body name="tool" pos="{start} {offset} .025" gravcomp="1">
          <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
          <geom name="tool" type="sphere" size=".02" mass="{tool_mass}" {surface}/>
        </body>
        <body name="cup" pos="0 .5 .1"><freejoint name="cup"/><geom type="cylinder" size=".03 .05" mass=".1"/></body>
      </worldbody>
      <actuator><motor name="push" joint="x"/><velocity name="speed" joint="x" kv="{200 * tool_mass}"/></actuator>
      {extra}
    </mujoco>""")


SMOOTH = 'condim="1"'


def ready(spec, model=None, scene=SQUARE, *, free=True):
    """The hybrid, its model and data; `free`: the tool flies on as it is."""
    hybrid = HybridStep(model or Bounce(scene), scene)
    compiled = hybrid.attach(spec, target="block", striker="tool")
    if free:
        compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    return hybrid, compiled, mujoco.MjData(compiled)


def run(hybrid, model, data, until):
    while data.time < until - 1e-9:
        hybrid.step(model, data)


def centre_velocity(model, data, name="block"):
    """Velocity of a body's actual centre of mass and its spin, by MuJoCo's own account."""
    mujoco.mj_forward(model, data)
    mujoco.mj_subtreeVel(model, data)
    body = model.body(name).id
    twist = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, twist, 0)
    return np.array([*data.subtree_linvel[body][:2], twist[2]])


def contact_error(step, start):
    """Error of the contact time of a tool that is pushed with 5 m/s^2 from rest [s]; RK4 itself makes none."""
    hybrid, model, data = ready(lab(step=step, start=start, integrator="RK4"), free=False)
    model.actuator_gainprm[1], model.actuator_biasprm[1] = 0, 0
    data.ctrl[0] = 5.0 * 1000
    exact = np.sqrt(2 * (-start - 0.06) / 5.0)
    run(hybrid, model, data, exact + 2 * step)
    return abs(hybrid.log[0].time - exact)


def test_the_contact_time_converges_and_is_far_below_a_step():
    starts = -0.06 - np.linspace(0.04, 0.05, 7)
    errors = [max(contact_error(step, start) for start in starts) for step in (0.008, 0.004, 0.002)]
    assert errors[2] < 2e-3 * 0.002
    assert errors[0] > 3 * errors[1] > 9 * errors[2]


def test_a_tool_at_constant_speed_meets_the_block_when_it_should():
    hybrid, model, data = ready(lab(step=0.003))
    data.qvel[6] = 0.5
    run(hybrid, model, data, 0.09)
    assert hybrid.log[0].time == pytest.approx(0.04 / 0.5, abs=1e-9)
    assert hybrid.log[0].point == pytest.approx([-0.04, 0.0, 0.025], abs=1e-5)


def test_time_advances_exactly_and_the_time_step_is_restored():
    hybrid, model, data = ready(lab(step=0.0017))
    data.qvel[6], expected = 0.5, 0.0
    for _ in range(100):
        hybrid.step(model, data)
        expected += 0.0017
        assert data.time == expected
        assert model.opt.timestep == 0.0017
    assert len(hybrid.log) == 1


def test_the_time_step_is_restored_when_the_model_raises():
    class Broken:
        def predict(self, strikes):
            raise RuntimeError("broken")

    hybrid, model, data = ready(lab(), Broken())
    data.qvel[6] = 0.5
    with pytest.raises(RuntimeError, match="broken"):
        run(hybrid, model, data, 0.2)
    assert model.opt.timestep == 0.002


@pytest.mark.parametrize("offset", [0.0, 0.012])
def test_the_outcome_is_the_predicted_one(offset):
    hybrid, model, data = ready(lab(offset=offset, surface=SMOOTH))
    data.qvel[6] = 0.5
    run(hybrid, model, data, 0.084)
    k2 = SQUARE.gyration_radius**2
    gain = 1.6 * 0.5 / (1 + SQUARE.mass / 1000 + offset**2 / k2)
    expected = [gain, 0.0, -gain * offset / k2]
    assert hybrid.log[0].post == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert centre_velocity(model, data) == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert data.qpos[0] > 0.7 * gain * (0.084 - 0.08)  # it has moved for the rest of the step, too


def test_the_centre_of_mass_may_be_off_the_bodys_frame_and_the_block_turned():
    scene = replace(builtin("semi-cylinder"), striker=Striker(radius=0.02, mass=1.0))
    outline = scene.outline.vertices
    points = " ".join(f"{x} {y} {z}" for z in (-0.025, 0.025) for x, y in outline)
    extra = f'<asset><mesh name="half" vertex="{points}" inertia="convex"/></asset>'
    shape = '<geom name="block" type="mesh" mesh="half" mass=".15" {surface}/>'
    hybrid, model, data = ready(lab(offset=0.005, surface=SMOOTH, tool_mass=1, target=shape, extra=extra), None, scene)
    data.qpos[3:7] = [np.cos(0.8), 0, 0, np.sin(0.8)]  # its arc looks at the tool
    data.qvel[0], data.qvel[5] = -0.05, 0.3
    data.qvel[6:8] = 0.5, 0.0
    run(hybrid, model, data, 0.2)
    asked = hybrid.impact_model.asked[0]
    spin, turned = 0.3, 1.6 + 0.3 * hybrid.log[0].time
    com = scene.target.planar_com[1] * np.array([-np.sin(turned), np.cos(turned)])
    # the centre of mass goes straight on before the impact
    at_start = scene.target.planar_com[1] * np.array([-np.sin(1.6), np.cos(1.6)])
    before = np.array([-0.05, 0.0]) + spin * np.array([-at_start[1], at_start[0]])
    assert np.linalg.norm(com) > 0.02
    assert asked.target_pose[0, 2] == pytest.approx(turned, abs=1e-6)
    assert asked.target_velocity[0] == pytest.approx([*before, spin], abs=1e-4)
    assert abs(hybrid.log[0].post[2] - spin) > 0.1
    assert centre_velocity(model, data) == pytest.approx(hybrid.log[0].post, abs=2e-4)
    momentum = 0.15 * centre_velocity(model, data)[:2] + data.qvel[6:8]
    assert momentum == pytest.approx(0.15 * before + [0.5, 0.0], abs=1e-4)


def test_a_flat_face_strikes_a_flat_side():
    scene = replace(SQUARE, striker=Striker(width=0.04))
    spec = lab(surface=SMOOTH)
    face = spec.geom("tool")
    face.type, face.size, face.pos = mujoco.mjtGeom.mjGEOM_BOX, [0.01, 0.02, 0.002], [-0.01, 0, 0]
    hybrid, model, data = ready(spec, None, scene)
    data.qvel[6] = 0.5
    run(hybrid, model, data, 0.13)
    assert [event.kind for event in hybrid.log] == ["learned"]
    assert hybrid.log[0].time == pytest.approx(0.06 / 0.5, abs=1e-8)
    assert hybrid.log[0].point[1] == pytest.approx(0.0, abs=1e-9)  # the middle of the points of the face
    assert centre_velocity(model, data) == pytest.approx([0.8, 0, 0], abs=1e-3)


def test_the_block_stays_on_the_ground():
    hybrid, model, data = ready(lab(surface=SMOOTH))
    run(hybrid, model, data, 0.1)
    height = data.qpos[2]
    data.qpos[7], data.qvel[6] = 0.0, 0.5
    while data.time < 0.5:
        hybrid.step(model, data)
        assert abs(data.qpos[2] - height) < 1e-4
    assert data.qpos[0] > 0.1


def test_with_friction_the_block_slides_as_mujocos_would_with_that_velocity():
    spec = lab(start=-0.09)
    hybrid, model, data = ready(spec)
    plain = spec.compile()
    reference = mujoco.MjData(plain)
    data.qvel[6] = 0.5
    run(hybrid, model, data, 0.06)  # they touch at 0.06 s
    while reference.time < 0.06 - 1e-9:
        mujoco.mj_step(plain, reference)
    hybrid.step(model, data)
    reference.qvel[0], reference.qpos[7] = hybrid.log[0].post[0], -1.0
    mujoco.mj_step(plain, reference)
    data.qpos[7] = -1.0
    for _ in range(100):
        hybrid.step(model, data)
        mujoco.mj_step(plain, reference)
        assert abs(data.qpos[2] - reference.qpos[2]) < 1e-4
        assert abs(data.qpos[0] - reference.qpos[0]) < 2e-3


def test_the_reaction_conserves_momentum():
    scene = replace(SQUARE, striker=Striker(radius=0.02, mass=1.0))
    hybrid, model, data = ready(lab(tool_mass=1.0, offset=0.01, surface=SMOOTH), None, scene)
    data.qvel[6:8] = 0.5, 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(hybrid, model, data, 0.12)
    assert hybrid.log[0].kind == "learned"
    assert data.qvel[6] < 0.45
    momentum = 0.25 * centre_velocity(model, data)[:2] + 1.0 * data.qvel[6:8]
    assert momentum == pytest.approx([0.5, 0.05], abs=1e-6)


def test_a_striker_lighter_than_the_learned_one_warns_once():
    hybrid, model, data = ready(lab(tool_mass=0.5))
    data.qvel[6] = 0.5
    with pytest.warns(UserWarning, match=r"weighs 0\.5 kg at the contact, the scene's 1e\+03 kg") as caught:
        run(hybrid, model, data, 0.2)
    assert len(caught) == 1


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
def test_without_a_contact_it_is_mj_step_to_the_last_bit(integrator):
    spec = lab(integrator=integrator)
    hybrid, model, data = ready(spec, free=False)
    plain = spec.compile()
    reference = mujoco.MjData(plain)
    for d in (data, reference):
        d.qvel[:6] = 0.3, 0.1, 0, 0, 0, 2.0
        d.qvel[-6:] = 0.1, -0.2, 0, 3.0, 1.0, 0.5
    for i in range(300):
        data.ctrl[1] = reference.ctrl[1] = 0.05 * np.sin(0.05 * i)
        hybrid.step(model, data)
        mujoco.mj_step(plain, reference)
        assert data.time == reference.time
        assert (data.qpos == reference.qpos).all()
        assert (data.qvel == reference.qvel).all()
    assert not hybrid.log
    assert len(reference.contact) > 2


def test_other_bodies_do_as_they_would_while_a_block_is_struck():
    spec = lab()
    hybrid, model, data = ready(spec)
    plain = spec.compile()
    reference = mujoco.MjData(plain)
    for d in (data, reference):
        d.qvel[6], d.qvel[-6:] = 0.5, [0.1, -0.2, 0, 0, 0, 0.5]
    reference.qpos[7] = -1.0  # no strike there
    run(hybrid, model, data, 0.1)
    while reference.time < 0.1 - 1e-9:
        mujoco.mj_step(plain, reference)
    assert len(hybrid.log) == 1
    assert data.qpos[-7:] == pytest.approx(reference.qpos[-7:], abs=2e-4)


def test_a_control_callback_acts_as_with_mj_step():
    hybrid, model, data = ready(lab(), free=False)

    def control(_model, d):
        d.ctrl[1] = 0.5

    mujoco.set_mjcb_control(control)
    try:
        run(hybrid, model, data, 0.2)
    finally:
        mujoco.set_mjcb_control(None)
    assert hybrid.log[0].kind == "learned"


def test_an_unknown_strike_is_left_to_mujoco():
    spec = lab()
    hybrid, model, data = ready(spec, Bounce(SQUARE, known=0.0))
    plain = spec.compile()
    plain.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_ACTUATION
    reference = mujoco.MjData(plain)
    data.qvel[6] = reference.qvel[6] = 0.5
    run(hybrid, model, data, 0.12)
    while reference.time < 0.12 - 1e-9:
        mujoco.mj_step(plain, reference)
    assert [event.kind for event in hybrid.log] == ["engine"]
    assert hybrid.from_engine == 1
    assert "learned" in hybrid.log[0].reason
    assert np.isnan(hybrid.log[0].post).all()
    assert reference.qvel[0] > 0.2
    assert data.qvel[0] == pytest.approx(reference.qvel[0], rel=0.03)
    assert data.qpos[0] == pytest.approx(reference.qpos[0], rel=0.05)


def test_an_outcome_that_is_not_finite_is_left_to_mujoco():
    hybrid, model, data = ready(lab(), Bounce(SQUARE, gain=np.nan))
    data.qvel[6] = 0.5
    run(hybrid, model, data, 0.12)
    assert hybrid.from_engine == 1
    assert np.isfinite(data.qpos).all()


@pytest.mark.parametrize("speed", [0.05, 0.5])
def test_a_tool_that_keeps_pushing_ends_in_mujocos_contact(speed):
    hybrid, model, data = ready(lab(), Bounce(SQUARE, gain=1 / 1.6), free=False)  # no restitution: they stay together
    data.ctrl[1] = speed
    run(hybrid, model, data, 0.04 / speed + 0.3)
    kinds = [event.kind for event in hybrid.log]
    assert kinds == (["engine"] if speed < 0.1 else ["learned", "engine"])
    assert data.qpos[0] > 0.9 * 0.3 * speed
    gap = (data.body("block").xpos[0] - 0.04) - (data.body("tool").xpos[0] + 0.02)
    assert -1e-3 < gap < 3e-3


def test_a_block_that_cannot_get_away_is_not_struck_for_ever():
    hybrid, model, data = ready(lab(step=0.0005))
    data.qvel[6] = 0.5
    while data.time < 0.1:
        hybrid.step(model, data)
        data.qvel[:6] = 0.0  # something holds it
    assert [event.kind for event in hybrid.log] == ["learned", "learned", "engine"]
    assert "third touch" in hybrid.log[2].reason


def test_two_strikes_in_one_run_and_an_engine_strike_does_not_stay():
    rule = Bounce(SQUARE)
    hybrid, model, data = ready(lab(), rule)
    for known in (1.0, 0.0, 1.0):
        rule.known = known
        data.qpos[7:9], data.qvel[6:8] = [data.qpos[0] - 0.09 + 0.1, data.qpos[1]], [0.5, 0.0]  # 3 cm before it
        met = len(hybrid.log)
        while len(hybrid.log) == met:
            hybrid.step(model, data)
        for _ in range(20):
            hybrid.step(model, data)
        data.qpos[7], data.qvel[6] = -1.0, 0.0  # draws back
        run(hybrid, model, data, data.time + 0.5)
    assert [event.kind for event in hybrid.log] == ["learned", "engine", "learned"]
    assert hybrid.log[2].post[0] == pytest.approx(0.8, rel=0.02)


def test_bodies_that_overlap_at_the_start_strike_at_once():
    hybrid, model, data = ready(lab(start=-0.0595))
    data.qvel[6] = 0.5
    hybrid.step(model, data)
    assert hybrid.log[0].time == 0.0
    assert data.qvel[0] == pytest.approx(0.8, rel=0.05)
    assert data.time == 0.002


def test_an_outcome_that_creates_energy_is_corrected_and_counted():
    hybrid, model, data = ready(lab(surface=SMOOTH), Bounce(SQUARE, gain=3.0))
    data.qvel[6] = 0.5
    run(hybrid, model, data, 0.09)
    assert hybrid.guarded == 1
    assert hybrid.log[0].guarded
    assert hybrid.log[0].post[0] == pytest.approx(1.0, rel=1e-3)  # elastic: twice the speed of what is far heavier
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-3)


def test_a_tool_from_above_is_left_to_mujoco():
    hybrid, model, data = ready(lab(start=0.0))
    data.qpos[2] = 0.2  # the block falls onto the tool
    run(hybrid, model, data, 0.4)
    assert hybrid.log[0].kind == "engine"
    assert "above" in hybrid.log[0].reason
    assert data.qpos[2] > 0.03


def test_a_reset_of_the_data_gives_the_contact_back_to_the_model():
    rule = Bounce(SQUARE, known=0.0)
    hybrid, model, data = ready(lab(start=-0.0605), rule)  # so near that they never count as parted
    for known, kind in ((0.0, "engine"), (1.0, "learned")):
        rule.known = known
        mujoco.mj_resetData(model, data)
        data.qvel[6] = 0.5
        run(hybrid, model, data, 0.01)
        assert hybrid.log[-1].kind == kind
    assert len(hybrid.log) == 2


def test_contacts_are_seen_once_and_make_no_force():
    _, model, data = ready(lab(start=-0.058))
    mujoco.mj_forward(model, data)
    tool = [c for c in data.contact if model.geom("tool").id in c.geom]
    assert len(tool) == 1
    assert tool[0].dist == pytest.approx(-0.002)
    assert tool[0].efc_address == -1


def test_mujocos_contact_is_as_it_was_without_the_hybrid():
    spec = lab(start=-0.0595)
    block, tool = spec.geom("block"), spec.geom("tool")
    block.friction, block.solref, block.solmix, block.condim = [0.7, 0.02, 0.003], [0.01, 0.5], 3, 4
    tool.friction, tool.margin, tool.solimp = [0.4, 0.03, 0.001], 0.001, [0.8, 0.9, 0.002, 0.5, 2]
    spec.geom("block").name = ""  # pairs need names: one is made up
    found = []
    for compiled, stepper in (
        (spec.compile(), mujoco.mj_step),
        (lambda h: (h.attach(spec, target="block", striker="tool"), h.step))(HybridStep(Bounce(SQUARE), SQUARE)),
    ):
        data = mujoco.MjData(compiled)
        stepper(compiled, data)
        stepper(compiled, data)
        (contact,) = (c for c in data.contact if compiled.geom("tool").id in c.geom)
        settings = [contact.friction, contact.solref, contact.solimp, [contact.dim, contact.includemargin]]
        found.append(np.concatenate(settings))
        assert contact.efc_address >= 0
    assert found[0] == pytest.approx(found[1])


def test_a_pair_of_the_users_own_is_kept():
    pair = '<contact><pair geom1="tool" geom2="block" friction=".12 .34" solref=".03 .4"/></contact>'
    _, model, _ = ready(lab(extra=pair))
    assert model.npair == 1
    assert model.pair_friction[0, :2] == pytest.approx([0.12, 0.34])
    assert model.pair_solref[0] == pytest.approx([0.03, 0.4])


def refused(spec, **names):
    with pytest.raises(SceneError) as error:
        HybridStep(Bounce(SQUARE), SQUARE).attach(spec, **{"target": "block", "striker": "tool", **names})
    return str(error.value)


def test_refusals_say_what_is_wrong():
    assert "did you mean 'block'" in refused(lab(), target="blok")
    assert "striker: unknown body 'hammer'" in refused(lab(), striker="hammer")
    assert "no free joint" in refused(lab(), target="tool", striker="block")
    assert "both 'block'" in refused(lab(), striker="block")
    heavy = refused(lab(target=BLOCK.replace(".25", ".3")))
    assert "the target's mass is 0.3 kg, not 0.25 kg" in heavy
    assert "outline" not in heavy
    assert "the outline by" in refused(lab(target=BLOCK.replace(".04 .04", ".05 .04")))
    aside = BLOCK.replace("mass", 'pos=".01 0 0" mass')
    assert "the centre of mass by 10 mm" in refused(lab(target=aside))
    spec = lab()
    spec.geom("tool").size = [0.03, 0, 0]
    assert "the striker's radius is 0.03 m, not 0.02 m" in refused(spec)
    spec = lab()
    spec.geom("tool").contype, spec.geom("tool").conaffinity = 2, 2
    assert "nothing of body 'tool' collides with body 'block'" in refused(spec)


def test_step_wants_the_model_that_attach_returned():
    plain = lab().compile()
    with pytest.raises(CaromError, match="call attach"):
        HybridStep(Bounce(SQUARE), SQUARE).step(plain, mujoco.MjData(plain))
    hybrid, _, _ = ready(lab())
    with pytest.raises(CaromError, match="call attach"):
        hybrid.step(plain, mujoco.MjData(plain))


def test_the_users_spec_is_left_alone():
    spec = lab()
    before = spec.to_xml()
    ready(spec)
    assert spec.to_xml() == before


def test_the_example_runs():
    example = Path(__file__).parents[2] / "examples" / "hybrid_step.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "learned" in done.stdout


def test_far_apart_nothing_is_looked_at_and_nothing_is_missed(monkeypatch):
    """A tool that comes from afar meets the block when it does if every step is looked at; one put near it is seen."""
    looks, look = [], HybridStep._next_contact

    def counted(self, model, data, pair):
        looks.append(data.time)
        return look(self, model, data, pair)

    monkeypatch.setattr(HybridStep, "_next_contact", counted)
    met = {}
    for most in (100, 0):
        monkeypatch.setattr("carom.hybrid.step.MOST_FAR", most)
        looks.clear()
        hybrid, model, data = ready(lab(start=-0.4))
        data.joint("x").qvel = 0.5
        while not hybrid.log and data.time < 2:
            hybrid.step(model, data)
        met[most] = hybrid.log[0].time, len(looks)
    assert met[100][0] == met[0][0]
    assert met[100][1] < 0.3 * met[0][1]
    monkeypatch.setattr("carom.hybrid.step.MOST_FAR", 100)
    hybrid, model, data = ready(lab(start=-1.0))
    data.joint("x").qvel = 0.5
    for _ in range(5):
        hybrid.step(model, data)
    data.joint("x").qpos = 1.0 - 0.0625  # from afar to two steps and a half before the block
    for _ in range(10):
        hybrid.step(model, data)
    assert len(hybrid.log) == 1
