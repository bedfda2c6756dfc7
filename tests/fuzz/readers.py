"""Every reader of files: a folder of good ones, which of them are spoilt, and what a user does with them next."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock

import foreign
import numpy as np
import robots
from synthetic_recordings import Strike, toss, two_discs

from carom.core.errors import CaromError, RecordingError
from carom.core.work import Checkpoint
from carom.recordings import Recordings, Trajectory, check, kind_of, read, read_native, scene_of, write
from carom.recordings.formats.take import ReadOptions
from carom.scenes.load import load_scene, scene_to_dict
from carom.scenes.scene import mjcf_scene
from carom.scenes.strike import builtin
from carom.state import SceneState, Strikes


@dataclass(frozen=True)
class Reader:
    """One way in for files of others."""

    make: Callable[[Path], object]  #: writes good files into a folder
    load: Callable[[Path], str]  #: reads them; what was read, as text, or a `CaromError` that names the file
    files: tuple[str, ...]  #: patterns of those that are spoilt
    headers: tuple[str, ...] = ()  #: patterns of headers with checksums, those first whose checksum others hold
    share: int = 2  #: of all cases: slow readers get fewer


def _digest(*arrays: Any) -> str:
    """A short text that differs if any number does."""
    found = sha256()
    for array in arrays:
        values = np.asarray(array)
        found.update(repr((values.shape, values.dtype)).encode() + np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def _short(number: int, **options: Any) -> Any:
    return Strike(duration=0.5, contact=0.25, rate=80, **options).trajectory(seed=number, name=f"hit_{number:03d}.csv")


def _strikes(folder: Path, kind: Any = "csv") -> None:
    hits = tuple(_short(i) for i in range(2))
    write(folder, Recordings(folder, hits[0].bodies, hits, gravity=9.81), file_format=kind)


HEADER = """\
format: carom-recordings/1
units: {length: mm, angle: deg, time: s}
frame: z-up
gravity: 9.81
bodies:
  box: {role: target, shape: box, size: [200, 200, 100], mass: 0.5, inertia: [0.002, 0.002, 0.003], com: [0, 0, 0]}
  tool: {role: striker, shape: face, width: 40, height: 30, forward: y, mass: 3}
  wedge: {role: other, shape: extruded, outline: [[-40, -20], [40, -20], [0, 40]], height: 50, inertia_z: 0.001}
  lump: {role: other, shape: mesh, file: cube.stl}
  base: {role: ground}
ground: {normal: [0, 0, 1], height: 0}
trajectories:
- file: hit_000.csv
  orientation: true
  tags: {speed: 1, day: a}
- file: hit_001.csv
  bodies:
    box: {mass: 0.6, tracked: {position: [0, 0, 10], quaternion: [1, 0, 0, 0]}}
"""


def _written_by_hand(folder: Path) -> None:
    """Recordings whose header uses what the format offers, as a person writes it."""
    _strikes(folder)
    for path in folder.glob("*.csv"):
        names, *rows = path.read_text().splitlines()
        scale = [1000 if name[-2:] in (".x", ".y", ".z") else 1 for name in names.split(",")]
        lines = [",".join(f"{float(c) * s:.9g}" for c, s in zip(r.split(","), scale, strict=True)) for r in rows]
        path.write_text("\n".join([names, *lines]) + "\n")
    (folder / "recordings.yaml").write_text(HEADER)
    (folder / "cube.stl").write_bytes(cube_stl(40.0, "stl_ascii"))


def _tosses(folder: Path) -> None:
    whole = [_cut(toss(seed=i, name=f"toss_{i}.csv"), slice(60)) for i in range(2)]
    write(folder, Recordings(folder, whole[0].bodies, tuple(whole)))


def _cut(trajectory: Trajectory, rows: slice) -> Trajectory:
    return replace(
        trajectory,
        time=trajectory.time[rows],
        position_world={n: p[rows] for n, p in trajectory.position_world.items()},
        quaternion_world={n: None if q is None else q[rows] for n, q in trajectory.quaternion_world.items()},
    )


def _discs(folder: Path) -> None:
    pair, _ = two_discs()
    pair = _cut(pair, slice(200, 320))
    write(folder, Recordings(folder, pair.bodies, (pair,)), file_format="parquet")


def _read(folder: Path) -> str:
    """The recordings, the scene that they show, and what MuJoCo makes of it."""
    recordings = read(folder)
    scene_of(recordings).spec().compile()
    return _numbers(recordings)


def _numbers(recordings: Recordings) -> str:
    every = ((t.time, *t.position_world.values(), *t.quaternion_world.values()) for t in recordings.trajectories)
    return "".join(_digest(*(array for array in arrays if array is not None)) for arrays in every)


def _read_tosses(folder: Path) -> str:
    from carom.identify.tosses.recorded import free_scene

    recordings = read(folder)
    free_scene(recordings, recordings.trajectories).spec().compile()
    return kind_of(recordings) + _numbers(recordings)


def _check(folder: Path) -> str:
    report = check(folder)
    json.dumps(report.to_dict())
    report.summary()
    if not report.listed:
        raise RecordingError(report.findings[0].message)
    return "\n".join(f.message for f in report.findings)


def _native(folder: Path) -> None:
    import torch

    rng = np.random.default_rng(0)
    values = rng.standard_normal((1, 20, 19))
    values[..., 3:7] /= np.linalg.norm(values[..., 3:7], axis=-1, keepdims=True)
    torch.save(torch.from_numpy(values), folder / "a.pt")
    torch.save(
        torch.from_numpy(np.concatenate([values[0, :, 3:7], values[0, :, :3], values[0, :, 7:13]], 1)), folder / "b.pt"
    )


def _read_native(folder: Path) -> str:
    return _digest(*(read_native(folder / name).position_world["cube"] for name in ("a.pt", "b.pt")))


SCENES = {
    "a.yaml": """\
format: carom-scene/1
name: my-block
units: {length: mm, angle: deg}
target: {shape: extruded, outline: [[-40, -20], [40, -20], [0, 40]], height: 50, mass: 0.2, com: [0, 0, 0]}
striker: {shape: face, width: 40, forward: x, mass: 2}
unknown: {face_tilt: [-5, 5], com_x: [-4, 4], striker_mass: [1, 5, 2]}
bounds: {striker_friction: [0.05, 0.8]}
speed: [0.2, 0.8]
deflection: 15
face_angle: 10
""",
    "b.yaml": """\
format: carom-scene/1
target: {name: half, shape: semi-cylinder, radius: 0.05, height: 0.05, mass: 0.15, inertia: [0.001, 0.001, 0.001]}
striker: {radius: 0.02, height: 0.05}
arc: [0.3, 2.8]
""",
    "c.yaml": """\
format: carom-scene/1
target: {shape: box, size: [0.08, 0.08, 0.05], mass: 0.25, inertia_z: 0.0003}
striker: {shape: box, size: [0.04, 0.04, 0.04], forward: [1, 0, 0]}
""",
}


def _scenes(folder: Path) -> None:
    for name, text in SCENES.items():
        (folder / name).write_text(text)


def _load_scenes(folder: Path) -> str:
    words = []
    for path in sorted(folder.glob("*.yaml")):
        scene = load_scene(path)
        scene.spec().compile()
        words.append(json.dumps(scene_to_dict(scene)) + json.dumps(scene.signature()))
        [scene.parameters(teacher) for teacher in ("mujoco", "compliant")]
    return "".join(words)


MJCF = """\
<mujoco model="lab">
  <compiler angle="radian"/>
  <asset><mesh name="lump" file="cube.stl"/><texture name="t" type="2d" builtin="flat" width="16" height="16"/></asset>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body name="block" pos="0 0 0.025"><freejoint/><geom type="box" size="0.04 0.04 0.025" mass="0.25"/></body>
    <body name="arm"><joint axis="1 0 0" type="slide"/>
      <geom type="capsule" size="0.02" fromto="0 0 0.1 0.3 0 0.1" mass="2"/>
      <body name="tool" pos="0.3 0 0.03"><joint axis="0 1 0" type="slide"/>
        <geom type="cylinder" size="0.02 0.03" mass="1"/></body>
    </body>
    <body name="rock" pos="1 0 0"><freejoint/><geom type="mesh" mesh="lump" mass="1"/></body>
  </worldbody>
</mujoco>
"""


def _mjcf(folder: Path) -> None:
    (folder / "scene.xml").write_text(MJCF)
    (folder / "cube.stl").write_bytes(cube_stl(0.04))
    (folder / "lab.yaml").write_text("format: carom-scene/1\nmjcf: scene.xml\nroles: {target: block, striker: tool}\n")


def _load_mjcf(folder: Path) -> str:
    own = mjcf_scene(folder / "scene.xml", {"target": "block"})
    return _load_scenes(folder) + str(own.spec().compile().nbody)


def cube_stl(side: float, kind: str = "stl") -> bytes:
    """A cube as a binary STL, or as a text with `stl_ascii`."""
    import trimesh

    made = trimesh.creation.box((side, side, side)).export(file_type=kind)
    return made if isinstance(made, bytes) else made.encode()


def _meshes(folder: Path) -> None:
    import trimesh

    cube = trimesh.creation.box((0.08, 0.06, 0.05))
    (folder / "cube.stl").write_bytes(cube.export(file_type="stl"))
    (folder / "cube.obj").write_text(cube.export(file_type="obj"))
    text = "format: carom-scene/1\ntarget: {shape: mesh, file: cube.stl, mass: 0.2, scale: 1}\n"
    (folder / "stl.yaml").write_text(text + "striker: {shape: sphere, radius: 0.02}\n")


def _load_meshes(folder: Path) -> str:
    from carom.scenes.mesh_files import convex_mesh

    return _load_scenes(folder) + str([convex_mesh(folder / f"cube.{kind}").volume for kind in ("stl", "obj")])


def _parameters(folder: Path) -> None:
    from carom.identify import Errors, Estimate, Identification

    named = [
        ("friction", 0.3, "1", 0.2, 0.4),
        ("stiffness", 2e4, "1/s^2", 1e4, 3e4),
        ("damping", 200.0, "1/s", 90.0, 300.0),
    ]
    found = tuple(Estimate(n, v, u, a, b, (0.0, 1e6), "identified", "why") for n, v, u, a, b in named)
    errors = Errors(0.1, 0.2, 0.9, 5)
    Identification("cma", "toss", found, errors, errors, "one at a time", 5, 0, 0.1, 0, notes=("a note",)).write(folder)


def _load_parameters(folder: Path) -> str:
    from carom.identify import read
    from carom.scale import calibration
    from carom.scenes.free import toss_scene

    found = calibration(folder / "parameters.yaml", spread=True)
    values = found.draw(np.random.default_rng(0))
    toss_scene().spec_with(dict(zip(found.names, values.tolist(), strict=True))).compile()
    return str(read(folder).to_dict()) + str((found.names, found.value, found.interval, found.source))


def _routes(folder: Path) -> None:
    (folder / "route.yaml").write_text("name: bend\npoints: [[0, 0], [0.4, 0], [0.7, 0.2]]\nheading_spread: 0.1\n")


def _load_route(folder: Path) -> str:
    from carom.envs.routes import route_from

    return str(route_from(folder / "route.yaml"))


def _plans(folder: Path) -> None:
    from carom.plan.export import strike_motion, write_motion

    strike = {
        "contact_point_target_frame_m": [-0.05, 0.005],
        "velocity_target_frame_m_s": [0.5, 0.0],
        "target_pose": [0.1, 0.2, 0.0],
        "wanted_pose": [0.3, 0.2, None],
        "expected_pose": [0.29, 0.2, 0.1],
        "model": "models/lab",
    }
    motion = strike_motion([0.05, 0.2], [0.5, 0.0], height=0.03, yaw=0.0)
    write_motion(folder / "strike", motion, strike=strike)
    (folder / "plan.json").write_text(json.dumps(strike))


def _load_plans(folder: Path) -> str:
    from carom.view.planned import PlanFile

    made = [PlanFile.read(folder / name) for name in ("plan.json", "strike")]
    points = [_digest(m.points.time, m.points.position) for m in made if m.points is not None]
    return str([(m.commands, m.wanted, m.expected, m.model) for m in made]) + str(points)


PUSHED = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="1 1 0.1"/>
<body name="puck" pos="0.1 0 0.03"><freejoint/><geom type="cylinder" size="0.04 0.03" mass="0.3"/></body>
<body name="finger"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<geom type="sphere" size="0.01" pos="0 0 0.03" mass="0.3"/></body></worldbody><actuator>
<position joint="x" kp="200" kv="15" ctrlrange="-1 1"/><position joint="y" kp="200" kv="15" ctrlrange="-1 1"/>
</actuator></mujoco>"""
PUSHING = """format: carom-pushing/1
mjcf: cell.xml
roles: {target: puck, tool: finger}
start: {centre: [0.12, 0], far: 0.03}
goal: {centre: [0.12, 0], near: 0.02, far: 0.15, aside: 120}
border: {far: 0.4}
turn: 60
"""


def _pushing(folder: Path) -> None:
    (folder / "cell.xml").write_text(PUSHED)
    (folder / "task.yaml").write_text(PUSHING)


def _load_pushing(folder: Path) -> str:
    from carom.envs.pushing.files import load_task

    task = load_task(folder / "task.yaml")
    return f"{task.places} {task.steps} {task.reach}"


def _bases(folder: Path) -> None:
    from carom.learn.impact.distill import DistillOptions, distill

    steps = DistillOptions(steps=2)
    distill(builtin("square"), folder, samples=1000, teachers=("compliant",), training=steps, threads=1)
    shutil.rmtree(folder / "data")


@cache
def _few(scene: str) -> Strikes:
    from carom.learn.impact.sample import sample_strikes

    return sample_strikes(builtin(scene), 3, np.random.default_rng(0))


def _load_bases(folder: Path) -> str:
    from carom.learn.impact.base_files import load_bases

    return _digest(*(t for b in load_bases(folder) for t in b.network.state_dict().values()))


def _hybrid(folder: Path) -> None:
    from carom.hybrid import make_hybrid, save_hybrid
    from carom.learn.impact.dataset import generate
    from carom.learn.impact.training import train
    from carom.reality import Effects, sample_commands, standin
    from carom.recordings import strike_impacts

    reality = standin("resin-high", "square", seed=2, effects=Effects.none())
    commands = sample_commands(reality.shape, 5, np.random.default_rng(0))
    recordings = read(reality.execute(commands, folder / "strikes", seed=1))
    scene = scene_of(recordings)
    base = train(scene, "compliant", generate(scene, "compliant", 1024, folder / "data"), steps=20)
    impacts, _ = strike_impacts(recordings)
    with mock.patch("carom.learn.impact.student.SAMPLES", 640):
        made = make_hybrid([base], impacts, recordings, fixed={"ground_friction": 0.45}, steps=20)
    save_hybrid(folder, made, made_by={"command": "test"})
    for name in ("strikes", "data"):
        shutil.rmtree(folder / name)


def _load_hybrid(folder: Path) -> str:
    from carom.hybrid import load_hybrid
    from carom.hybrid.model import HybridModel

    found: HybridModel = load_hybrid(folder)
    told, said = found.impact.predict(found.impact.train.strikes), found.student.predict(found.impact.train.strikes)
    weights = _digest(*found.student.network.state_dict().values(), told.post, said.post, said.post_std)
    return str((weights, found.sliding, found.values))


def _policy(folder: Path) -> None:
    from carom.train.models import policy_of
    from carom.train.policy import save_policy

    save_policy(folder, policy_of(_learner()[0], environment="toy", made_by={"seed": 1}))


@cache
def _learner() -> tuple[Any, Any]:
    """A small learner and its environment, made once: checkpoints are restored into it again and again."""
    from toy_env import ToyVecEnv

    from carom.train import preset_of
    from carom.train.models import new_model

    numbers = {"envs": 4, "layers": (8, 8), "warm_up": 8, "batch": 8, "updates": 1, "rollout": 4, "buffer": 40}
    env = ToyVecEnv(4)
    return new_model(env, replace(preset_of("fast", "sac"), **numbers), library="sb3", seed=1), env


def _load_policy(folder: Path) -> str:
    from carom.train.policy import load_policy

    found = load_policy(folder)
    return _digest(*found.weights, *found.biases, found.act(np.zeros((2, 6))))


def _checkpoint(folder: Path) -> None:
    from carom.train.checkpoint import save_checkpoint

    model, env = _learner()
    model.learn(24)
    save_checkpoint(folder, model, env, {"timing": {"total": 1.0}})


def _load_checkpoint(folder: Path) -> str:
    from carom.train.checkpoint import _torch_tensors, load_checkpoint

    model, env = _learner()
    extra = load_checkpoint(folder, model, env)
    if extra is None:
        raise CaromError(f"{folder}: no checkpoint")
    buffer = model.replay_buffer
    arrays = (buffer.rewards, buffer.observations, buffer.actions, model._last_obs, *_torch_tensors(model).values())
    return str((extra, model.num_timesteps, buffer.pos, _digest(*arrays)))


def _settings(folder: Path) -> None:
    from toy_env import ToyVecEnv

    from carom.train import Training, preset_of, train

    numbers = {"envs": 4, "layers": (8, 8), "warm_up": 8, "batch": 8, "updates": 1, "rollout": 4, "buffer": 40}
    training = Training(algo="sac", steps=16, preset=replace(preset_of("fast", "sac"), **numbers), seed=3)
    train(ToyVecEnv, folder, training)
    shutil.rmtree(folder / "tensorboard", ignore_errors=True)


def _load_settings(folder: Path) -> str:
    """A finished training, asked for again."""
    from toy_env import ToyVecEnv

    from carom.train import Training, preset_of, train

    numbers = {"envs": 4, "layers": (8, 8), "warm_up": 8, "batch": 8, "updates": 1, "rollout": 4, "buffer": 40}
    training = Training(algo="sac", steps=16, preset=replace(preset_of("fast", "sac"), **numbers), seed=3)
    if not (folder / "settings.json").is_file() or not (folder / "policy.json").is_file():
        raise CaromError(f"{folder}: incomplete")  # else it would train, which is no reading
    return _digest(*train(ToyVecEnv, folder, training).weights)


def _trajectories(folder: Path) -> None:
    from carom.scale import calibration, scale
    from carom.scale import toss as tossed

    scale(tossed(duration=0.03), calibration(None), folder, count=3)


def _load_trajectories(folder: Path) -> str:
    from carom.scale import load
    from carom.scale.reader import summary

    found = load(folder)
    words = [(_digest(t.position, t.quaternion), dict(t.parameters), t.status, t.bodies) for t in found]
    return str(words) + _digest(found.parameters) + str(summary(folder))


def _dropped(folder: Path) -> None:
    """Trajectories of a mesh, which the header holds."""
    from carom.scale import calibration, dropped, scale

    (folder / "in").mkdir(parents=True)
    (folder / "in" / "rock.stl").write_bytes(cube_stl(0.05))
    scale(dropped([folder / "in" / "rock.stl"], duration=0.03), calibration(None), folder, count=2)
    shutil.rmtree(folder / "in")


_SMALL = {"hidden": 8, "memory": 4, "layers": 2}


def _graph(folder: Path) -> None:
    from carom.learn.graph import GraphModel, new_network

    contact = {"friction": 0.3, "face_friction": 0.3, "stiffness": 20_000.0, "damping": 200.0}
    network = new_network(sizes=_SMALL)
    GraphModel(network, 0.01, contact, {"friction": (0.1, 0.5)}, {"place": 0.1}).save(folder)


def _load_graph(folder: Path) -> str:
    """A graph simulator, and what it says of a cube that falls."""
    from carom.learn.graph import GraphEngine, load_graph
    from carom.scenes.free import toss_scene

    found = load_graph(folder)
    one, none = np.ones((1, 1, 1)), np.zeros((1, 1, 3))
    start = SceneState(("cube",), one * [0.0, 0.0, 0.06], one * [1.0, 0.0, 0.0, 0.0], none, none)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what lies outside of its ranges is said so
        motion = GraphEngine(found, toss_scene()).open(start).rollout(5 * found.step, frames=3)
    words = (found.step, dict(found.defaults), dict(found.ranges), dict(found.held_out))
    return str(words) + _digest(*found.network.state_dict().values(), motion.position)


def _graph_learner() -> Any:
    """A small graph simulator in training, after one update."""
    import torch

    from carom.learn.graph import Recipe, new_network
    from carom.learn.graph.training import Learner

    with torch.random.fork_rng():
        torch.manual_seed(0)
        learner = Learner.new(new_network(sizes=_SMALL), Recipe(), 0)
    sum((value**2).sum() for value in learner.network.parameters()).backward()
    learner.optimiser.step()
    return learner


def _graph_checkpoint(folder: Path) -> None:
    from carom.learn.graph.run import _keep

    learner = _graph_learner()
    learner.update = 5
    _keep(folder, learner, {"seed": 0}, [(5, 0.1, 0.2, 0.3)])


def _load_graph_checkpoint(folder: Path) -> str:
    from carom.learn.graph.run import _resumed

    learner = _graph_learner()
    if not (folder / "checkpoint.json").is_file():
        raise CaromError(f"{folder}: no checkpoint")
    curve = _resumed(folder, learner, {"seed": 0})
    state = learner.optimiser.state_dict()["state"]
    kept = [value for index in sorted(state) for value in state[index].values()]
    weights = learner.network.state_dict().values()
    return str((curve, learner.update, learner.best)) + _digest(*weights, *kept, learner.rng.get_state())


def _impacts(folder: Path) -> None:
    from carom.learn.impact.dataset import generate

    generate(builtin("square"), "compliant", 20, folder, shard=16)


def _load_impacts(folder: Path) -> str:
    """The data set, asked for again; shards that the header no longer lists are made anew."""
    from carom.learn.impact.dataset import generate

    found = generate(builtin("square"), "compliant", 20, folder, shard=16)
    return _digest(found.post, found.values)


def _pieces(folder: Path) -> None:
    for number in range(3):
        Checkpoint(folder / "pieces.jsonl", {"a": 1}).put(f"k{number}", [{"method": "carom", "value": 0.5}])


def _load_pieces(folder: Path) -> str:
    found = Checkpoint(folder / "pieces.jsonl", {"a": 1})
    return str([found.get(f"k{i}") for i in range(3) if found.has(f"k{i}")])


def _results(folder: Path) -> None:
    from carom.bench.results import new_results, summarise

    rows = summarise([{"setting": "a", "method": "carom", "metric": "m", "value": v} for v in (0.1, 0.2)])
    new_results("toss", command="carom bench toss", rows=rows, seconds=1.0, notes=("a",)).write(folder / "toss.json")


def _load_results(folder: Path) -> str:
    from carom.bench.results import read

    return str(read(folder / "toss.json"))


MODEL, TRAINED, DATA = ("model.json", "hybrid.json"), ("checkpoint-*/state.json", "checkpoint.json"), ("_header.json",)
READERS: Mapping[str, Reader] = {
    "recordings": Reader(_written_by_hand, _read, ("recordings.yaml", "recordings.yaml", "*.csv", "*.stl"), share=8),
    "recordings-npz": Reader(lambda f: _strikes(f, "npz"), _read, ("*.npz",), share=5),
    "recordings-parquet": Reader(lambda f: _strikes(f, "parquet"), _read, ("*.parquet",), share=5),
    "tosses": Reader(_tosses, _read_tosses, ("recordings.yaml", "*.csv"), share=8),
    "check": Reader(_written_by_hand, _check, ("recordings.yaml", "*.csv"), share=2),
    "check-discs": Reader(_discs, _check, ("recordings.yaml", "*.parquet"), share=1),
    "native": Reader(_native, _read_native, ("*.pt",), share=7),
    "scene": Reader(_scenes, _load_scenes, ("*.yaml",), share=10),
    "mjcf": Reader(_mjcf, _load_mjcf, ("scene.xml", "scene.xml", "*.yaml", "*.stl"), share=4),
    "mesh": Reader(_meshes, _load_meshes, ("*.stl", "*.obj", "stl.yaml"), share=1),
    "parameters": Reader(_parameters, _load_parameters, ("parameters.yaml",), share=7),
    "plan": Reader(_plans, _load_plans, ("plan.json", "strike/strike.json"), share=4),
    "route": Reader(_routes, _load_route, ("route.yaml",), share=7),
    "pushing": Reader(_pushing, _load_pushing, ("task.yaml", "task.yaml", "cell.xml"), share=3),
    "bases": Reader(_bases, _load_bases, ("model.json", "*.safetensors"), MODEL, share=6),
    "hybrid": Reader(
        _hybrid, _load_hybrid, ("hybrid/*.json", "hybrid/*.safetensors"), ("hybrid/model.json", "hybrid/hybrid.json"), 1
    ),
    "policy": Reader(_policy, _load_policy, ("policy.*",), ("policy.json",), share=9),
    "checkpoint": Reader(_checkpoint, _load_checkpoint, ("*.json", "checkpoint-*/*"), TRAINED, share=6),
    "training": Reader(_settings, _load_settings, ("*.json",), ("policy.json", "settings.json"), share=5),
    "graph": Reader(_graph, _load_graph, ("graph.json", "*.safetensors"), ("graph.json",), share=6),
    "graph-checkpoint": Reader(
        _graph_checkpoint, _load_graph_checkpoint, ("checkpoint.json", "*.safetensors"), ("checkpoint.json",), share=5
    ),
    "trajectories": Reader(_trajectories, _load_trajectories, ("_header.json", "*.parquet"), DATA, share=7),
    "dropped": Reader(_dropped, _load_trajectories, ("_header.json",), DATA, share=5),
    "impacts": Reader(_impacts, _load_impacts, ("_header.json", "*.parquet"), DATA, share=6),
    "pieces": Reader(_pieces, _load_pieces, ("pieces.jsonl",), share=3),
    "strike": Reader(robots.strike, robots.load_strike, ("strike.json", "limits.yaml"), share=3),
    "robot": Reader(robots.robot, robots.load_robot, ("robot.xml",), share=2),
    "results": Reader(_results, _load_results, ("toss.json",), share=3),
    "motive": Reader(
        foreign.captures("motive", "motive euler", "motive_rows"),
        foreign.imported("take.csv", "euler.csv", "rows.csv", names=("box=target",)),
        ("*.csv",),
        share=6,
    ),
    "vicon": Reader(foreign.captures("vicon tracker"), foreign.imported("tracker.csv"), ("*.csv",), share=6),
    "nexus": Reader(
        foreign.captures("vicon nexus"), foreign.imported("nexus.csv", names=foreign.POINTS), ("*.csv",), share=5
    ),
    "qualisys": Reader(foreign.captures("qualisys 6d"), foreign.imported("bodies.tsv"), ("*.tsv",), share=6),
    "points": Reader(
        foreign.captures("c3d", "c3d mips", "trc", "qualisys 3d"),
        foreign.imported("points.c3d", "mips.c3d", "points.trc", "points.tsv", names=foreign.POINTS),
        ("*",),
        share=5,
    ),
    "table": Reader(foreign.captures("plain_table"), foreign.imported("table.csv"), ("*.csv",), share=6),
    "pose-rows": Reader(
        foreign.pose_rows, foreign.imported("tum.txt", "euroc.csv", "kitti.txt"), ("*.txt", "*.csv"), share=6
    ),
    "rosbag1": Reader(foreign.ros1, foreign.imported("take.bag"), ("*.bag",), share=5),
    "rosbag2": Reader(
        foreign.ros2, foreign.imported("bag", "mcap"), ("*/metadata.yaml", "*/*.db3", "*/*.mcap"), share=5
    ),
    "vectors": Reader(
        foreign.vectors,
        foreign.imported("demo.hdf5", "set", names=foreign.VECTORS, read=ReadOptions(quaternion_order="wxyz")),
        ("demo.hdf5", "set/meta/info.json", "set/data/*/*.parquet"),
        share=5,
    ),
}
