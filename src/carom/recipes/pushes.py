"""Pushes identified from recordings: which scene they are played in, what is written, what a reader sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from carom.core.artefacts import atomically
from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Progress, silent, steps_of
from carom.identify.pushes import METHODS, Method, Tuned, Tuning, guided_scene, tune
from carom.identify.result import Identification
from carom.recipes.result import command
from carom.recordings import Recordings
from carom.recordings.pushes import pushes_in
from carom.report import Step
from carom.scenes.pushing import OWN, GuidedScene, PushScene, push_scene
from carom.scenes.shapes import Body

SIZES = 0.001  #: [m] up to which a declared block is a built-in one

PushedIn = PushScene | GuidedScene


@dataclass(frozen=True)
class TunedPushes:
    """One identification of pushes, with the scene that it was made in."""

    scene: PushedIn
    tuned: Tuned

    @property
    def identification(self) -> Identification:
        """Parameters with intervals and verdicts."""
        return self.tuned.identification


def scene_of_pushes(recordings: Recordings) -> tuple[PushedIn, str]:
    """Where pushes are played again, and why there.

    Set-points of a robot that Carom knows, on a block that it knows: the robot is told them again. Else the tool is led
    where it was recorded, and only the block is simulated.
    """
    found = pushes_in(recordings)
    by_name = {t.name: t for t in recordings.trajectories}
    given = [by_name[push.trajectory] for push in found if by_name[push.trajectory].controls]
    if found and len(given) == len(found):
        target = given[0].bodies[found[0].target]
        for name in OWN:
            scene = push_scene(name)
            joints = [scene.joint_names[j] for j in scene.servos]
            if all(joint in t.controls for t in given for joint in joints) and _same_block(scene, target):
                mass = scene.mass if target.mass is None else target.mass
                played = PushScene(name, robot=scene.robot, block=scene.block, mass=mass)
                return played, f"the set-points (ctrl.*) are those of `{name}`: its robot is told them again"
        why = "the set-points (ctrl.*) or the block are not those of a scene that Carom has"
    else:
        why = "no set-points (ctrl.*) were recorded"
    return guided_scene(recordings), f"{why}: the tool is led where it was recorded, and only the block is simulated"


def _same_block(scene: PushScene, block: Body) -> bool:
    if block.shape is None:
        return False
    own = np.concatenate(list(scene.corners))
    parts = np.concatenate(block.shape.planar_parts)
    if parts.shape != own.shape or abs(block.shape.full_height - 2 * scene.rest_height) > SIZES:
        return False
    away = np.linalg.norm(parts[:, None] - own[None], axis=-1)
    return bool((away.min(axis=0) < SIZES).all() and (away.min(axis=1) < SIZES).all())


def identify_pushes(
    recordings: Recordings,
    *,
    method: str | None = None,
    parameters: Sequence[str] | None = None,
    fixed: Mapping[str, float] | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> TunedPushes:
    """Tune a simulator to a folder of pushes."""
    chosen: Method = METHODS[0]
    if method is not None:
        if method not in METHODS:
            raise CaromError(f"recordings of pushes: {unknown_name('method', method, METHODS)}")
        chosen = next(m for m in METHODS if m == method)
    scene, why = scene_of_pushes(recordings)
    names = None if parameters is None else tuple(dict.fromkeys(n.strip() for n in parameters if n.strip()))
    told = steps_of(partial(progress), f"identify: {chosen}, {scene.name}")
    tuning = Tuning(names, dict(fixed or {}), chosen)
    tuned = tune(scene, recordings, tuning, seed=seed, threads=threads, progress=told)
    identification = tuned.identification
    noted = Identification(**{**vars(identification), "notes": (why, *identification.notes)})
    return TunedPushes(scene, Tuned(noted, tuned.draws))


def facts_of_pushes(found: TunedPushes) -> dict[str, Any]:
    """What a reader wants beside the parameters."""
    extra = found.identification.extra
    facts = {
        "pushes": len(extra["recordings"]),
        "block off its recorded place": f"{1e3 * extra['block_off_m']:.1f} mm",
        "and turned from it by": f"{np.degrees(extra['turn_off_rad']):.1f} degrees",
    }
    if extra["tool_off_m"] is not None:
        facts["tool off its recorded place"] = f"{1e3 * extra['tool_off_m']:.2f} mm"
    if (held := found.identification.held_out) is not None:
        facts["error of pushes left out, of their path"] = f"{100 * held.median_relative_error:.1f} %"
    return facts


def after_identifying_pushes(found: TunedPushes, recordings: Path) -> tuple[Step, ...]:
    """What to do next."""
    open_ones = [
        e.name.replace("_", " ") for e in found.identification.estimates if e.verdict not in ("identified", "given")
    ]
    steps = []
    if open_ones:
        words = (
            f"Not settled: {', '.join(open_ones)}. Push faster and stop short (what slides on shows friction), with a "
            "soft servo whose set-points are recorded (how far it is held back shows the mass), and at other places of "
            "the block."
        )
        steps.append(Step(words))
    words = "See how well pushes are predicted that the parameters were not fitted to, beside simple predictors."
    steps.append(Step(words, command("evaluate", "--train", recordings, "--test", recordings)))
    return tuple(steps)


def write_pushes(out: Path, found: TunedPushes, recordings: Recordings, steps: Sequence[Step]) -> tuple[Path, ...]:
    """`parameters.yaml`, `calibrated.xml` (opens in MuJoCo as it is) and `report.html` in a folder; or one file."""
    from carom.recipes.pushes_page import pushes_page

    made_from = {"recordings": recordings.made_from()}
    parameters = found.identification.write(out, made_from=made_from)
    if parameters == out:
        return (parameters,)
    xml = calibrated_xml(found)
    atomically(out / "calibrated.xml", lambda file: file.write(xml.encode()))
    page = pushes_page(out / "report.html", found, recordings, steps)
    return parameters, out / "calibrated.xml", page


def calibrated_xml(found: TunedPushes) -> str:
    """The scene as MJCF with the values that were found written into it."""
    from carom.identify.pushes.written import spec_with

    text: str = spec_with(found.scene, found.tuned.values).to_xml()
    return text
