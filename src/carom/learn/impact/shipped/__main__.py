"""`python -m carom.learn.impact.shipped FOLDER`: makes the base models that come with Carom again."""

from __future__ import annotations

import argparse
from pathlib import Path

from carom.learn.impact.shipped.make import Plan, make_any

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m carom.learn.impact.shipped", description=__doc__)
    parser.add_argument("folder", type=Path, help="for impacts and networks; an interrupted run goes on there")
    parser.add_argument("--scenes", type=int, default=Plan.scenes, help="per teacher and kind of striker")
    parser.add_argument("--steps", type=int, default=None, help="of each training; the usual number if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="of MuJoCo; 0: all cores")
    given = parser.parse_args()

    def show(what: str, done: int, total: int) -> None:
        if done % max(total // 10, 1) == 0:
            print(f"{what}: {done} of {total}", flush=True)

    plan = Plan(given.scenes, given.steps, given.seed, given.threads)
    for base in make_any(given.folder, plan, progress=show):
        print(base.teacher, "flat" if base.flat else "round", base.held_out)
