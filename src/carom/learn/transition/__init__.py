"""What tuning cannot express of pushes: a correction learned on single transitions, on top of a tuned engine."""

from carom.learn.transition.corrected import CorrectedPushes
from carom.learn.transition.residual import Moves, Residual, fit_residual, load_residual, moves_of, save_residual

__all__ = ["CorrectedPushes", "Moves", "Residual", "fit_residual", "load_residual", "moves_of", "save_residual"]
