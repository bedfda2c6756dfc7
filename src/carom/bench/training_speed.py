"""How long the training of a policy takes in each engine, and where the time goes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from carom.core.progress import Progress
from carom.core.work import Rows
from carom.engines.contract import Simulator
from carom.envs import SegmentStarts, StrikeBatch
from carom.envs.batch import engine_strike
from carom.envs.outcome import Mask
from carom.envs.sb3 import StrikeVecEnv
from carom.hybrid.model import HybridModel
from carom.state import Array, StrikeCommands
from carom.train import Training, preset_of, train


def training_seconds(
    model: HybridModel, *, measured: int, whole: int, seed: int, threads: int, progress: Progress
) -> Rows:
    """Seconds of `whole` transitions of SAC (preset `fast`) by engine and part, from as many as are `measured`."""
    rows: Rows = []
    for name in ("mujoco", "hybrid"):
        parts = _parts(model.simulator(name, threads=threads), measured, whole, seed, progress)
        for part, seconds in {**parts, "all": sum(parts.values())}.items():
            setting = f"training, {part}"
            rows.append({"setting": setting, "method": name, "metric": "training-seconds", "value": seconds})
    return rows


def _parts(engine: Simulator, measured: int, whole: int, seed: int, progress: Progress) -> dict[str, float]:
    strike, in_engine = engine_strike(engine), 0.0

    def timed(commands: StrikeCommands) -> tuple[Array, Mask]:
        nonlocal in_engine
        start = perf_counter()
        answer = strike(commands)
        in_engine += perf_counter() - start
        return answer

    def environments(count: int) -> StrikeVecEnv:
        return StrikeVecEnv(StrikeBatch(timed, engine.scene, starts=SegmentStarts(), count=count, seed=seed))

    with TemporaryDirectory() as folder:
        made_by = train(environments, Path(folder), Training(steps=measured, seed=seed), progress=progress).made_by
    timing, times = made_by["timing"], whole / measured
    learning = measured - made_by["settings"]["warm_up"]  # before that there are no updates
    return {
        "engine": times * in_engine,
        "rules": times * (timing["environment"] - in_engine),
        "updates": (whole - preset_of("fast", "sac").warm_up) / learning * timing["updates"],
        "rest": times * timing["rest"],
    }
