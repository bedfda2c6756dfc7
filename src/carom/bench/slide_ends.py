"""How near slides that are read off a table end to the integrated ones: 100,000 of all that the table answers for."""

from __future__ import annotations

import numpy as np

from carom.core.progress import Steps
from carom.core.work import Rows
from carom.engines.slide_table_making import NEAR, TURNED, integrated_ends, velocities
from carom.hybrid.model import HybridModel

SLIDES = 100_000


def slide_rows(model: HybridModel, shape: str, seed: int, progress: Steps | None = None) -> Rows:
    """Errors of slides of all directions and proportions of glide and spin, their speeds spread evenly."""
    slider, table = model.sliding.slider(model.scene), model.slides
    if table is None:
        return []
    rng = np.random.default_rng([seed, 13])
    pace, direction = table.reach * rng.uniform(0, 1, SLIDES), rng.uniform(0, 2 * np.pi, SLIDES)
    given = velocities(slider, direction, np.arcsin(rng.uniform(-1, 1, SLIDES)), pace)
    found, _ = table.rests(np.zeros((SLIDES, 3)), given, table.grip)
    away = found.pose - integrated_ends(slider, given, progress=progress)[:, :3]
    place, turn = np.linalg.norm(away[:, :2], axis=1), np.abs(away[:, 2])
    measured = {
        "share-within": float(((place <= NEAR) & (turn <= TURNED)).mean()),
        "position-p99.9-m": float(np.quantile(place, 0.999)),
        "turn-p99.9-rad": float(np.quantile(turn, 0.999)),
        "position-most-m": float(place.max()),
        "turn-most-rad": float(turn.max()),
        "highest-speed-m-s": table.reach,
    }
    return [{"setting": f"{shape}, slides", "method": "table", "metric": m, "value": v} for m, v in measured.items()]
