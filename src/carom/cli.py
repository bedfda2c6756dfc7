"""The `carom` command: one sub-command per stage, in the order in which data flows. No logic of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

import carom
from carom.errors import CaromError

app = typer.Typer(
    help="From a MuJoCo scene and ten recordings of contact to a simulator you can trust.\n\n"
    "Stages, in the order in which data flows: check -> identify -> distill -> adapt -> predict -> plan; evaluate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
errors = Console(stderr=True)
UsageMistake: Any = typer.BadParameter.__mro__[2]  #: click's ClickException, whichever copy of click typer brings along

Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="also write the result as JSON ('-': stdout)")]
Seed = Annotated[int, typer.Option(min=0, help="random seed; the same seed gives the same result")]
Threads = Annotated[
    int, typer.Option(min=0, help="threads of the engine; 0: all cores. The result does not depend on it")
]
Teachers = Annotated[str, typer.Option("--teacher", help="what to learn from: mujoco, compliant (analytic), or both")]
RecordingsArg = Annotated[Path, typer.Argument(help="folder in the recordings format")]


class Out:
    """Where results go: a table for people on stdout, JSON for machines."""

    def __init__(self, json_file: str | None) -> None:
        self.json_file = json_file
        self.console = Console(stderr=json_file == "-", width=None if sys.stdout.isatty() else 150)

    def table(self, title: str, columns: list[str], rows: list[list[Any]]) -> None:
        table = Table(title=title, title_justify="left")
        for i, name in enumerate(columns):
            numeric = i > 0 and any(isinstance(row[i], int | float) for row in rows)
            table.add_column(name, justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))
        self.console.print(table)

    def write(self, result: Any) -> None:
        if self.json_file is None:
            return
        text = json.dumps(_plain(result), indent=1, allow_nan=False)
        if self.json_file == "-":
            print(text)
            return
        path = Path(self.json_file)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + ".part")
        temporary.write_text(text + "\n")
        temporary.replace(path)


def _plain(value: Any) -> Any:
    """JSON-able copy: NaN and infinity become null, arrays lists."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return value


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr: call with what is done, how much, of how much."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"))
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    quiet = not errors.is_terminal  # a log file wants lines, not a bar
    with Progress(*columns, *times, console=errors, transient=True, disable=quiet) as progress:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield update


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="print the version and stop")] = False) -> None:
    if version:
        print(carom.__version__)
        raise typer.Exit()


@app.command()
def check(
    folder: RecordingsArg,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Check recordings: what is there, how good it is, what is physically wrong. Nothing is repaired."""
    from carom.recordings import check as check_recordings

    out = Out(json_file)
    with errors.status(f"reading {folder}"):
        report = check_recordings(folder)
    out.write(report.to_dict())
    if not report.listed:
        raise CaromError(report.findings[0].message)
    out.table(f"{folder}", ["what", "found"], [list(row) for row in report.summary()])
    findings = [[f.level, f.message] for f in report.findings]
    out.table("findings", ["level", "message"], findings or [["note", "nothing to report"]])
    if not report.ok:
        raise CaromError(
            f"{folder}: errors were found (see the findings); the files named there cannot be used as they are"
        )


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_brief(v)}" for k, v in value.items() if v is not None)
    if isinstance(value, list):
        return "-".join(_brief(v) for v in value) if len(value) == 2 else ", ".join(_brief(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@app.command()
def identify(
    recordings: RecordingsArg,
    model: Annotated[Path | None, typer.Option(help="base model folder, for --method gradient")] = None,
    method: Annotated[str, typer.Option(help="gradient, grid, cma or mjx")] = "cma",
    out: Annotated[Path | None, typer.Option(help="write parameters.yaml here")] = None,
    settle: Annotated[float | None, typer.Option(help="seconds after first motion where outcomes are read")] = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Identify contact parameters from recorded strikes, with intervals and a verdict for each."""
    from carom.evaluate.stages import identify_strikes

    printer = Out(json_file)
    with bar() as progress:
        found, slides = identify_strikes(recordings, method, model=model, settle=settle, seed=seed, progress=progress)
    printer.write(found.to_dict() | {"slides": slides})
    rows = [[e.name, e.value, f"{e.low:.3g} to {e.high:.3g}", e.unit, e.verdict, e.reason] for e in found.estimates]
    printer.table(f"{method}: {found.scene}", ["parameter", "value", "90 % interval", "unit", "verdict", "why"], rows)
    printer.table("friction from slides", ["what", "value"], [[k, v] for k, v in slides.items()])
    if out is not None:
        errors.print(f"wrote {found.write(out)}")


@app.command()
def distill(
    scene: Annotated[str, typer.Argument(help="built-in scene, scene file (YAML), or recordings folder")],
    out: Annotated[Path, typer.Option(help="folder for the base models; an interrupted run goes on there")],
    samples: Annotated[int, typer.Option(help="simulated impacts per teacher")] = 100_000,
    teacher: Teachers = "both",
    preset: Annotated[str, typer.Option(help="default, or paper (section IV-A of CLASH)")] = "default",
    steps: Annotated[int | None, typer.Option(help="training steps; the preset's if not given")] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Distil a simulator's contact response into base models f(S_pre, P) -> S_post."""
    from carom.distill import distill as run
    from carom.evaluate.stages import any_scene

    printer = Out(json_file)
    with bar() as progress:
        made = run(
            any_scene(scene), out, samples=samples, teachers=teacher_names(teacher), preset=preset, steps=steps,
            seed=seed, threads=threads, progress=progress,
        )  # fmt: skip
    printer.write({"model": str(out), "bases": made.facts})
    keys = list(dict.fromkeys(k for f in made.facts for k in f))
    printer.table(f"base models in {out}", keys, [[f.get(k, "") for k in keys] for f in made.facts])


def teacher_names(teacher: str) -> tuple[str, ...]:
    """`both` stands for the two teachers."""
    return ("mujoco", "compliant") if teacher == "both" else (teacher,)


@app.command()
def adapt(
    model: Annotated[Path, typer.Argument(help="base model folder, from `carom distill`")],
    recordings: RecordingsArg,
    out: Annotated[Path, typer.Option(help="folder for the corrected model")],
    preset: Annotated[str, typer.Option(help="default, or paper (gradient identification, 10 steps)")] = "default",
    settle: Annotated[float | None, typer.Option(help="seconds after first motion where outcomes are read")] = None,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Correct base models with a handful of recorded strikes."""
    from carom.evaluate.stages import adapt_to

    printer = Out(json_file)
    with bar() as progress:
        facts = adapt_to(model, recordings, out, preset=preset, settle=settle, seed=seed, progress=progress)
    printer.write(facts)
    printer.table(f"corrected model in {out}", ["what", "value"], [[k, _brief(v)] for k, v in facts.items()])


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="corrected model folder, from `carom adapt`")],
    recordings: RecordingsArg,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Predict each strike's outcome from what was recorded before its contact."""
    from carom.evaluate.stages import predict_strikes

    printer = Out(json_file)
    found = predict_strikes(model, recordings)
    printer.write(found)
    nothing = ["", "", ""]
    rows = [[name, *(p["post"] or nothing), *(p["rest"] or nothing), p["status"]] for name, p in found.items()]
    columns = ["file", "vx [m/s]", "vy [m/s]", "wz [rad/s]", "rest x [m]", "rest y [m]", "rest yaw [rad]", "status"]
    printer.table("predicted outcomes", columns, rows)


@app.command()
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
    from carom.evaluate.planned import export_plan, plan_figures, plan_from_model, plan_rows
    from carom.report import write_report

    printer = Out(json_file)
    if export is not None and export.exists() and not export.is_dir():
        raise CaromError(f"--export {export}: expected a folder, or a name for a new one; that is a file")
    with bar() as progress:
        found, engine = plan_from_model(
            model, target, start=start, engine=simulator, method=method, robust=robust, budget=budget, speed=speed,
            tolerance=tolerance, seed=seed, threads=threads, progress=progress,
        )  # fmt: skip
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
            f"({1e3 * found.position_error:.0f} mm and {abs(found.yaw_error):.2f} rad off)", soft_wrap=True,
        )  # fmt: skip
        if export is not None:
            raise CaromError(
                f"nothing was exported: plan for a pose within reach, for instance {x:.4f} {y:.4f} {yaw:.3f}"
            )
    elif export is not None:
        for path in export_plan(export, found, engine.scene, base=base):
            errors.print(f"wrote {path}")


@app.command()
def evaluate(
    train: Annotated[Path, typer.Option(help="recordings to learn from")],
    test: Annotated[Path, typer.Option(help="recordings to predict")],
    model: Annotated[Path | None, typer.Option(help="base models; distilled into --out if not given")] = None,
    out: Annotated[Path | None, typer.Option(help="for base models and report; default: out/evaluate/TRAIN")] = None,
    samples: Annotated[int, typer.Option(help="simulated impacts per teacher, if base models are to be made")] = 40_000,
    methods: Annotated[str | None, typer.Option(help="comma-separated; all if not given")] = None,
    count: Annotated[int | None, typer.Option(help="learn from the first COUNT strikes only")] = None,
    settle: Annotated[float | None, typer.Option(help="seconds after first motion where outcomes are read")] = None,
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Set all methods side by side: learn from one folder, predict another. Leaves an HTML report."""
    from carom.evaluate.folders import evaluate_folders

    printer = Out(json_file)
    with bar() as progress:
        result = evaluate_folders(
            train, test, model=model, out=out or Path("out/evaluate") / train.resolve().name, samples=samples,
            count=count, settle=settle, seed=seed, threads=threads,
            methods=methods.split(",") if methods else None, progress=progress,
        )  # fmt: skip
    printer.write(result.to_dict())
    columns = ["method", "accuracy@0.1", "accuracy@0.05", "median-relative-error", "90 % covers", "seconds", "note"]
    printer.table(f"{len(result.train)} strikes to learn from, {len(result.test)} to predict", columns, result.table())
    errors.print(f"report: {result.report}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="folder for everything the demo makes")] = Path("out/demo"),
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Run the main job end to end on a built-in stand-in reality, and leave a report to look at."""
    from carom.bench.demo import run_demo

    printer = Out(json_file)
    with bar() as progress:
        result = run_demo(out, seed=seed, progress=progress)
    printer.write(result.to_dict())
    columns = ["method", "accuracy@0.1", "accuracy@0.05", "median-relative-error", "90 % covers", "seconds", "note"]
    printer.table("demo: ten strikes of a stand-in reality to learn from", columns, result.table())
    errors.print(f"report: {result.report}")


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="distill, impact-accuracy, planning, planning-time, robot-hits or speed")],
    data: Annotated[Path | None, typer.Option(help="folder of real recordings (robot-hits)")] = None,
    draws: Annotated[int | None, typer.Option(help="draws of the training strikes")] = None,
    samples: Annotated[int | None, typer.Option(help="simulated impacts per teacher")] = None,
    out: Annotated[Path, typer.Option(help="folder for base models and pieces of the run")] = Path("out/bench"),
    results: Annotated[Path, typer.Option(help="folder for NAME.json")] = Path("benchmarks/results"),
    threads: Threads = 0,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Run a benchmark: prints a table and writes benchmarks/results/NAME.json. Resumes after a kill."""
    from carom.bench import run_benchmark
    from carom.bench.results import metrics_of, rich_table

    printer = Out(json_file)
    with bar() as progress:
        found = run_benchmark(
            name, data=data, draws=draws, samples=samples, out=out, seed=seed, threads=threads, progress=progress
        )
    path = found.write(results / f"{name}.json")
    printer.write(json.loads(path.read_text()))
    for metric in metrics_of(found):
        printer.console.print(rich_table(found, metric=metric))
    errors.print(f"wrote {path}")


def main() -> None:
    """Entry point: every mistake of a user ends in one line and exit code 2."""
    try:
        app(standalone_mode=False)
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except UsageMistake as error:
        _fail(error.format_message())
    except (CaromError, OSError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print("carom: stopped; what was finished is kept, the same command goes on from there", file=sys.stderr)
        sys.exit(130)


def _fail(message: str) -> None:
    print(f"carom: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)
