"""Train a policy with Stable-Baselines3's own API, and save it without pickle: train_policy.py STEPS [MODEL]."""

import sys
from pathlib import Path

from stable_baselines3 import SAC

from carom.engines import MujocoSimulator
from carom.envs import ROUTES, SegmentStarts, engine_strike, make_batch
from carom.envs.sb3 import StrikeVecEnv
from carom.hybrid import load_hybrid
from carom.scenes import load_scene
from carom.train import policy_of, run_trials, save_policy

steps, *model_folder = sys.argv[1:]  # without a model from `carom adapt`: MuJoCo with default parameters
simulator = MujocoSimulator(load_scene("semi-cylinder"))
if model_folder:
    simulator = load_hybrid(Path(model_folder[0])).simulator("hybrid")

env = StrikeVecEnv(make_batch(simulator, SegmentStarts(), count=64, seed=0))  # 64 blocks, struck at once
model = SAC("MlpPolicy", env, gamma=0.5, train_freq=1, gradient_steps=16, learning_starts=min(5000, int(steps) // 2))
model.learn(int(steps))

policy = policy_of(model, environment="carom/StrikeSegment-v0")
save_policy(Path("out/policy"), policy)
trials = run_trials(policy, engine_strike(simulator), simulator.scene, ROUTES["1"], trials=20)
print(f"route 1, in the simulator itself: success rate {trials.rates().success.value:.2f}")
