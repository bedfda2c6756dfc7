"""Commands that measure: evaluate, demo, bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from carom import recipes
from carom.bench import NAMES
from carom.cli.console import Json, Out, Seed, Threads, bar, errors, run


def evaluate(
    train: Annotated[Path, typer.Option(help="recordings to learn from")],
    test: Annotated[Path, typer.Option(help="recordings to predict")],
    model: Annotated[Path | None, typer.Option(help="base model folder; those of the package if not given")] = None,
    out: Annotated[Path | None, typer.Option(help="for base models and report; default: out/evaluate/TRAIN")] = None,
    samples: Annotated[
        int | None, typer.Option(help="distil base models of this scene into --out, from so many impacts per teacher")
    ] = None,
    methods: Annotated[str | None, typer.Option(help="comma-separated; all if not given")] = None,
    count: Annotated[int | None, typer.Option(help="learn from the first COUNT strikes only")] = None,
    settle: Annotated[float | None, typer.Option(help="seconds after first motion where outcomes are read")] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Set all methods side by side: learn from one folder, predict another. Leaves an HTML report."""
    comparison = recipes.CompareOptions(methods.split(",") if methods else None, count, settle)
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
    )


def demo(
    out: Annotated[Path, typer.Option(help="folder for everything the demo makes")] = Path("out/demo"),
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Run the main job end to end on a built-in stand-in reality, and leave a report to look at."""
    run(json_file, lambda progress: recipes.demo(out, seed=seed, progress=progress))


def bench(
    name: Annotated[str, typer.Argument(help=", ".join(NAMES))],
    data: Annotated[Path | None, typer.Option(help="folder of real recordings (robot-hits, toss)")] = None,
    draws: Annotated[int | None, typer.Option(help="draws of the training recordings; recovery: trials")] = None,
    samples: Annotated[int | None, typer.Option(help="simulated impacts per teacher")] = None,
    out: Annotated[Path, typer.Option(help="folder for base models and pieces of the run")] = Path("out/bench"),
    results: Annotated[Path, typer.Option(help="folder for NAME.json")] = Path("benchmarks/results"),
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Run a benchmark: prints a table and writes benchmarks/results/NAME.json. Resumes after a kill."""
    from carom.bench import run_benchmark
    from carom.bench.tables import rich_tables

    printer = Out(json_file)
    with bar() as progress:
        found = run_benchmark(
            name, data=data, draws=draws, samples=samples, out=out, seed=seed, threads=threads, progress=progress
        )
    path = found.write(results / f"{name}.json")
    printer.write(json.loads(path.read_text()))
    for table in rich_tables(found):
        printer.console.print(table)
    for note in found.notes:  # what was left out is among them; brackets are not markup
        errors.print(note, markup=False, highlight=False, soft_wrap=True)
    errors.print(f"wrote {path}")
