"""How long the 200,000 transitions of a policy take in each engine, and where the time goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from carom.bench.checkpoint import Rows
from carom.envs import SegmentStarts, StrikeBatch
from carom.envs.batch import Mask, Strike, engine_strike
from carom.envs.sb3 import StrikeVecEnv
from carom.simulate.model import HybridModel
from carom.state import Array, StrikeCommands
from carom.train import preset_of, train

ENGINES = ("mujoco", "hybrid")
TRANSITIONS = 20_000  #: that are measured
WHOLE = 200_000  #: that the seconds are stated for
Progress = Callable[[str, int, int], None]


def training_seconds(model: HybridModel, seed: int, threads: int, progress: Progress) -> Rows:
    """Seconds of a whole training with SAC (preset `fast`) by engine and part, from a shorter one of each."""
    rows: Rows = []
    for name in ENGINES:
        engine = model.simulator(name, threads=threads)
        strike, spent = _timed(engine_strike(engine))
        with TemporaryDirectory() as folder:
            policy = train(
                lambda count, strike=strike, scene=engine.scene: StrikeVecEnv(  # type: ignore[misc]
                    StrikeBatch(strike, scene, starts=SegmentStarts(), count=count, seed=seed)
                ),
                Path(folder), steps=TRANSITIONS, seed=seed,
                progress=lambda what, done, total, name=name: progress(f"train in {name}", done, total),  # type: ignore[misc]
            )  # fmt: skip
        timing, times = policy.made_by["timing"], WHOLE / TRANSITIONS
        learning = TRANSITIONS - policy.made_by["settings"]["warm_up"]  # before that there are no updates
        parts = {
            "engine": times * spent[0],
            "rules": times * (timing["environment"] - spent[0]),
            "updates": (WHOLE - preset_of("fast", "sac").warm_up) / learning * timing["updates"],
            "rest": times * timing["rest"],
        }
        for part, seconds in {**parts, "all": sum(parts.values())}.items():
            rows.append({
                "setting": f"training, {part}", "method": name, "metric": "training-seconds", "value": float(seconds)
            })  # fmt: skip
    return rows


def _timed(strike: Strike) -> tuple[Strike, list[float]]:
    """The same strike, and the seconds that all its calls have taken so far (in a list of one)."""
    spent = [0.0]

    def timed(commands: StrikeCommands) -> tuple[Array, Mask]:
        start = perf_counter()
        answer = strike(commands)
        spent[0] += perf_counter() - start
        return answer

    return timed, spent
