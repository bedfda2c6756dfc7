"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
#: what `make quick` leaves out: files, folders or single tests that together take most of the suite's time
SLOW = (
    "bench/test_graph_bench.py",
    "bench/test_loop_bench.py",
    "bench/test_recovery.py",
    "bench/test_recovery_strikes.py",
    "compare/test_compare.py",
    "core/test_on_ray.py",
    "docs",
    "engines/mjx",
    "envs/test_push.py",
    "hybrid/test_hybrid_model.py",
    "hybrid/test_hybrid_step.py",
    "identify/next/test_suggest.py",
    "identify/pushes/test_led.py::test_friction_and_patch_come_back_and_the_mass_does_not_show",
    "identify/pushes/test_tune.py::test_frictions_mass_and_delay_come_back",
    "identify/strikes/test_gradient.py",
    "identify/strikes/test_search.py",
    "identify/strikes/test_slides.py",
    "identify/strikes/test_sliding.py",
    "identify/strikes/test_strike_mjx.py",
    "identify/tosses/test_gauss_newton.py",
    "identify/tosses/test_restitution.py",
    "identify/tosses/test_toss_result.py",
    "learn/graph/test_face_network.py",
    "learn/graph/test_graph_physics.py",
    "learn/graph/test_graph_training.py",
    "learn/impact/test_adapt.py",
    "learn/impact/test_shipped.py::test_adapt_needs_no_model",
    "loop/test_loop_pushes.py",
    "loop/test_loop_strikes.py",
    "plan/test_arm_motion.py",
    "plan/test_plan_search.py",
    "reality/test_bullet.py",
    "reality/test_standin.py",
    "recipes/test_recipe_demo.py",
    "recipes/test_recipe_identifying.py",
    "recipes/test_recipe_pages.py",
    "recipes/test_recipe_evaluating_pushes.py",
    "recipes/test_recipe_identified_pushes.py",
    "recipes/test_recipe_pushes.py",
    "recipes/test_recipe_tosses.py",
    "recipes/test_result_page.py::test_a_model_its_predictions_and_its_motions_have_pages",
    "report/test_report_in_chromium.py",
    "recordings/formats/test_reader_bags.py::test_bags_cut_and_spoilt_at_random",
    "recordings/test_recordings_shared.py",
    "scale/test_scale_groups.py",
    "scale/test_scale_run.py",
    "scenes/test_free_opened.py",
    "test_cli.py",
    "test_cli_doors.py",
    "test_cli_help.py::test_the_doctor_finds_this_installation_well",
    "test_cli_motions.py",
    "test_cli_options.py",
    "test_cli_policies.py",
    "test_examples.py",
    "test_wheel.py::test_what_is_installed_works_outside_of_the_clone",
    "train/test_train_pushing.py",
    "train/test_train_run.py",
    "train/test_trials.py::test_intervals_hold_what_they_promise",
    "view/test_view_at_the_door.py::test_it_serves_until_ctrl_c_and_ends_cleanly",
    "view/test_view_in_chromium.py",
)

# Under nohup and the like SIGINT is ignored, and all that a test starts would ignore it too: Ctrl-C is tested as a user
# knows it. What is started from here gets the default again, as this process no longer ignores the signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the slow tests their marker."""
    for item in items:
        place = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        name = f"{place}::{getattr(item, 'originalname', item.name)}"
        if any(slow in (place, name) or place.startswith(f"{slow}/") for slow in SLOW):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real recordings: beside the repository, or wherever CAROM_DATA says."""
    folder = Path(os.environ.get("CAROM_DATA") or TESTS.parents[1] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"real recordings are not there ({folder}); set CAROM_DATA to their folder")
    return folder


#: the coverage-guided fuzzer needs an extra of its own, and is no test
collect_ignore = ["fuzz/guided.py"]
#: environments and policies are an extra: without its libraries their tests are not collected
if not all(find_spec(name) for name in ("gymnasium", "PIL", "stable_baselines3")):
    collect_ignore_glob = ["envs/*", "train/*"]
