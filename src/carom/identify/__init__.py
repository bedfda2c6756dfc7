"""Parameters from recordings: fitting methods, and how far to trust what they find.

`grid` and `cma` search in MuJoCo itself, `descend` follows the gradient through a distilled base model, `mjx.fit` the
one through MJX (extra `mjx`), `friction_from_slides` takes ground friction from the slides after the impacts. All but
the last return an `Identification`. Whole trajectories of free bodies have their own way in:
`tosses.result.identify_motions`.
"""

from carom.identify.result import Errors, Estimate, Identification, Verdict, read
from carom.identify.strikes.gradient import descend
from carom.identify.strikes.search import cma, grid
from carom.identify.strikes.slides import SlideFriction, friction_from_slides
from carom.identify.strikes.sliding import Sliding, sliding_from
from carom.identify.strikes.surrogate import Differentiable, Outcomes

__all__ = [
    "Differentiable",
    "Errors",
    "Estimate",
    "Identification",
    "Outcomes",
    "SlideFriction",
    "Sliding",
    "Verdict",
    "cma",
    "descend",
    "friction_from_slides",
    "grid",
    "read",
    "sliding_from",
]
