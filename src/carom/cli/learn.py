"""Commands from recordings to a corrected model: check, identify, distill, adapt, predict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from carom.cli.console import Json, Out, RecordingsArg, Seed, Teachers, Threads, bar, brief, errors
from carom.core.errors import CaromError

if TYPE_CHECKING:
    from carom.identify.result import Identification
    from carom.recordings import Recordings


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


def identify(
    recordings: RecordingsArg,
    model: Annotated[Path | None, typer.Option(help="base model folder, for --method gradient")] = None,
    method: Annotated[
        str, typer.Option(help="strikes: gradient, grid, cma, mjx; free bodies: cma, least-squares")
    ] = "cma",
    parameters: Annotated[
        str | None, typer.Option(help="free bodies: which to look for, comma-separated; table-ii: the paper's eight")
    ] = None,
    fixed: Annotated[list[str] | None, typer.Option("--fix", help="free bodies: NAME=VALUE, held; repeatable")] = None,
    fit: Annotated[int | None, typer.Option(help="free bodies: recordings to fit (12); the others test it")] = None,
    refine_starts: Annotated[
        bool, typer.Option("--refine-starts", help="free bodies: fit the velocities before the first contact too")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="strikes: write parameters.yaml here; free bodies: folder, also MJCF and report")
    ] = None,
    settle: Annotated[float | None, typer.Option(help="seconds after first motion where outcomes are read")] = None,
    json_file: Json = None,
    seed: Seed = 0,
    threads: Threads = 0,
) -> None:
    """Identify contact parameters from recordings, with intervals and a verdict for each.

    Strikes of a tool are identified from their impacts, tossed and colliding bodies from whole trajectories.
    """
    from carom.recipes.strikes import identify_strikes
    from carom.recipes.tosses import is_free
    from carom.recordings import read

    printer = Out(json_file)
    folder = read(recordings)
    if is_free(folder):
        _identify_free(printer, folder, method, parameters, fixed, fit, refine_starts, out, seed, threads)
        return
    if parameters or fixed or fit or refine_starts:
        raise CaromError(
            "--parameters, --fix, --fit, --refine-starts are for free bodies; these are recordings of strikes"
        )
    with bar() as progress:
        found, slides = identify_strikes(recordings, method, model=model, settle=settle, seed=seed, progress=progress)
    printer.write(found.to_dict() | {"slides": slides})
    _estimates(printer, found)
    printer.table("friction from slides", ["what", "value"], [[k, v] for k, v in slides.items()])
    if out is not None:
        errors.print(f"wrote {found.write(out)}")


def _estimates(printer: Out, found: Identification, title: str = "") -> None:
    rows = [[e.name, e.value, f"{e.low:.3g} to {e.high:.3g}", e.unit, e.verdict, e.reason] for e in found.estimates]
    columns = ["parameter", "value", "90 % interval", "unit", "verdict", "why"]
    printer.table(f"{found.method}: {title or found.scene}", columns, rows)


def _identify_free(
    printer: Out,
    folder: Recordings,
    method: str,
    parameters: str | None,
    fixed: list[str] | None,
    fit: int | None,
    refine_starts: bool,
    out: Path | None,
    seed: int,
    threads: int,
) -> None:
    from carom.recipes.tosses import facts, identify_free, parameter_names, write_calibrated

    held = {}
    for text in fixed or ():
        name, _, value = text.partition("=")
        try:
            held[name] = float(value)
        except ValueError:
            raise CaromError(f"--fix: expected NAME=VALUE with a number, got '{text}'") from None
    with bar() as progress:
        found = identify_free(
            folder,
            method=method,
            names=parameter_names(parameters),
            fixed=held,
            fit=fit,
            refine_starts=refine_starts,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    several = len(found) > 1
    printer.write([c.identification.to_dict() for c in found] if several else found[0].identification.to_dict())
    for calibrated in found:
        title = ", ".join(calibrated.trained.names[:2]) + (" ..." if len(calibrated.trained) > 2 else "")
        _estimates(printer, calibrated.identification, title)
        printer.table("errors and contact", ["what", "value"], [[k, v] for k, v in facts(calibrated).items()])
        if out is not None:
            where = out / Path(calibrated.trained.names[0]).stem if several else out
            for path in write_calibrated(where, calibrated):
                errors.print(f"wrote {path}")


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
    from carom.learn import distill as run
    from carom.recipes.strikes import any_scene

    printer = Out(json_file)
    with bar() as progress:
        made = run(
            any_scene(scene),
            out,
            samples=samples,
            teachers=teacher_names(teacher),
            preset=preset,
            steps=steps,
            seed=seed,
            threads=threads,
            progress=progress,
        )
    printer.write({"model": str(out), "bases": made.facts})
    keys = list(dict.fromkeys(k for f in made.facts for k in f))
    printer.table(f"base models in {out}", keys, [[f.get(k, "") for k in keys] for f in made.facts])


def teacher_names(teacher: str) -> tuple[str, ...]:
    """`both` stands for the two teachers."""
    return ("mujoco", "compliant") if teacher == "both" else (teacher,)


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
    from carom.recipes.strikes import adapt_to

    printer = Out(json_file)
    with bar() as progress:
        facts = adapt_to(model, recordings, out, preset=preset, settle=settle, seed=seed, progress=progress)
    printer.write(facts)
    printer.table(f"corrected model in {out}", ["what", "value"], [[k, brief(v)] for k, v in facts.items()])


def predict(
    model: Annotated[Path, typer.Argument(help="corrected model folder, from `carom adapt`")],
    recordings: RecordingsArg,
    json_file: Json = None,
    seed: Seed = 0,
) -> None:
    """Predict each strike's outcome from what was recorded before its contact."""
    from carom.recipes.strikes import predict_strikes

    printer = Out(json_file)
    found = predict_strikes(model, recordings)
    printer.write(found)
    nothing = ["", "", ""]
    rows = [[name, *(p["post"] or nothing), *(p["rest"] or nothing), p["status"]] for name, p in found.items()]
    columns = ["file", "vx [m/s]", "vy [m/s]", "wz [rad/s]", "rest x [m]", "rest y [m]", "rest yaw [rad]", "status"]
    printer.table("predicted outcomes", columns, rows)
