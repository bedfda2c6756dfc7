"""Training of the base model on simulated impacts (Eq. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from carom.core.errors import CaromError, unknown_name
from carom.core.progress import Steps
from carom.engines.contact_frames import contact_frames, to_local
from carom.learn.impact.base_model import PRESETS, BaseModel, Preset, new_network, plain_targets
from carom.learn.impact.dataset import ImpactData
from carom.learn.impact.network import ImpactNetwork, frozen
from carom.scenes.strike import StrikeScene

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
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = new_network(scene, scene.parameters(teacher), chosen)
    model = BaseModel(scene, teacher, chosen, network, {})
    frames = contact_frames(scene, data.strikes)
    local = to_local(scene, frames, data.post)
    x = model.inputs(frames, torch.from_numpy(data.values))
    y = torch.from_numpy(local if chosen.contact_frame else plain_targets(frames, local)).float()
    weight = torch.ones(len(y), 1)
    if chosen.contact_frame:
        weight = 1 / (y.pow(2).sum(-1, keepdim=True) + RELATIVE_FLOOR**2)
    test = min(int(HELD_OUT * len(y)), 5000)
    if test < 10:
        raise CaromError(f"{len(y)} simulated impacts are too few to train on; give --samples 1000 or more")
    network.get_buffer("shift").copy_(_symmetric_mean(x[test:], network))
    network.get_buffer("scale").copy_(x[test:].std(0).clamp_min(1e-3))
    examples = Examples(x, y, weight, test)
    curve = fit_network(network, examples, chosen, steps=steps, seed=seed, progress=progress)
    with torch.no_grad():
        predicted = model.of_mass_centre(frames.first(test), torch.from_numpy(data.values[:test])).double().numpy()
    error = np.linalg.norm(predicted - local[:test], axis=-1) / np.linalg.norm(local[:test], axis=-1)
    held_out = {
        "accuracy@0.1": float((error < 0.1).mean()),
        "accuracy@0.05": float((error < 0.05).mean()),
        "median-relative-error": float(np.median(error)),
        "impacts": float(test),
    }
    return BaseModel(scene, teacher, chosen, network, held_out, tuple(curve))


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
    optimiser = torch.optim.AdamW(network.parameters(), lr=preset.learning_rate, weight_decay=preset.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda s: 0.5 * (1 + np.cos(np.pi * min(s / steps, 1.0))) + 1e-3 if preset.decay else 1.0
    )
    curve = []
    for step in range(steps):
        rows = torch.randint(test, len(x), (preset.batch,), generator=generator)
        a, b = x[rows], y[rows]
        if network.mirror:  # half of the strikes in a mirror: cheaper than both sides of all of them
            flip = torch.rand(preset.batch, 1, generator=generator) < 0.5
            a = torch.where(flip, a * network.get_buffer("signs"), a)
            b = torch.where(flip, b * network.get_buffer("output_signs"), b)
        loss = (weight[rows] * (network.one_sided(a) - b).pow(2)).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        if step % max(steps // 60, 1) == 0 or step == steps - 1:
            with torch.no_grad():
                held = (weight[:test] * (network(x[:test]) - y[:test]).pow(2)).mean()
            curve.append((step, float(loss.detach()), float(held)))
            if progress:
                progress(step + 1, steps)
    return curve
