"""Which convention each body's quaternions follow, how sure that is, and what to change. Nothing is switched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from carom.recordings.checks.conventions.blows import are_free, of_pairs
from carom.recordings.checks.conventions.contacts import contacts
from carom.recordings.checks.conventions.held import of_approach, of_jolts
from carom.recordings.checks.conventions.hypotheses import CHANGES
from carom.recordings.checks.conventions.upright import on_the_ground, on_the_table
from carom.recordings.checks.findings import Convention, Observation
from carom.recordings.trajectory import Recordings
from carom.state import Array

PRIOR = np.array([0.97, 0.01, 0.01, 0.01])  #: of one body, before any recording is seen, in the order of `CHANGES`
ALIKE, ALONE, MIXED = 6e-3, 4e-3, 2e-4  #: of two bodies: the same change in both, a change in one, two different ones
SURE = 0.99  #: probability from where on a change is a fault
LIKELY = 0.9  #: probability from where on a change is worth a warning
SAYS = 1.0  #: a difference of log likelihoods below which a witness tells two ways not apart


def conventions(recordings: Recordings) -> dict[str, Convention]:
    """The convention of each body whose orientation is measured, from recordings in the frames of their files."""
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
    found = {}
    if target in bodies and striker in bodies and target is not None and striker is not None:
        pair = of_pairs(met, frame)
        blow = np.zeros((4, 4)) if pair is None else pair
        apart = _total(alone[target])[:, None] + _total(alone[striker]) + np.log(_joint_prior())
        for name, axis in ((target, 1), (striker, 0)):
            if pair is not None:  # what the blows add for this body, whatever the other's way is
                alone[name]["blow"] = _summed(apart + blow, axis) - _summed(apart, axis)
            found[name] = _weighed(alone[name], _summed(apart + blow, axis))
    elif target in bodies and target is not None:
        pair = of_pairs(met, frame)
        alone[target].update({} if pair is None else {"blow": pair[:, 0]})
    return {name: found.get(name) or _weighed(alone[name], _total(alone[name]) + np.log(PRIOR)) for name in bodies}


def _joint_prior() -> Array:
    """Probability [4, 4] of the ways of two bodies: one program wrote both, so they are often wrong alike."""
    prior = np.full((4, 4), MIXED)
    prior[0, :] = prior[:, 0] = ALONE
    np.fill_diagonal(prior, ALIKE)
    prior[0, 0] = 1 - 3 * ALIKE - 6 * ALONE - 6 * MIXED
    return prior


def _summed(logs: Array, axis: int) -> Array:
    return np.asarray(np.logaddexp.reduce(logs, axis=axis))


def _oriented(recordings: Recordings) -> list[str]:
    """Bodies whose numbers can be asked; those of a tracked frame of its own are no longer the file's numbers."""
    everywhere = recordings.trajectories
    asked = [name for name in recordings.bodies if name not in recordings.tracked]
    return [n for n in asked if any(t.quaternion_world.get(n) is not None for t in everywhere)]


def _total(logs: Mapping[str, Array]) -> Array:
    return np.asarray(np.sum([np.zeros(4), *logs.values()], axis=0))


def _weighed(logs: Mapping[str, Array], posterior: Array) -> Convention:
    chance = np.exp(posterior - np.logaddexp.reduce(posterior))
    best, total = int(np.argmax(posterior)), _total(logs)
    alike = [CHANGES[i] for i in range(4) if i != best and abs(total[i] - total[best]) < SAYS]
    evidence = {w: {c: float(v) for c, v in zip(CHANGES, part - part[0], strict=True)} for w, part in logs.items()}
    probability = {c: float(p) for c, p in zip(CHANGES, chance, strict=True)}
    return Convention(CHANGES[best], probability, evidence, tuple(alike))


def check_conventions(found: Mapping[str, Convention]) -> Iterator[Observation]:
    """A line for each body whose quaternions are not what the format says, with what to change."""
    for name, convention in found.items():
        wrong = 1 - convention.probability[CHANGES[0]]
        if wrong < LIKELY:
            continue
        seen, todo = _words(name, {way: p / wrong for way, p in convention.probability.items()})
        yield Observation(
            "error" if wrong >= SURE else "warning",
            "quaternion-convention",
            f"{name}: the quaternion columns {seen} ({_percent(wrong)} sure): {todo}; "
            "they were read as declared, nothing was switched",
            column=f"{name}.qw",
        )


def _words(name: str, share: Mapping[str, float]) -> tuple[str, str]:
    """What is wrong and what to do, given the shares of the three changes in what is wrong."""
    order = "look like x, y, z, w under w-first names", f"rename the columns of {name}"
    way = (
        "look like body from world, not world from body",
        f"change the signs of qx, qy and qz of {name} (or mirror one axis, if the positions are left-handed)",
    )
    both = share["w-last and inverted"]
    last, inverted = share["w-last"] + both, share["inverted"] + both
    if both >= LIKELY:
        return f"{order[0]}, and like body from world, not world from body", f"{order[1]}, then {way[1]}"
    if share["w-last"] >= LIKELY:
        return order
    if share["inverted"] >= LIKELY:
        return way
    if last >= LIKELY:
        return f"{order[0]}; whether they are inverted too cannot be told from these recordings", order[1]
    if inverted >= LIKELY:
        return f"{way[0]}; whether w is the last one too cannot be told from these recordings", way[1]
    return (
        "look like x, y, z, w under w-first names or like body from world; which of the two cannot be told from these "
        "recordings",
        f"look up how {name}'s orientation was written",
    )


def _percent(chance: float) -> str:
    return "more than 99.9 %" if chance > 0.999 else f"{100 * chance:.1f} %"
