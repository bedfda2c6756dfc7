"""The robots that push, as MJCF: a round tool on two slides, and an arm of six joints.

The arm's joints turn as its ranges ask for: at zero it is stretched out ahead, a negative second joint lifts the upper
arm, a positive third one folds the forearm down. Its motors carry its weight (`gravcomp`), as the controllers of such
arms do. Geoms meet only what the scene pairs them with.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from carom.core.errors import SceneError, unknown_name
from carom.state import Array

UPPER, FOREARM, TOOL = 0.27, 0.29, 0.24  #: [m] lengths of the arm's links
SHOULDER = 0.12  #: [m] height of the shoulder
ROUND = 0.012  #: [m] radius of the tools
CLEAR = 0.008  #: [m] of the planar tool over the ground
#: Ranges [rad] and greatest torques [N m] of the arm's joints.
RANGES = ((-3.14, 2.09), (-2.96, 0.17), (-0.09, 3.14), (-1.57, 1.57), (-1.74, 1.74), (-3.14, 3.14))
TORQUES = (24.0, 24.0, 24.0, 8.0, 8.0, 8.0)

PLANAR = f"""
<mujoco>
  <worldbody>
    <body name="tool">
      <joint name="tool_x" type="slide" axis="1 0 0" range="-0.5 0.5"/>
      <joint name="tool_y" type="slide" axis="0 1 0" range="-0.5 0.5"/>
      <geom name="tool" type="capsule" fromto="0 0 {CLEAR + ROUND} 0 0 0.1" size="{ROUND}" mass="0.3"
            rgba="0.2 0.35 0.7 1"/>
      <site name="tool" pos="0 0 {CLEAR}"/>
    </body>
  </worldbody>
  <actuator>
    <position name="tool_x" joint="tool_x" kp="250" kv="15" ctrlrange="-0.5 0.5" forcerange="-20 20"/>
    <position name="tool_y" joint="tool_y" kp="250" kv="15" ctrlrange="-0.5 0.5" forcerange="-20 20"/>
  </actuator>
</mujoco>
"""


def _arm() -> str:
    axes = ("0 0 1", "0 1 0", "0 1 0", "1 0 0", "0 1 0", "1 0 0")
    armature = (0.05, 0.05, 0.05, 0.01, 0.01, 0.01)
    joints = [
        f'<joint name="joint_{i + 1}" axis="{axes[i]}" range="{low} {high}" armature="{armature[i]}"/>'
        for i, (low, high) in enumerate(RANGES)
    ]
    stiffness, damping = (200, 200, 200, 50, 50, 50), (12, 12, 12, 2, 2, 2)
    servos = "".join(
        f'<position name="joint_{i + 1}" joint="joint_{i + 1}" kp="{stiffness[i]}" kv="{damping[i]}" '
        f'ctrlrange="{RANGES[i][0]} {RANGES[i][1]}" forcerange="{-torque} {torque}"/>'
        for i, torque in enumerate(TORQUES)
    )
    return f"""
<mujoco>
  <compiler angle="radian"/>
  <default>
    <geom type="capsule" rgba="0.75 0.75 0.78 1"/>
  </default>
  <worldbody>
    <geom name="base" type="cylinder" fromto="0 0 0 0 0 {SHOULDER - 0.04}" size="0.05"/>
    <body name="shoulder" pos="0 0 {SHOULDER}" gravcomp="1">
      {joints[0]}
      <geom fromto="0 0 -0.03 0 0 0.02" size="0.045" mass="0.8"/>
      <body name="upper" gravcomp="1">
        {joints[1]}
        <geom fromto="0 0 0 {UPPER} 0 0" size="0.035" mass="1.0"/>
        <body name="elbow" pos="{UPPER} 0 0" gravcomp="1">
          {joints[2]}
          <geom fromto="0 0 0 0.12 0 0" size="0.03" mass="0.5"/>
          <body name="forearm" pos="0.12 0 0" gravcomp="1">
            {joints[3]}
            <geom name="forearm" fromto="0.03 0 0 {FOREARM - 0.12} 0 0" size="0.028" mass="0.4"/>
            <body name="wrist" pos="{FOREARM - 0.12} 0 0" gravcomp="1">
              {joints[4]}
              <geom fromto="0 0 0 0.05 0 0" size="0.025" mass="0.3"/>
              <body name="tool" pos="0.06 0 0" gravcomp="1">
                {joints[5]}
                <geom name="tool" fromto="0.02 0 0 {TOOL - 0.06 - ROUND} 0 0" size="{ROUND}" mass="0.15"
                      rgba="0.2 0.35 0.7 1"/>
                <site name="tool" pos="{TOOL - 0.06} 0 0" quat="0.70710678 0 0.70710678 0"/>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>{servos}</actuator>
</mujoco>
"""


ROBOTS: Mapping[str, str] = {"planar": PLANAR, "arm": _arm()}


def robot_xml(name: str) -> str:
    """The MJCF of a robot of this name."""
    if name not in ROBOTS:
        raise SceneError(unknown_name("robot", name, ROBOTS))
    return ROBOTS[name]


def arm_joints(tip: Array) -> Array:
    """Joints [N, 6] [rad] that put the tool's tip here [N, 3] [m], pointing down, elbow up; as near as the arm reaches.

    >>> arm_joints(np.array([[0.36, 0.1, 0.02]])).round(2).tolist()
    [[0.27, -1.17, 1.56, 0.0, 1.19, 0.0]]
    """
    ahead, up = np.hypot(tip[:, 0], tip[:, 1]), tip[:, 2] + TOOL - SHOULDER
    away = np.clip(np.hypot(ahead, up), abs(UPPER - FOREARM) + 1e-6, UPPER + FOREARM - 1e-6)
    lifted = np.arctan2(up, ahead) + np.arccos((UPPER**2 + away**2 - FOREARM**2) / (2 * UPPER * away))
    folded = np.pi - np.arccos((UPPER**2 + FOREARM**2 - away**2) / (2 * UPPER * FOREARM))
    none = np.zeros(len(tip))
    found = [np.arctan2(tip[:, 1], tip[:, 0]), -lifted, folded, none, np.pi / 2 + lifted - folded, none]
    return np.asarray(np.clip(np.column_stack(found), *np.array(RANGES).T))
