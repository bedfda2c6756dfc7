"""`carom bench speed`: strikes per second from approach to rest, and what a collision alone costs, in one run."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec
from time import perf_counter

import numpy as np

from carom.bench.benchmark import Benchmark, Options, Work
from carom.bench.growth import growth_rows
from carom.bench.identification_speed import PATIENCE, identification_speed
from carom.bench.planning import SHAPES, hybrid_of, learned
from carom.bench.slide_ends import SLIDES, slide_rows
from carom.core.progress import steps_of
from carom.core.work import Rows
from carom.engines.approach import advanced, at_distance, time_to_touch
from carom.engines.contact_frames import contact_frames
from carom.engines.contract import Simulator
from carom.engines.mujoco.collide import Collider
from carom.hybrid.model import HybridModel
from carom.hybrid.simulator import HybridSimulator
from carom.identify.tosses.search import RECIPE
from carom.learn.impact.sample import sample_strikes
from carom.learn.impact.student import Student
from carom.plan.search import HORIZON
from carom.plan.space import STANDOFF
from carom.state import Strikes

COUNTS = (1, 100, 10_000)
COLLISIONS = 2048
ENVIRONMENT = "semi-cylinder"  #: the shape of the environments
ENVIRONMENTS = (1, 128, 2048)  #: stepped together
IDENTIFICATIONS = 5  #: sets of tosses
TRAINING, TRAINED = 200_000, 20_000  #: transitions of a training: that seconds are stated for, and that are measured
LONG_ENOUGH = 3.0  #: [s] that a rate is measured over, at least


def _work(o: Options) -> Work:
    """Every shape and batch size, each draw with other strikes; identifications; trainings."""
    shapes = [(f"{shape}/{draw}", partial(_shape, shape, draw, o)) for shape in SHAPES for draw in range(o.draws)]
    found = [
        (f"identification/{i}/{RECIPE}", partial(_identification, o.seed + i, o.threads))
        for i in range(IDENTIFICATIONS)
    ]
    with_policies = find_spec("stable_baselines3") is not None  # an extra
    trainings = [(f"training/{draw}", partial(_training, draw, o)) for draw in range(o.draws) if with_policies]
    ends = [(f"slides/{shape}", partial(_slides, shape, o)) for shape in SHAPES]
    return [*shapes, *ends, ("growth", partial(_growth, o)), *found, *trainings]


def _notes(o: Options) -> tuple[str, ...]:
    return (
        "Strikes from 2 cm before contact to rest, all cores; ratios are of the same run. mujoco: mujoco.batch, a "
        "step of 1 ms, strikes dropped from the batch as they come to rest. hybrid: learned impact and slider; "
        "hybrid-mujoco: learned impact, MuJoCo finds the contact and slides.",
        f"collision: the blow alone, {COLLISIONS} strikes, from first touch to separation.",
        "environment: steps of carom/StrikeSegment-v0, N together, same starts and actions in both engines, "
        "infos and new episodes included.",
        f"training: SAC with the preset `fast`, {TRAINING:,} transitions, from {TRAINED:,} measured in each "
        "engine, one after the other. engine: the strikes; rules: the rest of the environment; updates: torch "
        "within SB3; rest: SB3 itself, and checkpoints.",
        "identification: friction, stiffness, damping and inertia from 8 simulated tosses, until Eq. 1 is the same "
        "(within 2 %): Carom's search, all cores, against plain CMA-ES (cmaes as it comes) over one-thread "
        f"mujoco.rollout, in the same run. reached: share of runs in which the latter got there; it was stopped at "
        f"{PATIENCE:.0f} times Carom's time.",
        f"slides: {SLIDES:,} random ones read off the table against the integrator with half its usual steps: all "
        "directions and proportions of glide and spin, up to the speed that the table answers for. share-within: "
        "0.1 mm and 0.1 degrees.",
        "growth: the semi-cylinder's hybrid, all strikes in one call; working-megabytes: beside strikes and results.",
        "share: where the hybrid's time goes at N = 10,000; geometry is approach and contact frame.",
    )


BENCHMARK = Benchmark(
    "speed",
    draws=3,
    settings=lambda o: {"draws": o.draws, "seed": o.seed, "threads": o.threads, "counts": COUNTS},
    work=_work,
    notes=_notes,
)


def _training(draw: int, o: Options) -> Rows:
    """Where the time of a training goes."""
    from carom.bench.training_speed import training_seconds

    lesson, recordings = learned(o, ENVIRONMENT, 0)
    return training_seconds(
        hybrid_of(lesson, recordings),
        measured=TRAINED,
        whole=TRAINING,
        seed=o.seed + draw,
        threads=o.threads,
        progress=o.progress,
    )


def _slides(shape: str, o: Options) -> Rows:
    """How near slides that are read off end to integrated ones."""
    return slide_rows(hybrid_of(*learned(o, shape, 0)), shape, o.seed, steps_of(o.progress, f"{shape}: slides"))


def _growth(o: Options) -> Rows:
    """Time and memory over the number of strikes."""
    model = hybrid_of(*learned(o, ENVIRONMENT, 0))
    return growth_rows(model, o.seed, o.threads or os.cpu_count() or 1)


def _identification(seed: int, threads: int) -> Rows:
    """The identification of 8 tosses, ours and plain."""
    found = identification_speed(seed, threads)
    setting = "identification, 8 tosses"
    return [
        {"setting": setting, "method": "carom", "metric": "seconds", "value": found["carom-s"]},
        {"setting": setting, "method": "plain-cma", "metric": "seconds", "value": found["plain-cma-s"]},
        {"setting": setting, "method": "carom", "metric": "times-faster", "value": found["ratio"]},
        {"setting": setting, "method": "plain-cma", "metric": "reached", "value": found["plain-reached"]},
        {"setting": setting, "method": "carom", "metric": "equation-1", "value": found["equation-1"]},
        {"setting": setting, "method": "engine", "metric": "share", "value": found["engine-share"]},
    ]


def _shape(shape: str, draw: int, o: Options) -> Rows:
    model = hybrid_of(*learned(o, shape, 0))
    rng = np.random.default_rng([o.seed, draw, 11])
    rows: Rows = []

    def add(setting: str, method: str, metric: str, value: float) -> None:
        rows.append({"setting": setting, "method": method, "metric": metric, "value": value})

    engines = {name: model.simulator(name, threads=o.threads) for name in ("mujoco", "hybrid-mujoco", "hybrid")}
    for count in COUNTS:
        initial = at_distance(model.scene, sample_strikes(model.scene, count, rng), STANDOFF, {})
        rate = {}
        for name, engine in engines.items():
            rate[name] = _rate(engine, initial, tries=3 if count < COUNTS[-1] or name == "hybrid" else 1)
            add(f"{shape}, N = {count}", name, "strikes-per-second", rate[name])
            add(f"{shape}, N = {count}", name, "ratio-to-mujoco", rate[name] / rate["mujoco"])
            o.progress(f"{shape}: {name}", count, COUNTS[-1])
    strikes = sample_strikes(model.scene, COLLISIONS, rng)
    for method, value in _collisions(model, strikes, o.threads).items():
        add(f"{shape}, collision", method, "strikes-per-second", value)
    hybrid = engines["hybrid"]
    if isinstance(hybrid, HybridSimulator) and isinstance(hybrid.impact.model, Student):
        for part, share in _shares(hybrid, initial).items():
            add(f"{shape}, N = {COUNTS[-1]}", part, "share", share)
    if shape == ENVIRONMENT and find_spec("stable_baselines3") is not None:  # environments are an extra
        for count, rate in _environment_steps(model, rng, o.threads).items():
            for name, value in rate.items():
                add(f"environment, N = {count}", name, "steps-per-second", value)
                add(f"environment, N = {count}", name, "ratio-to-mujoco", value / rate["mujoco"])
    return rows


def _rate(engine: Simulator, initial: Strikes, *, tries: int) -> float:
    """Strikes per second of an engine: the median of some tries."""
    engine.rollout(initial[:1], 0.1)  # the first call of anything pays for its caches
    taken = []
    for _ in range(tries):
        start = perf_counter()
        engine.rollout(initial, HORIZON)
        taken.append(perf_counter() - start)
    return len(initial) / float(np.median(taken))


def _environment_steps(model: HybridModel, rng: np.random.Generator, threads: int) -> dict[int, dict[str, float]]:
    """Strikes per second of the batched environment to train in, by count and engine: same starts, same actions."""
    from carom.envs import SegmentStarts, make_batch
    from carom.envs.sb3 import StrikeVecEnv

    found: dict[int, dict[str, float]] = {}
    for count in ENVIRONMENTS:
        actions = rng.uniform(-1, 1, (count, 3)).astype(np.float32)
        rate = {}
        for name in ("mujoco", "hybrid"):
            engine = model.simulator(name, threads=threads)
            env = StrikeVecEnv(make_batch(engine, SegmentStarts(), count=count, seed=1))
            env.reset()
            env.step(actions)  # pays for the caches
            start, steps = perf_counter(), 0
            while perf_counter() - start < LONG_ENOUGH:
                env.step(actions)
                steps += 1
            rate[name] = count * steps / (perf_counter() - start)
        found[count] = rate
    return found


def _collisions(model: HybridModel, strikes: Strikes, threads: int) -> dict[str, float]:
    """Blows per second, MuJoCo's and the network's."""
    parameters = model.scene.parameters("mujoco")
    values = np.tile([model.values[p.name] for p in parameters], (len(strikes), 1))
    collider = Collider(model.scene, parameters, threads=threads)
    found = {}
    for name, ask in (
        ("mujoco", lambda: collider.run(strikes, values)),
        ("network", lambda: model.student.predict(strikes)),
    ):
        ask()
        start = perf_counter()
        ask()
        found[name] = len(strikes) / (perf_counter() - start)
    return found


def _shares(hybrid: HybridSimulator, initial: Strikes) -> dict[str, float]:
    """Shares of a rollout's time, its parts run one by one."""
    student = hybrid.impact.model
    marks = [perf_counter()]
    contact = advanced(initial, time_to_touch(hybrid.scene, initial))
    frames = contact_frames(hybrid.scene, contact, touch=True)
    marks.append(perf_counter())
    post = student.post_in(frames) if isinstance(student, Student) else np.zeros((len(initial), 3))
    marks.append(perf_counter())
    hybrid.slide(initial.target_pose, post, np.full((len(initial), 2), HORIZON))
    marks.append(perf_counter())
    spent = np.diff(marks)
    return dict(zip(("geometry", "network", "slider"), (spent / spent.sum()).tolist(), strict=True))
