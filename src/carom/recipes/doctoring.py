"""`carom doctor`: whether this installation works, and what to send with a bug report."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, final

import numpy as np

from carom.core.artefacts import write_text
from carom.core.progress import Progress, silent
from carom.core.version import __version__
from carom.recipes.result import PrintedTable, Result, command

__all__ = ["DoctorResult", "doctor"]

State = Literal["ok", "missing", "careful", "broken"]
PYTHON = (3, 11)
FILE = "doctor.json"
LITTLE = 2e9  #: [bytes] of disk or memory below which larger work will fail
#: name of a library to import, where it is not the package's
IMPORTED = {"pyyaml": "yaml", "scikit-learn": "sklearn", "mujoco-mjx": "mujoco.mjx", "pillow": "PIL"}
FALL, GRAVITY, STEP, STEPS = 1.0, 9.81, 1e-3, 400  #: [m], [m/s^2], [s] of the ball that falls
FRICTION, SPEED = 0.3, 0.7  #: of the box that slides, [m/s]
NEAR = (0.2, 1.9)  #: of the striker's speed that a block leaves with after a head-on strike
BALL = (
    '<mujoco><option timestep="{step}" gravity="0 0 -{gravity}"/><worldbody><body pos="0 0 1"><freejoint/>'
    '<geom size="0.05" mass="1"/></body></worldbody></mujoco>'
)
BOX = (
    '<mujoco><option timestep="0.0005" gravity="0 0 -{gravity}" cone="elliptic" impratio="100"/><worldbody>'
    '<geom type="plane" size="5 5 1" friction="{friction} 0 0"/>'
    '<body pos="0 0 0.02"><freejoint/><geom type="box" size="0.05 0.05 0.02" mass="0.5" friction="{friction} 0 0"/>'
    "</body></worldbody></mujoco>"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: State
    words: str  #: what was found
    advice: str = ""  #: what to do about it


@final
@dataclass(frozen=True)
class DoctorResult(Result):
    """What was found; `broken` if something does not work."""

    findings: tuple[Finding, ...]

    @property
    def broken(self) -> bool:
        """Whether something that Carom needs does not work."""
        return any(one.state == "broken" for one in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return {"carom": __version__, "broken": self.broken, "findings": [asdict(one) for one in self.findings]}

    def tables(self) -> Sequence[PrintedTable]:
        rows = [[one.what, one.state, one.words] for one in self.findings]
        return (PrintedTable(f"carom {__version__}", ("what", "state", "found"), rows),)

    def next_commands(self) -> Sequence[str]:
        return () if self.broken else (command("demo"),)

    def notes(self) -> Sequence[str]:
        kind = {"broken": "broken", "careful": "warning", "missing": "optional"}
        lines = [
            f"{kind[f.state]}: {f.what}: {f.advice or f.words}" for f in self.findings if f.state != "ok" and f.advice
        ]
        verdict = "something is broken: see above" if self.broken else "this installation works"
        send = f"with a bug report send the command, what it said, and what {command('doctor', '--json', FILE)} writes"
        return (*lines, verdict, send)


def doctor(*, progress: Progress = silent) -> DoctorResult:
    """Look at versions, extras, small simulations with known outcomes, shipped networks, threads, memory and disk."""
    looks: Sequence[Callable[[], Iterator[Finding]]] = (
        _python,
        _packages,
        _extras,
        _simulation,
        _networks,
        _threads,
        _memory,
        _disk,
    )
    found: list[Finding] = []
    for number, look in enumerate(looks):
        progress("look", number, len(looks))
        try:
            found += look()
        except Exception as error:  # whatever it is: that is what a doctor is for
            words = f"{type(error).__name__}: {' '.join(str(error).split()):.200}"
            found.append(Finding(look.__name__.strip("_"), "broken", words, f"{words}; install Carom anew"))
    progress("look", len(looks), len(looks))
    return DoctorResult(tuple(found))


def _python() -> Iterator[Finding]:
    words = f"Python {platform.python_version()}, {platform.system()} {platform.release()} {platform.machine()}"
    old = sys.version_info[:2] < PYTHON
    yield Finding("system", "broken" if old else "ok", words, "Carom needs Python 3.11 or later" if old else "")
    yield Finding("carom", "ok", f"{__version__} in {_home(Path(__file__).parents[1])}")


def _home(path: Path) -> str:
    """A path without the user's name."""
    return str(path).replace(str(Path.home()), "~", 1) if str(Path.home()) != "/" else str(path)


def _requirements() -> tuple[list[tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """Packages and the versions that they need at least: always, and by extra."""
    needed: list[tuple[str, str]] = []
    extras: dict[str, list[tuple[str, str]]] = {}
    for line in metadata.requires("carom") or ():
        stated, _, marker = line.partition(";")
        match = re.match(r"\s*([\w.-]+)\s*(?:\[[^\]]*\])?\s*(?:>=\s*([\w.]+))?", stated)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        if match is None or match[1] == "carom" or "python_version" in marker or "sys_platform" in marker:
            continue
        (needed if extra is None else extras.setdefault(extra[1], [])).append((match[1], match[2] or "0"))
    return needed, extras


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


def _lack(name: str, least: str) -> str | None:
    """What is wrong with a package, if anything."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    return f"{name} {version} is older than {least}" if _numbers(version) < _numbers(least) else None


def _packages() -> Iterator[Finding]:
    """The libraries that Carom cannot do without: there, new enough, and imported."""
    try:
        needed, _ = _requirements()
    except metadata.PackageNotFoundError:
        yield Finding("packages", "careful", "Carom is not installed, only found", "install it: pip install carom")
        return
    for name, least in needed:
        wrong = _lack(name, least)
        if wrong is None:
            try:
                __import__(IMPORTED.get(name, name.replace("-", "_")))
            except Exception as error:
                wrong = f"{name} {metadata.version(name)} cannot be imported: {' '.join(str(error).split()):.150}"
        advice = "" if wrong is None else f"{wrong}: pip install --upgrade {name}"
        yield Finding(name, "ok" if wrong is None else "broken", wrong or metadata.version(name), advice)


def _extras() -> Iterator[Finding]:
    """What is optional."""
    try:
        _, extras = _requirements()
    except metadata.PackageNotFoundError:
        return
    for extra, packages in extras.items():
        if extra in ("all", "dev", "docs", "fuzz"):
            continue
        wrong = [words for name, least in packages if (words := _lack(name, least)) is not None]
        have = ", ".join(f"{name} {metadata.version(name)}" for name, _ in packages if _lack(name, "0") is None)
        advice = f"{', '.join(wrong)}; where it is wanted: pip install 'carom[{extra}]'" if wrong else ""
        yield Finding(f"extra {extra}", "missing" if wrong else "ok", ", ".join(wrong) or have, advice)


def _simulation() -> Iterator[Finding]:
    """A ball falls and a box slides: MuJoCo's numbers against closed formulas."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(BALL.format(step=STEP, gravity=GRAVITY))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=STEPS)
    expected = FALL - GRAVITY * STEP**2 * STEPS * (STEPS + 1) / 2  # what semi-implicit Euler gives, to the last digits
    off = abs(float(data.qpos[2]) - expected)
    yield _number("a ball that falls", float(data.qpos[2]), expected, off < 1e-9, "m")
    model = mujoco.MjModel.from_xml_string(BOX.format(gravity=GRAVITY, friction=FRICTION))
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=200)  # at rest on the ground
    before = float(data.qpos[0])
    data.qvel[0] = SPEED
    mujoco.mj_step(model, data, nstep=2000)
    way, expected = float(data.qpos[0]) - before, SPEED**2 / (2 * FRICTION * GRAVITY)
    yield _number("a box that slides", way, expected, abs(way / expected - 1) < 0.05, "m")


def _number(what: str, found: float, expected: float, good: bool, unit: str) -> Finding:
    words = f"{found:.6f} {unit}, expected {expected:.6f}"
    return Finding(
        what, "ok" if good else "broken", words, "" if good else f"{words}: MuJoCo computes something else here"
    )


def _networks() -> Iterator[Finding]:
    """The shipped networks: read, checked, and asked for one strike."""
    from carom.learn import shipped_bases
    from carom.plan import approach, strike_space
    from carom.scenes.strike import builtin

    scene = builtin("square")
    space = strike_space(scene, np.zeros(3))
    strikes = approach(scene, space.commands(np.array([[0.125, 0.5, 0.5]])))
    speed = float(np.linalg.norm(strikes.striker_velocity[0, :2]))
    bases = shipped_bases(scene)
    for base in bases:
        defaults = np.array([p.default for p in base.parameters])
        post = base.predict(strikes, defaults)[0]
        share = float(np.linalg.norm(post[:2])) / speed
        good = bool(np.isfinite(post).all()) and NEAR[0] < share < NEAR[1]
        words = f"a block leaves with {share:.4f} of the striker's speed"
        advice = "" if good else f"{words}, expected {NEAR[0]:g} to {NEAR[1]:g}: install Carom anew"
        yield Finding(f"network taught by {base.teacher}", "ok" if good else "broken", words, advice)


def _threads() -> Iterator[Finding]:
    """Cores, and whether an engine gives the same on one thread as on all."""
    import torch

    from carom.engines import MujocoSimulator
    from carom.plan import strike_space
    from carom.scenes.strike import builtin

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS")
    words = f"{usable} cores; torch has {torch.get_num_threads()} threads" + (
        f", OMP_NUM_THREADS={asked}" if asked else ""
    )
    yield Finding("cores", "ok", words)
    scene = builtin("square")
    strikes = strike_space(scene, np.zeros(3)).initial(np.random.default_rng(0).random((64, 3)))
    found, seconds = [], []
    for threads in (1, 0):
        start = perf_counter()
        found.append(MujocoSimulator(scene, threads=threads).rollout(strikes, 0.3).rest)
        seconds.append(perf_counter() - start)
    same = np.array_equal(found[0], found[1], equal_nan=True)
    times = f"64 strikes in {seconds[0]:.2f} s on one thread, {seconds[1]:.2f} s on all"
    words = f"{times}; {'equal' if same else 'other'} results"
    advice = "" if same else "results depend on the number of threads: give --threads 1, and tell us"
    yield Finding("threads", "ok" if same else "broken", words, advice)


def _memory() -> Iterator[Finding]:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    little = size < LITTLE
    yield Finding(
        "memory", "careful" if little else "ok", f"{size / 1e9:.1f} GB", "too little for trainings" if little else ""
    )


def _disk() -> Iterator[Finding]:
    """Room, and whether files can be written here as a whole."""
    for what, place in (("disk, this folder", Path.cwd()), ("disk, temporary files", Path(tempfile.gettempdir()))):
        free = shutil.disk_usage(place).free
        words = f"{free / 1e9:.1f} GB free"
        try:
            with tempfile.TemporaryDirectory(prefix=".carom-", dir=place) as name:
                write_text(Path(name) / "file", "whole")
                good = (Path(name) / "file").read_text() == "whole"
        except OSError as error:
            yield Finding(what, "careful", f"{words}; cannot be written into", f"{error.strerror}: work somewhere else")
            continue
        if not good:
            yield Finding(what, "broken", f"{words}; what is written is not what is read")
        else:
            few = free < LITTLE
            yield Finding(
                what, "careful" if few else "ok", words, "almost full: give --out another place" if few else ""
            )
