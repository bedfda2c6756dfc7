"""Files for a robot: a planned strike, limits, and the robot itself."""

from __future__ import annotations

from pathlib import Path

LIMITS = """\
tip: {velocity: 1.5, acceleration: 8.0, jerk: 4000.0}
joints:
  all: {velocity: 4.0, acceleration: 40.0, jerk: 4000.0}
  joint_2: {velocity: 3.0}
"""


def strike(folder: Path) -> None:
    """A strike as `carom plan --export` writes it, and limits."""
    from carom.plan.export import strike_motion, write_motion

    motion = strike_motion([0.3, 0.1], [0.3, 0.1], height=0.03, yaw=0.2)
    write_motion(folder, motion, strike={"striker": "round", "seconds": 1.0})
    for table in folder.glob("*.csv"):
        table.unlink()
    (folder / "limits.yaml").write_text(LIMITS)


def load_strike(folder: Path) -> str:
    """The motion of the tool that `carom export` makes of it."""
    from carom import recipes

    made = recipes.export(folder, folder / "out", robot=recipes.RobotOptions(limits=folder / "limits.yaml"))
    return str(made.facts)


def robot(folder: Path) -> None:
    """Carom's own arm, as a file."""
    from carom.scenes.pushing.robots import robot_xml

    (folder / "robot.xml").write_text(robot_xml("arm"))


def load_robot(folder: Path) -> str:
    """What is known of it."""
    from carom.plan.arm import load_arm

    arm = load_arm(folder / "robot.xml")
    return str((arm.joints, arm.site, arm.range.tolist(), arm.torque.tolist(), arm.home.tolist()))
