"""From ten strikes to a corrected impact model, in Python. Run: python examples/ten_strikes.py [FOLDER]

Without a folder of recordings, a stand-in reality is struck. A real run would distil 100,000 impacts, not 4,096.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from carom.compare import relative_error, summary
from carom.learn import adapt, distill
from carom.reality import sample_commands, standin
from carom.recordings import read, scene_of, strike_impacts


def main(folder: Path, out: Path) -> dict[str, float]:
    recordings = read(folder)
    impacts, skipped = strike_impacts(recordings)  # S_pre and S_post of each strike, and what could not be used
    train, test = impacts[np.arange(10)], impacts[np.arange(10, len(impacts))]
    bases = distill(scene_of(recordings), out, samples=4096, teachers=["compliant"], steps=500).bases
    model = adapt(bases, train)
    prediction = model.predict(test.strikes)  # from what was recorded before contact
    result = summary(relative_error(prediction.post, test.post, model.scene.gyration_radius))
    print(f"{len(train)} strikes to learn from, {len(test)} predicted, {len(skipped)} left out: {result}")
    return result


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if len(sys.argv) > 1:
            strikes = Path(sys.argv[1])
        else:
            reality = standin("nylon-low", "square", seed=0)
            commands = sample_commands(reality.shape, 40, np.random.default_rng(0))
            strikes = reality.execute(commands, place / "strikes", seed=0)
        main(strikes, place / "model")
