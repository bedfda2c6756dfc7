"""Rewards for informative transitions (section III-C of the RSR paper), and what does better.

    gap -> weight -> term -> wrapper around any environment -> PPO or SAC, unchanged

Import the wrappers from `carom.train.infogap.wrappers`: they need Stable-Baselines3.
"""

from carom.train.infogap.divergence import ESTIMATORS, conditional_kl, gap, gaussian_kl, kde_kl, knn_kl, residuals
from carom.train.infogap.terms import Disagreement, InfoGap, InformationTerm, Transitions, expected_information, fading
from carom.train.infogap.transport import of_one_more, sliced_wasserstein, wasserstein_1d

__all__ = [
    "ESTIMATORS",
    "Disagreement",
    "InfoGap",
    "InformationTerm",
    "Transitions",
    "conditional_kl",
    "expected_information",
    "fading",
    "gap",
    "gaussian_kl",
    "kde_kl",
    "knn_kl",
    "of_one_more",
    "residuals",
    "sliced_wasserstein",
    "wasserstein_1d",
]
