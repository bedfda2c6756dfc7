"""How far a measured impact can be trusted, said in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from carom.recordings.impacts.frozen import frozen_at
from carom.recordings.impacts.measured import Impact, Quality
from carom.recordings.trajectory import Trajectory

FAR = 0.015  #: [m] gap (or overlap) at contact beyond which sizes, poses or times cannot all be right
UNSURE = 0.1  #: relative standard error of a speed that makes it doubtful


def judge_strike(trajectory: Trajectory, impact: Impact) -> Impact:
    """The same impact with its verdict."""
    held = None if impact.striker is None else frozen_at(trajectory, impact)
    if held is not None:  # what is read off such a pose is of no instant, and this explains all else
        return judged(impact, [f"the pose of '{held}' is frozen when they meet"], [], [])
    wrong: list[str] = []
    doubts: list[str] = []
    post, striker = impact.post, impact.striker_pre
    if impact.striker is None or striker is None:
        wrong.append("no body was near the target when it began to move")
    elif striker.count < 4 or not np.isfinite(striker.velocity_world[:2]).all():
        wrong.append(f"only {striker.count} samples of '{impact.striker}' before contact")
    else:
        speed = float(np.linalg.norm(striker.velocity_world[:2]))
        if striker.count < 6:
            doubts.append(f"only {striker.count} samples of '{impact.striker}' before contact")
        if float(np.linalg.norm(striker.velocity_std[:2])) > UNSURE * max(speed, 1e-9):
            doubts.append(f"speed of '{impact.striker}' before contact is uncertain by more than a tenth")
    if post.count < 4 or not np.isfinite(post.velocity_world[:2]).all():
        wrong.append(f"only {post.count} samples of '{impact.target}' after contact")
    else:
        if post.count < 6:
            doubts.append(f"only {post.count} samples of '{impact.target}' after contact")
        speed = float(np.linalg.norm(post.velocity_world[:2]))
        if float(np.linalg.norm(post.velocity_std[:2])) > UNSURE * max(speed, 1e-9):
            doubts.append(f"speed of '{impact.target}' after contact is uncertain by more than a tenth")
    if np.isfinite(impact.gap) and impact.gap > FAR:
        doubts.append(f"the outlines are {impact.gap * 1e3:.0f} mm apart at contact")
    if np.isfinite(impact.gap) and impact.gap < -FAR:  # a spring may reach further than a body; none reaches less
        wrong.append(f"the outlines are {-impact.gap * 1e3:.0f} mm inside each other at contact: check sizes and frame")
    if impact.settle > 0.5 * impact.span + 0.03:
        doubts.append(f"contact lasts {impact.settle * 1e3:.0f} ms")
    return judged(impact, wrong, doubts, [])


def judged(impact: Impact, wrong: list[str], doubts: list[str], notes: list[str]) -> Impact:
    """Verdict and reason from the lists of what is wrong and what is doubtful."""
    quality: Quality = "unusable" if wrong else "doubtful" if doubts else "good"
    return replace(impact, quality=quality, reason="; ".join(wrong + doubts + notes))
