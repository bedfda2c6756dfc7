"""When a contact between striker and target is over: decided here, for every engine.

A blow is over when the bodies have parted for a few steps. One that does not part is a push: it is over when the
target's velocity no longer changes, or when it has lasted longer than any blow. Velocities are read while the bodies
touch and once after, so that the last one is that at separation.
"""

from __future__ import annotations

from typing import Any

HORIZON = 0.1  #: [s] a contact that lasts longer is a push, not a blow: the state then is taken as it is
QUIET_STEPS = 3  #: steps without contact after which the bodies count as parted
STEADY_STEPS = 15  #: steps over which the velocity of a touching target is compared with itself
STEADY_SHARE = 0.01  #: change of velocity over those, as a share of the approach speed, below which it is a push
READ_STEPS = 1  #: steps after the last touch in which the velocity is still read


def contact_over(
    since_first: Any, since_last: Any, touching: Any, change: Any, speed: Any, *, timestep: float
) -> tuple[Any, Any]:
    """Whether bodies have parted, and whether their contact is over [N]; NumPy or JAX, whatever comes in.

    `since_first` and `since_last` are steps since the contact began and since the bodies last touched, `change` is that
    of the target's velocity over `STEADY_STEPS` [m/s], `speed` that of the approach [m/s].
    """
    parted = since_last >= QUIET_STEPS
    steady = touching & (since_first >= 2 * STEADY_STEPS) & (change < STEADY_SHARE * speed)
    return parted, parted | steady | (since_first * timestep > HORIZON)
