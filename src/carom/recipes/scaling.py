"""`carom scale`: trajectories by the thousand, simulated with calibrated parameters or rotated from recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, final

from carom.core.errors import CaromError, unknown_name
from carom.core.locks import locked
from carom.core.progress import Progress, silent
from carom.identify.parameter_files import choose_one, parameter_files
from carom.recipes.result import PrintedTable, Result, table_of
from carom.scale import Scaled, Variation, augment, calibration, cubes, dropped, recorded, shapes, toss, varied
from carom.scale import scale as simulate
from carom.scale.around import Recorded, with_own_parameters
from carom.scale.calibration import Calibration, Calibrations, group_calibrations
from carom.scale.sources import Source
from carom.scenes.free import timestep

BUILTIN = ("toss", "cubes", "shapes")
NOTES = 5  #: of what was made that are shown


@dataclass(frozen=True)
class ScaleOptions:
    """Which bodies move, how they vary, and for how long. None: the source's own."""

    params: Path | None = None  #: `parameters.yaml` made by `identify`, or its folder; None: the engine's defaults
    spread: bool = False  #: whether parameters are drawn within their 90 % intervals
    vary: float | None = None  #: factor within which parameters of contacts are drawn around their values
    mesh: Sequence[Path] = ()  #: convex meshes to drop on the ground, in place of a scene
    bodies: tuple[int, int] | None = None  #: fewest and most: cubes that stand, shapes, meshes
    size: tuple[float, float] | None = None  #: factors of all lengths
    aspect: float | None = None  #: factor of each length, up or down
    mass: tuple[float, float] | None = None  #: factors of the density
    density: float | None = None  #: of meshes [kg/m^3]
    rate: float | None = None  #: samples per second
    duration: float | None = None  #: [s]


@final
@dataclass(frozen=True)
class ScaleResult(Result):
    """A data set on disk."""

    made: Scaled

    def to_dict(self) -> dict[str, Any]:
        return self.made.to_dict()

    def tables(self) -> Sequence[PrintedTable]:
        return (table_of(f"trajectories in {self.made.folder}", self.to_dict()),)

    def notes(self) -> Sequence[str]:
        notes = [f"note: {note}" for note in self.made.notes[:NOTES]]
        more = len(self.made.notes) - NOTES
        left = [f"note: {more} more were left out"] if more > 0 else []
        return [*notes, *left, f"next, in Python: carom.scale.load({str(self.made.folder)!r})"]


def scale(
    out: str | Path,
    scene: str | Path | None = None,
    *,
    options: ScaleOptions | None = None,
    rotate: str | Path | None = None,
    count: int = 3000,
    seed: int = 0,
    threads: int = 0,
    progress: Progress = silent,
) -> ScaleResult:
    """Write `count` trajectories of a scene (`toss`, `cubes`, `shapes`, a folder of recordings, or meshes) into `out`.

    With `rotate`, recordings of that folder are rotated about the vertical and nothing is simulated (the papers' DA
    baseline). After a kill the same call goes on where it stopped.
    """
    with locked(Path(out)):
        return _scale(Path(out), scene, options or ScaleOptions(), rotate, count, seed, threads, progress)


def _scale(
    out: Path,
    scene: str | Path | None,
    options: ScaleOptions,
    rotate: str | Path | None,
    count: int,
    seed: int,
    threads: int,
    progress: Progress,
) -> ScaleResult:
    if rotate is not None:
        _refuse_with_augment(options, scene, threads)
        return ScaleResult(augment(Path(rotate), out, count=count, seed=seed, progress=progress))
    source, found, notes = _calibrated(_source(None if scene is None else str(scene), options), options)
    made = simulate(
        source,
        found,
        out,
        count=count,
        variation=Variation(**_given(size=options.size, aspect=options.aspect, mass=options.mass)),
        seed=seed,
        threads=threads,
        progress=progress,
    )
    return ScaleResult(replace(made, notes=(*notes, *made.notes)))


def _calibrated(source: Source, options: ScaleOptions) -> tuple[Source, Calibration | Calibrations, Sequence[str]]:
    """The source with its parameters, for each group its own where there are several; and what to say of it."""
    files = () if options.params is None else parameter_files(options.params)
    if options.params is not None and len(files) > 1:
        if not isinstance(source, Recorded):
            raise choose_one(options.params, files)
        if options.vary is not None:
            raise CaromError("--vary needs the parameters of one group of bodies, got those of several")
        every = group_calibrations(options.params, files, source.recordings, spread=options.spread)
        return *with_own_parameters(source, every), ()
    found = calibration(files[0] if files else None, spread=options.spread)
    notes: list[str] = []
    if "face_friction" in found.names and any(t.solid.kind != "box" for t in source.templates):
        found = found.without("face_friction")
        notes.append("face_friction belongs to boxes alone, and was left out: everything rubs by `friction`")
    if options.vary is not None:
        found = varied(found, options.vary, timestep(source.period))
    if isinstance(source, Recorded) and found.recordings and len(source.parts) > 1:
        others = sum(not set(found.recordings) & set(part.motions.names) for part in source.parts)
        if others:
            note = (
                f"{others} of {len(source.parts)} groups of bodies move by parameters that were identified from others"
            )
            notes.append(f"{note}; --params with the folder of all groups gives each its own")
    return source, found, notes


def _given(**options: Any) -> dict[str, Any]:
    """Those of the options that a user gave."""
    return {name: value for name, value in options.items() if value is not None}


def _refuse_with_augment(options: ScaleOptions, scene: str | Path | None, threads: int) -> None:
    given = {"a scene": scene, **{f"--{f.name}": getattr(options, f.name) for f in fields(options)}}
    for what, value in {**given, "--threads": threads or None}.items():
        if value is not None and value is not False and value != ():
            raise CaromError(f"--augment rotates recordings as they are: {what} has no meaning there; leave it out")


def _source(scene: str | None, options: ScaleOptions) -> Source:
    meshes, bodies = list(options.mesh), options.bodies
    timing: dict[str, Any] = {"rate": options.rate, "duration": options.duration}
    if meshes and scene is not None:
        raise CaromError(f"expected a scene or --mesh, got both ('{scene}' and {len(meshes)} meshes)")
    if options.density is not None and not meshes:
        raise CaromError("--density belongs to --mesh; other bodies have a mass of their own")
    if meshes:
        return dropped(meshes, bodies=bodies, **timing, **_given(density=options.density))
    if scene is None:
        raise CaromError(f"expected a scene ({', '.join(BUILTIN)}, or a recordings folder), --mesh, or --augment")
    if scene in ("cubes", "shapes"):
        return (cubes if scene == "cubes" else shapes)(bodies=bodies, **timing)
    if bodies is not None:
        raise CaromError("--bodies belongs to cubes, shapes and --mesh; a toss and recordings have bodies of their own")
    if scene == "toss":
        return toss(**timing)
    if not Path(scene).is_dir():
        raise CaromError(unknown_name("scene", scene, BUILTIN) + ", or a folder of recordings")
    return recorded(Path(scene), **timing)
