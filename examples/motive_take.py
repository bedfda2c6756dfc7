"""A raw take as OptiTrack Motive exports it (CSV 1.23, y up, millimetres, w last), for the tutorial.

    python examples/motive_take.py take.csv bodies.yaml

Twelve strikes of a stand-in (a simulated laboratory; not a real one, and not MuJoCo) in one long recording. Between
them somebody picks the block up and puts it where the next strike wants it. `bodies.yaml` says what no capture system
knows: shapes, sizes, mass. With a real robot you have both already, and leave this out.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from carom.reality import sample_commands, standin
from carom.recordings import read

RATE = 240.0  #: [Hz]
CARRY, PAUSE = 2.0, 1.0  #: [s] for which the block is carried, and lies before the tool comes
BODIES = """bodies:
  block: {role: target, shape: box, size: [80, 80, 50], mass: %g}
  tool: {role: striker, shape: cylinder, radius: %g, height: %g}
units: {length: mm}
"""
HEADER = (
    "Format Version,1.23,Take Name,Take 2026-03-02 10.15.00 AM,Take Notes,,Capture Frame Rate,240.000000,"
    "Export Frame Rate,240.000000,Capture Start Time,2026-03-02 10.15.00.120 AM,Capture Start Frame,0,"
    "Total Frames in Take,{count},Total Exported Frames,{count},Rotation Type,Quaternion,Length Units,Millimeters,"
    "Coordinate Space,Global"
)
NAMES = {"block": "Rigid Body 1", "striker": "Hammer"}


def main(take: Path, bodies: Path) -> None:
    reality = standin("nylon-low", "square", seed=0)
    commands = sample_commands(reality.shape, 12, np.random.default_rng(0))
    with tempfile.TemporaryDirectory() as scratch:
        strikes = read(reality.execute(commands, Path(scratch) / "strikes", seed=0)).trajectories
    rng = np.random.default_rng(1)
    poses = {name: joined([_sampled(strike, name) for strike in strikes], name == "block", rng) for name in NAMES}
    rows = np.column_stack([in_motive(*poses[name]) for name in NAMES])
    take.parent.mkdir(parents=True, exist_ok=True)
    take.write_text("\n".join([*header(len(rows)), *(row(i, values) for i, values in enumerate(rows))]) + "\n")
    tool = reality.bodies["striker"].shape
    bodies.write_text(BODIES % (reality.mass, 1000 * (tool.radius or 0), 1000 * tool.full_height))
    print(f"{take}: {len(rows)} frames of {', '.join(NAMES.values())}; {bodies}: what they are")


def _sampled(strike, name):
    """Position and quaternion (w first) of a body at Motive's frames."""
    return strike.position_world[name], strike.quaternion_world[name]


def joined(parts, carried, rng):
    """One long recording: after each strike the body is brought to where the next begins, the block through the air."""
    position, quaternion = [parts[0][0]], [parts[0][1]]
    for there, turned in parts[1:]:
        a, b = last(position[-1]), first(there)
        s = np.clip((np.arange(int((CARRY + PAUSE) * RATE)) + 1) / (CARRY * RATE), 0, 1)
        eased = 10 * s**3 - 15 * s**4 + 6 * s**5
        way = a + (b - a) * eased[:, None]
        if carried:
            way[:, 2] += 0.15 * np.sin(np.pi * eased) ** 2
        way += rng.normal(0, 1.5e-4, way.shape)  # as the cameras see it [m]
        ends = Rotation.from_quat(np.roll([last(quaternion[-1]), first(turned)], -1, axis=1))
        shaken = Rotation.from_rotvec(rng.normal(0, 2e-3, way.shape))  # [rad]
        between = np.roll((Slerp([0, 1], ends)(eased) * shaken).as_quat(), 1, axis=1)
        position += [way, there]
        quaternion += [between, turned]
    return np.concatenate(position), np.concatenate(quaternion)


def first(samples):
    return samples[np.isfinite(samples).all(axis=1)][0]


def last(samples):
    return samples[np.isfinite(samples).all(axis=1)][-1]


def in_motive(position, quaternion):
    """Motive's columns: rotation x, y, z, w, then position in millimetres; y up, so (x, y, z) is (x, z, -y) of ours."""
    w, x, y, z = quaternion.T
    return np.column_stack([x, z, -y, w, 1000 * position[:, 0], 1000 * position[:, 2], -1000 * position[:, 1]])


def header(count):
    names = [NAMES[name] for name in NAMES for _ in range(7)]
    kinds = [*["Rotation"] * 4, *["Position"] * 3] * len(NAMES)
    return [
        HEADER.format(count=count),
        "",
        ",Type," + ",".join(["Rigid Body"] * len(names)),
        ",Name," + ",".join(names),
        ",ID," + ",".join(f'"{hash_of(name)}"' for name in names),
        ",," + ",".join(kinds),
        "Frame,Time (Seconds)," + ",".join(["X", "Y", "Z", "W", "X", "Y", "Z"] * len(NAMES)),
    ]


def hash_of(name):
    return name.encode().hex().upper().ljust(32, "0")


def row(number, values):
    cells = ["" if np.isnan(value) else f"{value:.6f}" for value in values]
    return ",".join([str(number), f"{number / RATE:.6f}", *cells])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
