"""Where a Ray cluster is: what a user may write, and whether anybody listens there."""

from __future__ import annotations

import socket
from importlib.util import find_spec

from carom.core.errors import CaromError

SCHEME = "ray://"
THIS = "auto"  #: the address of the cluster that this machine belongs to
ANSWER = 20.0  #: [s] in which a cluster has to answer


def check_place(where: str) -> None:
    """Refuse what is no place to work at, before anything is started."""
    host, _, port = where.removeprefix(SCHEME).rpartition(":")
    known = where == "ray" or where == f"{SCHEME}{THIS}" or (where.startswith(SCHEME) and host and port.isdecimal())
    if not known:
        raise CaromError(
            f"expected ray (this machine, or $RAY_ADDRESS), ray://HOST:PORT of a cluster (10001, if nobody chose "
            f"another port), or ray://auto on a machine of it; got '{where}'"
        )
    if find_spec("ray") is None:
        raise CaromError("work on a cluster needs Ray: pip install 'carom[ray]'")


def refuse_silence(where: str, address: str | None) -> None:
    """Raise if nobody listens at an address: Ray itself would try for minutes, and then end this process."""
    host, _, port = (address or "").removeprefix(SCHEME).rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()
    except (OSError, OverflowError) as error:
        raise CaromError(unreached(where, address, error)) from error


def unreached(where: str, address: str | None, error: Exception) -> str:
    reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    if address is None:
        return f"Ray could not be started on this machine: {reason:.200}"
    return (
        f"no Ray cluster answers at {where if where.startswith(SCHEME) else address} ({reason:.200}); start one with "
        "`ray start --head`, and give ray://HOST:10001 from outside of it or ray://auto on one of its machines"
    )
