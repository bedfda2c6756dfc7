"""By how much a block really moves in a control period beyond what a tuned engine says: kernel regression.

    real move - engine's move = share(engine's move) * f(where the tool is, how both move)

in the block's own frame, so that it holds for every place and direction. `share` is 0 for a block that the engine
leaves at rest: no correction makes a block creep. f is a sum of radial functions; its width and its ridge are those
that predict recordings left out best, and where none helps f is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from carom.core.errors import CaromError
from carom.core.rotations import yaw
from carom.core.tensors import load_tensors, write_tensors
from carom.scenes.pushing import PushScene
from carom.state import Array, SceneState, rotate, wrap_angle

#: of a column: tool from block, its move, the block's velocity and spin, its move and turn in the engine
UNITS = np.array([0.03, 0.03, 0.01, 0.01, 0.15, 0.15, 2.0, 0.01, 0.01, 0.1])
SLIGHT = 5e-4  #: [m] of the engine's move at which half of the correction counts
CENTRES = 160  #: radial functions at most
WIDTHS = (2.0, 4.0, 8.0)  #: of a radial function, in units of the columns
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  #: over the number of transitions
FOLDS = 5
BETTER = 0.98  #: share of the squared error, of recordings left out, below which a correction counts as one
FEWEST = 30  #: transitions in contact that can be learned from


@final
@dataclass(frozen=True)
class Moves:
    """N single transitions of an engine, in the blocks' own frames."""

    columns: Array  #: [N, 10] in units
    share: Array  #: [N] from 0 to 1: of the correction that counts
    turn: Array  #: [N] yaw of the frames at the beginning [rad]


@final
@dataclass(frozen=True)
class Residual:
    """A learned correction; without centres it is none."""

    centres: Array  #: [C, 10]
    weights: Array  #: [C + 1, 3] x, y, turn times the lever [m]; the last is a constant
    width: float
    explained: float  #: share of the squared error that it takes away, of recordings left out

    def __call__(self, moves: Moves) -> Array:
        """Correction [N, 3] of the blocks' moves in the block's frame: x, y, turn times the lever [m]."""
        if not len(self.centres):
            return np.zeros((len(moves.share), 3))
        return np.asarray(moves.share[:, None] * (_functions(moves.columns, self.centres, self.width) @ self.weights))


def lever_of(scene: PushScene) -> float:
    """By which a block's turn counts [m]: its corners' mean distance from its middle."""
    return float(np.linalg.norm(scene.corners, axis=-1).mean())


def moves_of(scene: PushScene, before: SceneState, after: SceneState) -> Moves:
    """What a correction looks at: states at the beginning of a control period, and where an engine ends."""
    turn = yaw(before.quaternion[:, 0])
    tip, moved_tip = (scene.tool_position(s.joint_position)[:, :2] for s in (before, after))
    away, pushed = tip - before.position[:, 0, :2], moved_tip - tip
    going, spin = before.velocity[:, 0, :2], before.spin[:, 0, 2:]
    move = after.position[:, 0, :2] - before.position[:, 0, :2]
    turned = wrap_angle(yaw(after.quaternion[:, 0]) - turn)[:, None]
    seen = [rotate(part, -turn) for part in (away, pushed, going)]
    columns = np.concatenate([*seen, spin, rotate(move, -turn), turned], axis=1) / UNITS
    size = np.hypot(np.linalg.norm(move, axis=1), lever_of(scene) * turned[:, 0])
    return Moves(np.clip(np.nan_to_num(columns), -20, 20), np.nan_to_num(size / (size + SLIGHT)), turn)


def fit_residual(moves: Moves, missing: Array, recording: NDArray[np.int64]) -> Residual:
    """Learn what is `missing` [N, 3] (in the block's frame; turn times the lever) in an engine's moves.

    `recording` [N] says which recording each is of: width and ridge are chosen by recordings left out.
    """
    if missing.shape != (len(moves.share), 3) or recording.shape != moves.share.shape:
        raise CaromError(f"residual: expected one row for each of {len(moves.share)} moves, got {missing.shape}")
    rows = np.flatnonzero(np.isfinite(missing).all(axis=1) & (moves.share > 0.2))
    none = Residual(np.zeros((0, len(UNITS))), np.zeros((1, 3)), 1.0, 0.0)
    if len(rows) < FEWEST or len(np.unique(recording[rows])) < 2:
        return none
    x, share, y = moves.columns[rows], moves.share[rows], missing[rows]
    y = y * np.minimum(1.0, _most(y) / np.maximum(np.linalg.norm(y, axis=1), 1e-12))[:, None]  # none counts for ten
    centres = _spread_out(x)
    fold = np.searchsorted(np.unique(recording[rows]), recording[rows]) % min(FOLDS, len(np.unique(recording[rows])))
    best, chosen = BETTER * float((y**2).sum()), None
    for width in WIDTHS:
        a = share[:, None] * _functions(x, centres, width)
        for ridge in RIDGES:
            error = 0.0
            for k in range(int(fold.max()) + 1):
                w = _solved(a[fold != k], y[fold != k], ridge)
                error += float(((y[fold == k] - a[fold == k] @ w) ** 2).sum())
            if error < best:
                best, chosen = error, (width, ridge)
    if chosen is None:
        return none
    weights = _solved(share[:, None] * _functions(x, centres, chosen[0]), y, chosen[1])
    return Residual(centres, weights, chosen[0], 1 - best / float((y**2).sum()))


def _most(missing: Array) -> float:
    """Size beyond which a transition counts for no more: a slip that was missed would outweigh all others."""
    size = np.linalg.norm(missing, axis=1)
    return float(max(4 * np.median(size), 1e-6))


def _solved(a: Array, y: Array, ridge: float) -> Array:
    penalty = ridge * len(a) / a.shape[1] * np.eye(a.shape[1])
    penalty[-1, -1] *= 1e-2
    return np.asarray(np.linalg.solve(a.T @ a + penalty, a.T @ y))


def _functions(x: Array, centres: Array, width: float) -> Array:
    """Radial functions [N, C + 1], and a constant."""
    square = (x**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * x @ centres.T
    return np.column_stack([np.exp(-0.5 * np.maximum(square, 0.0) / width**2), np.ones(len(x))])


def _spread_out(x: Array) -> Array:
    """Rows that are far from each other, the one nearest the middle first."""
    first = int(np.argmin(((x - x.mean(axis=0)) ** 2).sum(axis=1)))
    taken, near = [first], ((x - x[first]) ** 2).sum(axis=1)
    while len(taken) < min(CENTRES, len(x)) and near.max() > 1e-6:
        taken.append(int(np.argmax(near)))
        near = np.minimum(near, ((x - x[taken[-1]]) ** 2).sum(axis=1))
    return np.asarray(x[taken])


def save_residual(path: Path, residual: Residual) -> str:
    """Write it into a safetensors file; its SHA-256."""
    numbers = torch.tensor([residual.width, residual.explained], dtype=torch.float64)
    tensors = {"centres": residual.centres, "weights": residual.weights}
    return write_tensors(path, {**{k: torch.from_numpy(v.copy()) for k, v in tensors.items()}, "numbers": numbers})


def load_residual(path: Path, digest: str) -> Residual:
    """Read what `save_residual` wrote; `digest` is what it gave back."""
    found = load_tensors(path, {path.name: digest})
    if set(found) != {"centres", "weights", "numbers"} or found["centres"].shape[1:] != (len(UNITS),):
        raise CaromError(f"{path}: expected the tensors of a residual, got {', '.join(sorted(found))}")
    width, explained = found["numbers"].tolist()
    return Residual(found["centres"].numpy(), found["weights"].numpy(), width, explained)
