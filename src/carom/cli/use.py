"""Commands that put a model to use: plan, train, rollout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carom.cli.console import Json, Out, Seed, Threads, bar, brief, errors, extra
from carom.core.errors import CaromError


def plan(
    model: Annotated[Path, typer.Argument(help="corrected model folder, from `carom adapt`")],
    target: Annotated[
        tuple[float, float, float], typer.Option(help="wanted pose of the target: x [m], y [m], yaw [rad]")
    ],
    start: Annotated[tuple[float, float, float], typer.Option("--from", help="pose it lies in now")] = (0.0, 0.0, 0.0),
    method: Annotated[str, typer.Option(help="cma, cem, or gradient (through network and slider)")] = "cma",
    simulator: Annotated[str, typer.Option(help="hybrid, hybrid-mujoco (slides in MuJoCo), mujoco, or mjx")] = "hybrid",
    robust: Annotated[bool, typer.Option("--robust", help="expectation over the model's uncertainty")] = False,
    budget: Annotated[int | None, typer.Option(help="simulated strikes at most")] = None,
    speed: Annotated[tuple[float, float] | None, typer.Option(help="of the striker, lowest and highest [m/s]")] = None,
    tolerance: Annotated[tuple[float, float], typer.Option(help="within reach if off by less: [m] [rad]")] = (
        0.01,
        0.1,
    ),
    export: Annotated[Path | None, typer.Option(help="folder for the robot's set-points (1 kHz CSV, JSON)")] = None,
    base: Annotated[tuple[float, float, float], typer.Option(help="pose of the robot's base in the world")] = (
        0.0,
        0.0,
        0.0,
    ),
    report: Annotated[Path | None, typer.Option(help="write a page with the picture of the plan here")] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Plan the strike that brings the target to a wanted pose; says so if no single strike can."""
    from carom.recipes.plan import export_plan, plan_figures, plan_from_model, plan_rows
    from carom.report import write_report

    printer = Out(json_file)
    if export is not None and export.exists() and not export.is_dir():
        raise CaromError(f"--export {export}: expected a folder, or a name for a new one; that is a file")
    with bar() as progress:
        found, engine = plan_from_model(
            model,
            target,
            start=start,
            engine=simulator,
            method=method,
            robust=robust,
            budget=budget,
            speed=speed,
            tolerance=tolerance,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    printer.write(found.to_dict())
    printer.table(f"planned strike: {engine.scene.name}", ["what", "value"], plan_rows(found))
    if report is not None:
        page = write_report(report, plan_figures(found, engine), title="A planned strike", subtitle=engine.scene.name)
        errors.print(f"report: {page}")
    if not found.reachable:
        x, y, yaw = found.rest
        errors.print(
            f"out of reach with one strike, as far as {found.evaluations} tries can tell: "
            f"the nearest pose is {x:.4f} {y:.4f} {yaw:.3f} "
            f"({1e3 * found.position_error:.0f} mm and {abs(found.yaw_error):.2f} rad off)",
            soft_wrap=True,
        )
        if export is not None:
            raise CaromError(
                f"nothing was exported: plan for a pose within reach, for instance {x:.4f} {y:.4f} {yaw:.3f}"
            )
    elif export is not None:
        for path in export_plan(export, found, engine.scene, base=base):
            errors.print(f"wrote {path}")


def train(
    out: Annotated[Path, typer.Option(help="folder for the policy; an interrupted training goes on there")],
    env: Annotated[
        str, typer.Option(help="carom/StrikeSegment-v0, or carom/StrikeRoute-v0")
    ] = "carom/StrikeSegment-v0",
    route: Annotated[str | None, typer.Option(help="of carom/StrikeRoute-v0: 1, 2, 3 or a file (YAML)")] = None,
    model: Annotated[Path | None, typer.Option(help="corrected model folder, from `carom adapt`")] = None,
    simulator: Annotated[str, typer.Option(help="hybrid, hybrid-mujoco, mujoco, or mjx")] = "hybrid",
    randomise: Annotated[bool, typer.Option("--randomise", help="over what the model is uncertain about")] = False,
    algo: Annotated[str, typer.Option(help="sac or ppo")] = "sac",
    steps: Annotated[int, typer.Option(min=1, help="transitions")] = 200_000,
    preset: Annotated[str, typer.Option(help="fast (batched), or paper (the defaults of SB3)")] = "fast",
    library: Annotated[str, typer.Option(help="sb3, or sbx (extra; faster updates)")] = "sb3",
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Train a policy that strikes a block along straight segments (section IV-C of CLASH). Resumes after a kill."""
    policies = extra("carom.recipes.policies")
    printer = Out(json_file)
    with bar() as progress:
        engines, made_by = policies.training_engines(model, simulator, randomise=randomise, seed=seed, threads=threads)
        policy = policies.train_policy(
            out,
            engines,
            environment=env,
            route=route,
            algo=algo,
            steps=steps,
            preset=preset,
            library=library,
            seed=seed,
            progress=progress,
            made_by=made_by,
        )
    facts = {"policy": str(out), "environment": policy.environment, "algorithm": policy.algorithm, **policy.made_by}
    printer.write(facts)
    shown = {k: v for k, v in facts.items() if k != "settings"}
    printer.table(f"policy in {out}", ["what", "value"], [[k, brief(v)] for k, v in shown.items()])
    errors.print(f"next: carom rollout {out} --on nylon-low --routes 1 2 3")


def rollout(
    policy: Annotated[Path, typer.Argument(help="policy folder, from `carom train`")],
    more_routes: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    on: Annotated[str, typer.Option(help="a stand-in reality (like nylon-low), or a model folder")] = "nylon-low",
    routes: Annotated[
        list[str] | None, typer.Option(metavar="ROUTE...", help="1, 2, 3 or files (YAML), several at once; default: 1")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="along each route")] = 100,
    animation: Annotated[Path | None, typer.Option(help="GIF of a trial; default: POLICY/trials.gif")] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Try a policy along routes: success and sub-goal rates with 95 % intervals, and an animation."""
    policies = extra("carom.recipes.policies")
    if more_routes and not routes:
        raise CaromError(f"expected one policy, got also {' '.join(more_routes)}; routes follow --routes")
    printer, chosen = Out(json_file), [*(routes or ["1"]), *(more_routes or [])]
    picture = animation or policy / "trials.gif"
    if picture.suffix.lower() != ".gif":
        raise CaromError(f"--animation {picture}: expected a name that ends in .gif")
    with bar() as progress:
        found = policies.roll_out(policy, on, chosen, trials=trials, seed=seed, threads=threads, progress=progress)
    rows = policies.trial_rows(found)
    printer.write({"policy": str(policy), "on": on, "routes": rows})
    columns = ["route", "SR", "95 % interval", "SGCR", "95 % interval", "left the zone", "strikes"]
    table = [
        [
            r["route"],
            r["success_rate"],
            brief(r["success_rate_interval"]),
            r["subgoal_rate"],
            brief(r["subgoal_rate_interval"]),
            f"{r['left_zone']} of {r['trials']}",
            r["mean_strikes"],
        ]
        for r in rows
    ]
    printer.table(f"{policy} on {on}, {trials} trials each", columns, table)
    policies.animate(policy, on, chosen, picture, seed=seed, threads=threads)
    errors.print(f"animation: {picture}")
