"""AdamW of one vector: the steps of torch's own, to the bit, without its compiler."""

from __future__ import annotations

import subprocess
import sys

import torch

from carom.learn.impact.adamw import AdamW


def network() -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.SiLU(), torch.nn.Linear(16, 3))


def test_its_steps_are_those_of_torch() -> None:
    own, other = network(), network()
    x, y = torch.randn(64, 4, generator=torch.Generator().manual_seed(2)), torch.linspace(-1, 1, 192).reshape(64, 3)
    mine = AdamW(own.parameters(), weight_decay=1e-2)
    torchs = torch.optim.AdamW(other.parameters(), lr=1.0, weight_decay=1e-2)
    for rate in torch.linspace(1e-2, 1e-3, 40).tolist():
        mine.step((own(x) - y).pow(2).mean(), rate)
        torchs.param_groups[0]["lr"] = rate
        torchs.zero_grad()
        (other(x) - y).pow(2).mean().backward()
        torchs.step()
    for a, b in zip(own.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(next(iter(own.parameters())), next(iter(network().parameters())))


def test_teaching_a_network_does_not_import_torchs_compiler() -> None:
    told = """
import sys, torch
from carom.learn.impact.adamw import AdamW
layer = torch.nn.Linear(2, 2)
AdamW(layer.parameters(), weight_decay=0.0).step(layer(torch.ones(1, 2)).sum(), 1e-3)
print("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout == "False\n"
