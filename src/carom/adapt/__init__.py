"""Few-shot correction: ten real impacts turn distilled base models into one that predicts reality."""

from carom.adapt.model import AdaptedModel, Correction, ImpactModel, Prediction, adapt
from carom.adapt.paper import TunedModel, fine_tune

__all__ = ["AdaptedModel", "Correction", "ImpactModel", "Prediction", "TunedModel", "adapt", "fine_tune"]
