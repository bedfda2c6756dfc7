"""What the commands of a page need: folders of recordings and models, made once, and only those that a page names."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from simulated_tosses import simulated_tosses

from carom import recipes
from carom.reality import sample_commands, standin
from carom.recordings import read, write

ROBOT = """<mujoco>
  <worldbody>
    <geom type="plane" size="2 2 .1" friction=".3"/>
    <body name="block" pos="0 0 .025"><freejoint/><geom name="block" type="box" size=".04 .04 .025" mass=".25"/></body>
    <body name="tool" pos="-.1 .01 .025">
      <joint name="slide" type="slide" axis="1 0 0" damping="1"/><geom name="tool" type="sphere" size=".02" mass="5"/>
    </body>
  </worldbody>
  <actuator><velocity joint="slide" kv="200"/></actuator>
</mujoco>
"""


class Labs:
    """A lab of a stand-in that is struck, with what comes of its recordings; each is made when it is first asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @cached_property
    def strikes(self) -> dict[str, Path]:
        reality = standin("nylon-low", "square", seed=0)
        rng = np.random.default_rng(0)
        made = {}
        for seed, (name, count) in enumerate((("train", 10), ("test", 6))):
            made[name] = reality.execute(sample_commands(reality.shape, count, rng), self.place / name, seed=seed)
        return made

    @cached_property
    def model(self) -> Path:
        recipes.adapt(None, self.strikes["train"], self.place / "model")
        return self.place / "model"
