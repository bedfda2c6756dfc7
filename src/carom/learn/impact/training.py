"""Training of the base model on simulated impacts (Eq. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Steps
from carom.engines.contact_frames import contact_frames, to_local
from carom.learn.impact.adamw import AdamW
from carom.learn.impact.base_model import PRESETS, BaseModel, Preset, new_network, plain_targets
from carom.learn.impact.dataset import ImpactData
from carom.learn.impact.network import ImpactNetwork, frozen
from carom.scenes.strike import StrikeScene
from carom.state import Array

HELD_OUT = 0.05  #: share of the impacts kept for the held-out accuracy, at most 5,000
RELATIVE_FLOOR = 0.15  #: outcomes smaller than this share of the approach speed are not weighted further up


def train(
    scene: StrikeScene,
    teacher: str,
    data: ImpactData,
    *,
    preset: str = "default",
    steps: int | None = None,
    seed: int = 0,
    progress: Steps | None = None,
) -> BaseModel:
    """Train `f(S_pre, P) -> S_post` and measure it on impacts that it has not seen."""
    if preset not in PRESETS:
        raise CaromError(unknown_name("preset", preset, PRESETS))
    chosen = PRESETS[preset]
    model = BaseModel(scene, teacher, chosen, untrained(scene, teacher, chosen, seed), {})
    x, y, weight = examples_from(model, data)
    test = min(int(HELD_OUT * len(y)), 5000)
    if test < 10:
        raise CaromError(f"{len(y)} simulated impacts are too few to train on; give --samples 1000 or more")
    curve = fit_network(model.network, Examples(x, y, weight, test), chosen, steps=steps, seed=seed, progress=progress)
    return replace(model, held_out=accuracy_of(relative_errors(model, data.first(test))), curve=tuple(curve))


def untrained(scene: StrikeScene, teacher: str, preset: Preset, seed: int) -> ImpactNetwork:
    """A network with random weights that depend on the seed alone."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return new_network(scene, teacher, preset)


def examples_from(model: BaseModel, data: ImpactData) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Inputs [N, F], outcomes [N, 3] and weights [N, 1] that a model's network learns from."""
    frames, values = contact_frames(model.scene, data.strikes), torch.from_numpy(data.values)
    local = to_local(model.scene, frames, data.post)
    x = model.inputs(frames, values)
    if not model.preset.contact_frame:
        return x, torch.from_numpy(plain_targets(frames, local)).float(), torch.ones(len(x), 1)
    y = torch.from_numpy(local).float() / model.scale(frames, values)
    return x, y, 1 / (y.pow(2).sum(-1, keepdim=True) + RELATIVE_FLOOR**2)


def relative_errors(model: BaseModel, data: ImpactData, *, floor: float = 0.0) -> Array:
    """Errors of a model on simulated impacts [N], over the size of each outcome, or over `floor` if that is more."""
    frames = contact_frames(model.scene, data.strikes)
    local = to_local(model.scene, frames, data.post)
    with torch.no_grad():
        predicted = model.of_mass_centre(frames, torch.from_numpy(data.values)).double().numpy()
    size = np.maximum(np.linalg.norm(local, axis=-1), floor)
    return np.asarray(np.linalg.norm(predicted - local, axis=-1) / size)


def accuracy_of(errors: Array) -> dict[str, float]:
    """What is kept of relative errors [N]."""
    return {
        "accuracy@0.1": float((errors < 0.1).mean()),
        "accuracy@0.05": float((errors < 0.05).mean()),
        "median-relative-error": float(np.median(errors)),
        "impacts": float(len(errors)),
    }


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """torch on this many threads; on one: the same bits on any number of cores, no slower for matrices this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _symmetric_mean(x: torch.Tensor, network: torch.nn.Module) -> torch.Tensor:
    """Mean of the inputs over the data and their mirror image, so that the mirrored branch is scaled alike."""
    mean = x.mean(0)
    return torch.where(network.get_buffer("signs") < 0, torch.zeros_like(mean), mean)


@dataclass(frozen=True)
class Examples:
    """What a network learns from; the first `test` rows are held out."""

    x: torch.Tensor  #: [N, F] inputs
    y: torch.Tensor  #: [N, 3] outcomes
    weight: torch.Tensor  #: [N, 1] of their squared errors
    test: int


def fit_network(
    network: ImpactNetwork,
    examples: Examples,
    preset: Preset,
    *,
    steps: int | None = None,
    seed: int = 0,
    progress: Steps | None = None,
) -> list[tuple[int, float, float]]:
    """Minimise the weighted squared error with AdamW, then freeze; returns (step, training loss, held-out loss)."""
    seen = examples.x[examples.test :]
    network.get_buffer("shift").copy_(_symmetric_mean(seen, network))
    network.get_buffer("scale").copy_(seen.std(0).clamp_min(1e-3))
    with torch_threads(1):
        curve = _fit(network, examples, preset, steps or preset.steps, torch.Generator().manual_seed(seed), progress)
    frozen(network)
    return curve


def _fit(
    network: ImpactNetwork,
    examples: Examples,
    preset: Preset,
    steps: int,
    generator: torch.Generator,
    progress: Steps | None,
) -> list[tuple[int, float, float]]:
    x, y, weight, test = examples.x, examples.y, examples.weight, examples.test
    optimiser = AdamW(network.parameters(), weight_decay=preset.weight_decay)
    curve = []
    for step in range(steps):
        rows = torch.randint(test, len(x), (preset.batch,), generator=generator)
        a, b = x[rows], y[rows]
        if network.mirror:  # half of the strikes in a mirror: cheaper than both sides of all of them
            flip = torch.rand(preset.batch, 1, generator=generator) < 0.5
            a = torch.where(flip, a * network.get_buffer("signs"), a)
            b = torch.where(flip, b * network.get_buffer("output_signs"), b)
        loss = (weight[rows] * (network.one_sided(a) - b).pow(2)).mean()
        share = 0.5 * (1 + np.cos(np.pi * min(step / steps, 1.0))) + 1e-3 if preset.decay else 1.0
        optimiser.step(loss, preset.learning_rate * float(share))
        if step % max(steps // 60, 1) == 0 or step == steps - 1:
            with torch.no_grad():
                held = (weight[:test] * (network(x[:test]) - y[:test]).pow(2)).mean()
            curve.append((step, float(loss.detach()), float(held)))
            if progress:
                progress(step + 1, steps)
    return curve
