"""Commands that measure: evaluate, demo, bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from carom import recipes
from carom.bench import NAMES
from carom.cli.console import Out, run, say, working
from carom.cli.options import Json, On, Seed, Settle, Threads, enough, new_folder, one_of, some_of


def _methods() -> list[str]:
    from carom.compare import ABLATIONS, METHODS

    return [*METHODS, *ABLATIONS]


def evaluate(
    train: Annotated[Path, typer.Option(help="recordings to learn from")],
    test: Annotated[Path, typer.Option(help="recordings to predict")],
    model: Annotated[Path | None, typer.Option(help="base model folder; those of the package if not given")] = None,
    out: Annotated[
        Path | None, typer.Option(callback=new_folder, help="for base models and report; default: out/evaluate/TRAIN")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            callback=enough, help="distil base models of this scene into --out, from so many impacts per teacher"
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(callback=some_of("method", _methods), help="comma-separated; all if not given")
    ] = None,
    count: Annotated[int | None, typer.Option(min=3, help="learn from the first COUNT strikes only")] = None,
    settle: Settle = None,
    threads: Threads = 0,
    on: On = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Set all methods side by side: learn from one folder, predict another. Leaves an HTML report."""
    comparison = recipes.CompareOptions(_listed(methods), count, settle)
    if recipes.shows_pushes(train):
        given = {"--model": model, "--samples": samples, "--methods": methods, "--settle": settle}
        recipes.refuse_for_pushes([name for name, value in given.items() if value is not None])
        run(
            json_file,
            lambda progress: recipes.evaluate_pushes(
                train, test, out=out, count=count, seed=seed, threads=threads, progress=progress
            ),
            on=on,
        )
        return
    run(
        json_file,
        lambda progress: recipes.evaluate(
            train,
            test,
            out=out,
            bases=recipes.BaseOptions(model, samples),
            comparison=comparison,
            seed=seed,
            threads=threads,
            progress=progress,
        ),
        on=on,
    )


def _listed(methods: str | None) -> list[str] | None:
    return [name.strip() for name in methods.split(",") if name.strip()] if methods else None


def demo(
    out: Annotated[Path, typer.Option(callback=new_folder, help="folder for everything the demo makes")] = Path(
        "out/demo"
    ),
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Run the main job end to end on a built-in stand-in reality, and leave a report to look at."""
    run(json_file, lambda progress: recipes.demo(out, seed=seed, progress=progress))


def bench(
    name: Annotated[str, typer.Argument(callback=one_of("benchmark", lambda: NAMES), help=", ".join(NAMES))],
    data: Annotated[Path | None, typer.Option(help="folder of real recordings (robot-hits, toss)")] = None,
    draws: Annotated[int | None, typer.Option(min=1, help="draws of the training recordings; recovery: trials")] = None,
    samples: Annotated[int | None, typer.Option(callback=enough, help="simulated impacts per teacher")] = None,
    out: Annotated[Path, typer.Option(callback=new_folder, help="folder for base models and pieces of the run")] = Path(
        "out/bench"
    ),
    results: Annotated[Path, typer.Option(callback=new_folder, help="folder for NAME.json")] = Path(
        "benchmarks/results"
    ),
    only: Annotated[
        str | None, typer.Option(help="pieces whose names begin so, such as planar-cube/ensemble; several with commas")
    ] = None,
    threads: Threads = 0,
    on: On = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Run a benchmark: prints a table and writes benchmarks/results/NAME.json. Resumes after a kill."""
    from carom.bench import run_benchmark
    from carom.bench.tables import printed_tables

    printer = Out(json_file)
    with working(on) as (progress, cost):
        found = run_benchmark(
            name,
            data=data,
            draws=draws,
            samples=samples,
            out=out,
            seed=seed,
            threads=threads,
            only=tuple(part for part in (only or "").split(",") if part),
            progress=progress,
        )
    path = found.write(results / f"{name}.json")
    printer.write(json.loads(path.read_text()))
    for table in printed_tables(found):
        printer.table(table)
    for note in (*found.notes, *cost()):  # what was left out is among them
        say(note)
    say(f"wrote {path}")
