"""A learned impact in a MuJoCo loop of one's own: an actuated tool strikes a block. Run: python examples/hybrid_step.py

The rule below stands in for a learned model; yours is carom.hybrid.load_hybrid(folder).student.
"""

import mujoco
import numpy as np

from carom.engines.contact_frames import contact_frames
from carom.hybrid.step import HybridStep
from carom.learn.impact.adapted_model import Prediction
from carom.scenes.strike import StrikeScene, builtin
from carom.state import Strikes

LAB = """<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="2 2 .1" friction=".3"/>
    <body name="block" pos="0 0 .025"><freejoint/><geom type="box" size=".04 .04 .025" mass=".25"/></body>
    <body name="tool" pos="-.1 .01 .025">
      <joint name="slide" type="slide" axis="1 0 0" damping="1"/><geom type="sphere" size=".02" mass="5"/>
    </body>
    <body name="cup" pos="0 .5 .1"><freejoint/><geom type="cylinder" size=".03 .05" mass=".1"/></body>
  </worldbody>
  <actuator><velocity joint="slide" kv="200"/></actuator>
</mujoco>"""


class Bounce:
    """Rigid impact without friction: what hits is far heavier and is thrown back with 0.6 of the closing speed."""

    def __init__(self, scene: StrikeScene) -> None:
        self.scene = scene

    def predict(self, strikes: Strikes) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        k2, normal, lever = self.scene.gyration_radius**2, frames.axes[:, 1], frames.lever[:, 0]
        gain = 1.6 * frames.velocity[:, 1] / (1 + lever**2 / k2)
        change = np.column_stack([gain[:, None] * normal, gain * lever / k2])
        return Prediction(strikes.target_velocity + change, np.full_like(change, np.nan), np.ones(len(strikes)))


def main() -> None:
    scene = builtin("square")
    hybrid = HybridStep(Bounce(scene), scene)
    model = hybrid.attach(mujoco.MjSpec.from_string(LAB), target="block", striker="tool")
    data = mujoco.MjData(model)
    while data.time < 1.0:
        data.ctrl[0] = 0.5 if not hybrid.log else -0.2  # strike once, then draw back
        hybrid.step(model, data)
    for event in hybrid.log:
        print(f"{event.time:.5f} s: {event.kind}, block {np.round(event.pre, 3)} -> {np.round(event.post, 3)}")
    print(f"block came to rest at {np.round(data.body('block').xpos, 3)} m")


if __name__ == "__main__":
    main()
