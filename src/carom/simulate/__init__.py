"""Engines behind one contract: what comes of strikes, from approach to rest."""

from carom.simulate.contract import Rollout, Simulator, Status, Validation

__all__ = ["Rollout", "Simulator", "Status", "Validation"]
