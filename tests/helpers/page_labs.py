"""What the commands of a page need: folders of recordings and models, made once, and only those that a page names."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import numpy as np
from free_recordings import tosses_folder
from simulated_tosses import parameters_file

from carom import recipes
from carom.plan.export import strike_motion, write_motion
from carom.reality import sample_commands, standin
from carom.scenes.pushing.robots import robot_xml

ROBOT = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1" friction=".3"/>
    <body name="block" pos=".3 0 .025"><freejoint/>
      <geom name="block" type="box" size=".04 .04 .025" mass=".2624"/>
    </body>
    <body name="upper" pos="0 0 .03">
      <joint name="shoulder" axis="0 0 1" damping=".2"/><geom type="sphere" size=".02" mass=".8"/>
      <body name="tool" pos=".2 0 0">
        <joint name="elbow" axis="0 0 1" damping=".2"/><geom name="tool" type="sphere" size=".02" mass="1"/>
      </body>
    </body>
  </worldbody>
  <contact><pair name="hand" geom1="tool" geom2="block"/><pair name="ground" geom1="floor" geom2="block"/></contact>
  <actuator><position joint="shoulder" kp="60" kv="4"/><position joint="elbow" kp="60" kv="4"/></actuator>
</mujoco>
"""
WEDGE = """v 0 0 0
v 0.1 0 0
v 0 0.06 0
v 0 0 0.05
v 0.1 0 0.05
v 0 0.06 0.05
f 1 3 2
f 4 5 6
f 1 2 5
f 1 5 4
f 2 3 6
f 2 6 5
f 3 1 4
f 3 4 6
"""
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CALIBRATED = {"friction": 0.2, "stiffness": 25_000.0, "damping": 150.0}


class Labs:
    """A stand-in that was struck, with what comes of its recordings; each is made when it is first asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.made: dict[str, Path] = {}

    @cached_property
    def strikes(self) -> dict[str, Path]:
        """Ten strikes to learn from, and six others."""
        reality, rng, made = standin("nylon-low", "square", seed=0), np.random.default_rng(0), {}
        for seed, (name, count) in enumerate((("train", 10), ("test", 6))):
            made[name] = reality.execute(sample_commands(reality.shape, count, rng), self.place / name, seed=seed)
        return made

    @cached_property
    def model(self) -> Path:
        """A corrected model of it, as `carom adapt lab/train` makes it."""
        recipes.adapt(None, self.strikes["train"], self.place / "model")
        self.made["carom adapt lab/train"] = self.place / "model"
        return self.place / "model"

    def again(self, command: str) -> bool:
        """Whether another page ran this command already; what it made is then copied here."""
        asked, _, out = command.partition(" --out ")
        if not out or asked not in self.made:
            return False
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(self.made[asked], out)
        return True

    def keep(self, command: str) -> None:
        """Remember what a command made, for pages that give it too."""
        asked, _, out = command.partition(" --out ")
        if out and asked.startswith(("carom adapt lab/train", "carom identify lab/")) and "--graph" not in asked:
            self.made[asked] = Path(out).resolve()

    @cached_property
    def tosses(self) -> Path:
        return tosses_folder(self.place / "tosses", 6, seed=0)

    @cached_property
    def parameters(self) -> Path:
        return parameters_file(self.place / "fit", CALIBRATED)

    @cached_property
    def graph(self) -> Path:
        """A graph simulator whose network has learned nothing."""
        import torch

        from carom.learn.graph import GraphModel, new_network

        torch.manual_seed(0)
        values = {"friction": 0.3, "face_friction": 0.3, "stiffness": 5000.0, "damping": 100.0}
        model = GraphModel(new_network(), 0.01, values, {"friction": (0.1, 0.5), "stiffness": (500.0, 200_000.0)})
        model.save(self.place / "graph")
        return self.place / "graph"


def _fewer(line: re.Match[str]) -> str:
    """A number of the loop's file, as small as it may be."""
    least = {"rounds": 1, "recordings": 3, "held_out": 3, "trials": 2, "steps": 4096, "later_steps": 4096, "budget": 48}
    return f"{line[1]}{line[2]}: {least.get(line[2], line[3])}"


def furnish(text: str, labs: Labs, place: Path) -> None:
    """Put what `text` reads and does not make itself into `place`."""
    sources = {
        "lab/train": lambda: labs.strikes["train"],
        "lab/strikes": lambda: labs.strikes["train"],
        "lab/test": lambda: labs.strikes["test"],
        "lab/new": lambda: labs.strikes["test"],
        "lab/tosses": lambda: labs.tosses,
        "models/lab": lambda: labs.model,
        "models/graph": lambda: labs.graph,
        "fit": lambda: labs.parameters.parent if labs.parameters.is_file() else labs.parameters,
    }
    made = set(re.findall(r"--out (\S+)", text))
    for name, source in sources.items():
        named = re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w-])", text)
        if named and (name not in made or text.index(f"--out {name}") > named.start()):
            shutil.copytree(source(), place / name, dirs_exist_ok=True)
    if "lab.xml" in text:
        (place / "lab.xml").write_text(ROBOT)
    if "carom export strike" in text:
        motion = strike_motion([0.35, 0.0], [0.0, 0.3], height=0.05, yaw=0.0)
        write_motion(place / "strike", motion, strike={"striker": "round"})
    if "lab/robot.xml" in text:
        (place / "lab").mkdir(exist_ok=True)
        (place / "lab/robot.xml").write_text(robot_xml("arm"))
        (place / "lab/limits.yaml").write_text(
            text.partition("# limits.yaml")[2].partition("```")[0].partition("\n")[2]
        )
    if "wedge.obj" in text:
        (place / "wedge.obj").write_text(WEDGE)
    if re.search(r"import take\.csv", text):
        take = [sys.executable, EXAMPLES / "motive_take.py", place / "take.csv", place / "bodies.yaml"]
        subprocess.run(take, check=True, timeout=300)
    shutil.copytree(EXAMPLES, place / "examples")
    loop = place / "examples/planar_loop.yaml"
    loop.write_text(re.sub(r"^( *)(\w+): (\d+)", _fewer, loop.read_text(), flags=re.MULTILINE))
