"""From ten strikes to a corrected impact model, in Python. Run: python examples/ten_strikes.py [FOLDER]

Without a folder of recordings, a stand-in reality is struck. These are the steps of `carom distill`, `carom adapt` and
`carom predict`; a real run would distil 100,000 impacts, not 4,096.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from carom import recipes
from carom.compare import relative_error, summary
from carom.reality import sample_commands, standin
from carom.recordings import read, strike_impacts, write


def main(folder: Path, out: Path) -> dict[str, float]:
    train, test = split(folder, out, count=10)
    training = recipes.DistillOptions(steps=500)
    recipes.distill(train, out / "base", samples=4096, teachers=["compliant"], training=training)
    model = recipes.adapt(out / "base", train, out / "model").model
    predicted = recipes.predict(out / "model", test).predictions  # from what was recorded before contact
    measured, _ = strike_impacts(read(test))
    post = [predicted[name]["post"] for name in measured.names]
    result = summary(relative_error(post, measured.post, model.scene.gyration_radius))
    print(f"10 strikes to learn from, {len(post)} predicted: {result}")
    return result


def split(folder: Path, out: Path, *, count: int) -> tuple[Path, Path]:
    """The first recordings of a folder and the others, as folders of their own."""
    recordings = read(folder)
    for name, part in (("train", recordings.trajectories[:count]), ("test", recordings.trajectories[count:])):
        write(out / name, replace(recordings, trajectories=part))
    return out / "train", out / "test"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if len(sys.argv) > 1:
            strikes = Path(sys.argv[1])
        else:
            reality = standin("nylon-low", "square", seed=0)
            commands = sample_commands(reality.shape, 40, np.random.default_rng(0))
            strikes = reality.execute(commands, place / "strikes", seed=0)
        main(strikes, place)
