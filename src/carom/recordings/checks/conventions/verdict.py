"""Which convention each body's quaternions follow, how sure that is, and what to change. Nothing is switched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from carom.recordings.checks.conventions.blows import are_free, of_pairs
from carom.recordings.checks.conventions.contacts import contacts
from carom.recordings.checks.conventions.held import of_approach, of_jolts
from carom.recordings.checks.conventions.hypotheses import CHANGES
from carom.recordings.checks.conventions.upright import on_the_ground, on_the_table
from carom.recordings.checks.findings import Observation
from carom.recordings.trajectory import Recordings
from carom.state import Array

PRIOR = np.array([0.97, 0.01, 0.01, 0.01])  #: before any recording is seen, in the order of `CHANGES`
SURE = 0.99  #: probability from where on a change is a fault
LIKELY = 0.95  #: probability from where on a change is worth a warning
SAYS = 1.0  #: a difference of log likelihoods below which a witness tells two ways not apart


@dataclass(frozen=True)
class Convention:
    """What the recordings say about the quaternions of one body."""

    probability: Mapping[str, float]  #: of each of the ways in which they may be meant
    evidence: Mapping[str, Mapping[str, float]]  #: by witness: log likelihood of each way, less that as declared
    untold: tuple[str, ...]  #: ways that these recordings cannot tell from the most probable one

    @property
    def found(self) -> str:
        """The most probable way."""
        return max(self.probability, key=lambda way: self.probability[way])


def conventions(recordings: Recordings) -> dict[str, Convention]:
    """The convention of each body whose orientation is measured. The recordings must be in the frames of their files."""
    frame, bodies = recordings.units.frame, _oriented(recordings)
    alone: dict[str, dict[str, Array]] = {name: {} for name in bodies}
    target = next((name for name, body in recordings.bodies.items() if body.role == "target"), None)
    striker = next((name for name, body in recordings.bodies.items() if body.role == "striker"), None)
    met = contacts(recordings, target, striker) if target is not None and striker is not None else []
    free = are_free(met)
    for name in bodies:
        on_its_own = recordings.bodies[name].role == "target" or (name == striker and free)
        witnesses: dict[str, Array | None] = {}
        if on_its_own:
            witnesses = {"table": on_the_table(recordings, name), "ground": on_the_ground(recordings, name)}
        elif name == striker:
            witnesses = {"approach": of_approach(met, frame), "jolt": of_jolts(met, frame)}
        alone[name] = {witness: logs for witness, logs in witnesses.items() if logs is not None}
    pair = of_pairs(met, frame) if target in bodies else None
    found = {}
    for name in bodies:
        own = dict(alone[name])
        if pair is not None and target is not None and striker is not None and name in (target, striker):
            other = striker if name == target else target
            beside = _total(alone.get(other, {})) + np.log(PRIOR)
            logs = pair + (beside[None, :] if name == target else beside[:, None])
            own["blow"] = np.logaddexp.reduce(logs, axis=1 if name == target else 0)
        found[name] = _weighed(own)
    return found


def _oriented(recordings: Recordings) -> list[str]:
    everywhere = recordings.trajectories
    return [n for n in recordings.bodies if any(t.quaternion_world.get(n) is not None for t in everywhere)]


def _total(logs: Mapping[str, Array]) -> Array:
    return np.sum([np.zeros(4), *logs.values()], axis=0)


def _weighed(logs: Mapping[str, Array]) -> Convention:
    total = _total(logs)
    posterior = total + np.log(PRIOR)
    chance = np.exp(posterior - np.logaddexp.reduce(posterior))
    best = int(np.argmax(posterior))
    alike = [CHANGES[i] for i in range(4) if i != best and abs(total[i] - total[best]) < SAYS]
    evidence = {w: {c: float(v) for c, v in zip(CHANGES, part - part[0], strict=True)} for w, part in logs.items()}
    return Convention({c: float(p) for c, p in zip(CHANGES, chance, strict=True)}, evidence, tuple(alike))


def check_conventions(found: Mapping[str, Convention]) -> Iterator[Observation]:
    """A line for each body whose quaternions are not what the format says, with what to change."""
    for name, convention in found.items():
        chance = convention.probability
        wrong = 1 - chance[CHANGES[0]]
        if wrong < LIKELY:
            continue
        last = chance["w-last"] + chance["w-last and inverted"]
        inverted = chance["inverted"] + chance["w-last and inverted"]
        seen, todo, open_ = [], [], ""
        if last >= 0.5:
            seen.append("look like x, y, z, w under w-first names")
            todo.append(f"rename the columns of {name} so that {name}.qw is the last of the four")
        if inverted >= LIKELY * wrong:
            seen.append("turn the world into the body instead of the body into the world")
            todo.append(f"change the signs of the x, y and z parts of {name}'s quaternions")
        elif last >= 0.5 and inverted > wrong - LIKELY * wrong:
            open_ = "; whether they are inverted too cannot be told from these recordings"
        if not seen:
            continue
        yield Observation(
            "error" if wrong >= SURE else "warning",
            "quaternion-convention",
            f"{name}: the quaternions {' and '.join(seen)} ({_percent(wrong)} sure){open_}: "
            f"{' and '.join(todo)}; they are read as declared, nothing was changed",
            column=f"{name}.qw",
        )


def _percent(chance: float) -> str:
    return "more than 99.9 %" if chance > 0.999 else f"{100 * chance:.1f} %"
