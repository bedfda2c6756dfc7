"""`carom bench shipped-base`: the base models that come with Carom against base models distilled for the one scene."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.impact_accuracy import TEST, TRAIN, first_of, table_one
from carom.compare import relative_error, summary
from carom.core.work import Rows
from carom.engines.contact_frames import contact_frames, to_world
from carom.learn import BaseModel, Explanation, adapt, shipped_bases
from carom.learn.impact.dataset import simulated
from carom.learn.impact.members import outcomes
from carom.learn.impact.training import accuracy_of, relative_errors
from carom.reality import sample_commands, standin
from carom.recipes.bases import make_bases
from carom.recipes.strikes import fixed_by_slides, usable_impacts
from carom.recordings import read, scene_of
from carom.scenes.shapes import Body, Shape
from carom.scenes.strike import DISTILLED, Striker, StrikeScene, builtin, com_unknown
from carom.state import Array, Impacts

SIMULATED = 4096  #: impacts that both are asked about
FIRST_SEED = 1_000_003  #: of those impacts: neither training nor the trial of a shipped model has seen them
STANDINS = (("resin-low", "semi-cylinder"), ("nylon-low", "square"), ("nylon-low", "triangle"))
METRICS = ("accuracy@0.1", "accuracy@0.05", "median-relative-error")


def scenes() -> dict[str, StrikeScene]:
    """Built-in shapes, and three that neither was made for."""
    turn = np.linspace(0, 2 * np.pi, 6, endpoint=False)
    hexagon = tuple((0.06 * float(np.cos(a)), 0.06 * float(np.sin(a))) for a in turn)
    odd = ((-0.05, -0.03), (0.02, -0.05), (0.06, 0.01), (0.01, 0.05), (-0.04, 0.03))
    return {shape: builtin(shape) for shape in ("semi-cylinder", "square", "triangle")} | {
        "hexagon": _scene("hexagon", Shape("extruded", outline=hexagon, height=0.06), 0.3, Striker(radius=0.015)),
        "2:1 box, flat face": _scene(
            "long-box", Shape("box", size=(0.12, 0.06, 0.05)), 0.5, Striker(width=0.03, mass=1.25)
        ),
        "convex outline": _scene("odd", Shape("extruded", outline=odd, height=0.04), 0.2, Striker(radius=0.025)),
    }


def _scene(name: str, shape: Shape, mass: float, striker: Striker) -> StrikeScene:
    return StrikeScene(name, Body("block", "target", shape, mass), striker, com_unknown(shape))


def _work(o: Options) -> Work:
    simulated_ones = [(f"simulated/{name}", partial(_simulated, name, o)) for name in scenes()]
    draws = [(setting, shape, draw) for setting, shape in STANDINS for draw in range(o.draws)]
    return [*simulated_ones, *((f"strikes/{s}/{shape}/{d}", partial(_draw, s, shape, d, o)) for s, shape, d in draws)]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        f"Shipped: one network per teacher and kind of striker for all scenes. Own: {o.samples} simulated impacts of "
        f"the scene per teacher. Both are asked about {SIMULATED} other simulated impacts of the scene. The long box "
        "weighs 0.4 times its striker; its face and the hexagon, like the convex outline, are no built-in scenes.",
        f"Ten strikes: corrected with {TRAIN} strikes of a stand-in reality, asked about {TEST} more; {o.draws} draws.",
        "The corrected rows hardly depend on the networks: a rigid impact, which has none, counts for 0.5 to 0.8. "
        "The rows 'alone' are a network with the parameters that the ten strikes left plausible, and nothing else.",
    )


BENCHMARK = Benchmark(
    "shipped-base",
    draws=6,
    samples=100_000,
    settings=lambda o: {"draws": o.draws, "samples": o.samples, "seed": o.seed, "simulated": SIMULATED},
    work=_work,
    notes=_notes,
)


def _own(name: str, scene: StrikeScene, o: Options) -> tuple[BaseModel, ...]:
    place = o.out / "models" / name.replace(":", "-").replace(", ", "-").replace(" ", "-")
    return make_bases(scene, place, o.samples, o.seed, o.threads, o.progress)


def _simulated(name: str, o: Options) -> Rows:
    """How well both know their teachers."""
    scene, rows = scenes()[name], []
    for who, bases in (("shipped", shipped_bases(scene)), ("own", _own(name, scene, o))):
        for base in bases:
            asked = simulated(scene, base.teacher, SIMULATED, seed=o.seed + FIRST_SEED, threads=o.threads)
            found = accuracy_of(relative_errors(base, asked))
            rows += [
                {"setting": name, "method": f"{base.teacher}, {who}", "metric": m, "value": found[m]} for m in METRICS
            ]
    return rows


def _draw(setting: str, shape: str, draw: int, o: Options) -> Rows:
    """How well both do after a correction with ten strikes."""
    reality = standin(setting, shape, seed=o.seed + 1)
    folder = o.out / "strikes" / f"{setting}-{shape}-{draw}"
    if not (folder / "recordings.yaml").is_file():
        rng = np.random.default_rng([o.seed, draw])
        reality.execute(sample_commands(reality.shape, TRAIN + TEST, rng), folder, seed=o.seed + 1000 + draw)
    recordings = read(folder)
    impacts, usual = usable_impacts(recordings), builtin(shape)
    # bounds of the built-in scene: those of the recorded one differ in the seventh digit
    scene = replace(table_one(scene_of(recordings), shape), unknown=usual.unknown)
    train, test = impacts[np.arange(TRAIN)], impacts[np.arange(TRAIN, len(impacts))]
    fixed, rows = fixed_by_slides(first_of(recordings, train)), []
    for who, bases in (("shipped", shipped_bases(scene)), ("own", _own(shape, scene, o))):
        model = adapt(bases, train, fixed=fixed, seed=o.seed)
        said = {f"corrected, {who}": model.predict(test.strikes).post}
        # the rigid teacher needs no network and counts most here: what a network knows shows only where it is alone
        networks = [e for e in model.explanations if e.base.teacher in DISTILLED]
        said |= {f"{e.base.teacher} alone, {who}": _alone(scene, e, test) for e in networks}
        for method, post in said.items():
            found = summary(relative_error(post, test.post, scene.gyration_radius))
            name = f"{setting}, {shape}, ten strikes"
            rows += [{"setting": name, "method": method, "metric": m, "value": found[m], "draw": draw} for m in METRICS]
    return rows


def _alone(scene: StrikeScene, explanation: Explanation, test: Impacts) -> Array:
    """What a base model says of strikes [N, 3] with the parameters that ten strikes left plausible, not corrected."""
    frames, members = contact_frames(scene, test.strikes), explanation.members
    local = np.einsum("m,mnc->nc", members.weights, outcomes(explanation.base, frames, members.values))
    return to_world(scene, frames, local)
