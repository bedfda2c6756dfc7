"""What ten strikes give without a simulator: a mean, ridge regression, a Gaussian process, a network, a rigid impact.

All but the rigid impact see a strike as a table row: where and how the striker hits, how fast and how it is held. They
predict the velocities along and across the approach, as shares of its speed.
"""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import torch

from carom.engines.contact_frames import Frames, contact_frames, to_local, to_world
from carom.engines.rigid import rigid_outcomes
from carom.learn.impact.adapted_model import Prediction
from carom.learn.impact.process import approach_axes, columns_of
from carom.scenes.strike import StrikeScene
from carom.state import Array, Impacts, Strikes


class Table:
    """Strikes as rows of numbers, and outcomes back to the world."""

    def __init__(self, scene: StrikeScene, train: Impacts) -> None:
        from sklearn.preprocessing import StandardScaler  # slow to import, and only baselines need it

        self.scene = scene
        self.columns = StandardScaler().fit(self.raw(train.strikes))
        self.outcomes = StandardScaler().fit(self.ahead(train))

    def raw(self, strikes: Strikes) -> Array:
        return columns_of(self.scene, contact_frames(self.scene, strikes), strikes)

    def ahead(self, impacts: Impacts) -> Array:
        """Outcomes across and along the approach, and spin, over the approach speed [N, 3]."""
        frames = contact_frames(self.scene, impacts.strikes)
        local = to_local(self.scene, frames, impacts.post)
        return np.asarray(np.einsum("nij,nj->ni", approach_axes(frames), local))

    def inputs(self, strikes: Strikes) -> Array:
        return np.asarray(self.columns.transform(self.raw(strikes)))

    def targets(self, impacts: Impacts) -> Array:
        return np.asarray(self.outcomes.transform(self.ahead(impacts)))

    def world(self, strikes: Strikes, scaled: Array, std: Array | None = None) -> Prediction:
        frames = contact_frames(self.scene, strikes)
        ahead = self.outcomes.inverse_transform(scaled.reshape(-1, 3))
        post = to_world(self.scene, frames, np.einsum("nji,nj->ni", approach_axes(frames), ahead))
        spread = np.full_like(post, np.nan)
        if std is not None:
            own = std * self.outcomes.scale_ * frames.speed[:, None]
            plane = np.sqrt((own[:, :2] ** 2).mean(axis=1, keepdims=True))
            spread = np.column_stack([plane, plane, own[:, 2] / self.scene.gyration_radius])
        return Prediction(post, spread, np.ones(len(post)))


class Mean:
    """The trivial predictor: the mean of outcome over approach speed, times the speed."""

    def __init__(self, scene: StrikeScene, train: Impacts) -> None:
        self.table = Table(scene, train)

    def predict(self, strikes: Strikes) -> Prediction:
        return self.table.world(strikes, np.zeros((len(strikes), 3)))


class Ridge:
    """Ridge regression, its penalty chosen by leave-one-out cross-validation."""

    def __init__(self, scene: StrikeScene, train: Impacts, *, seed: int = 0) -> None:
        from sklearn.linear_model import RidgeCV

        self.table = Table(scene, train)
        y = self.table.targets(train)
        self.model = RidgeCV(alphas=np.logspace(-3, 2, 16)).fit(self.table.inputs(train.strikes), y)

    def predict(self, strikes: Strikes) -> Prediction:
        return self.table.world(strikes, self.model.predict(self.table.inputs(strikes)))


class Process:
    """A Gaussian process with a length for every input, as a data-driven laboratory would use."""

    def __init__(self, scene: StrikeScene, train: Impacts, *, seed: int = 0) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        self.table = Table(scene, train)
        x = self.table.inputs(train.strikes)
        y = self.table.targets(train)
        kernel = ConstantKernel(1.0, (1e-2, 1e2)) * RBF(np.ones(x.shape[1]), (0.2, 1e2)) + WhiteKernel(0.1, (1e-4, 1.0))
        self.model = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # lengths on a bound: an input that says nothing
            self.model.fit(x, y)

    def predict(self, strikes: Strikes) -> Prediction:
        mean, std = self.model.predict(self.table.inputs(strikes), return_std=True)
        return self.table.world(strikes, mean, std.reshape(len(mean), -1) * np.ones((1, 3)))


class Scratch:
    """The paper's third baseline: its network, fitted to the real samples alone (1,000 steps of AdamW)."""

    def __init__(self, scene: StrikeScene, train: Impacts, *, seed: int = 0) -> None:
        self.table = Table(scene, train)
        x = torch.as_tensor(self.table.inputs(train.strikes)).float()
        y = torch.as_tensor(self.table.targets(train)).float()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            sizes = [x.shape[1], 128, 128, 128]
            layers: list[torch.nn.Module] = []
            for a, b in pairwise(sizes):
                layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
            self.network = torch.nn.Sequential(*layers, torch.nn.Linear(128, 3))
        optimiser = torch.optim.AdamW(self.network.parameters(), lr=1e-3, weight_decay=0.01)
        for _ in range(1000):
            loss = (self.network(x) - y).pow(2).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def predict(self, strikes: Strikes) -> Prediction:
        with torch.no_grad():
            scaled = self.network(torch.as_tensor(self.table.inputs(strikes)).float()).double().numpy()
        return self.table.world(strikes, scaled)


class Rigid:
    """Planar rigid impact after Routh and Poisson, its restitution and friction fitted to the samples."""

    def __init__(self, scene: StrikeScene, train: Impacts, *, seed: int = 0) -> None:
        self.scene = scene
        frames = contact_frames(scene, train.strikes)
        scale = np.array([1.0, 1.0, scene.gyration_radius])
        size = np.linalg.norm(train.post * scale, axis=-1)
        best = (np.inf, 0.5, 0.3)
        for e in np.linspace(0.0, 1.0, 41):
            for mu in np.concatenate([[0.0], np.geomspace(0.02, 1.5, 32)]):
                error = np.linalg.norm((self._outcome(frames, e, mu) - train.post) * scale, axis=-1) / size
                best = min(best, (float(np.minimum(error, 1.0).mean()), float(e), float(mu)))
        _, self.restitution, self.friction = best

    def _outcome(self, frames: Frames, restitution: float, friction: float) -> Array:
        change = rigid_outcomes(self.scene, frames.lever, frames.velocity, restitution=restitution, friction=friction)
        return to_world(self.scene, frames, change / frames.speed[:, None])

    def predict(self, strikes: Strikes) -> Prediction:
        post = self._outcome(contact_frames(self.scene, strikes), self.restitution, self.friction)
        return Prediction(post, np.full_like(post, np.nan), np.ones(len(post)))
