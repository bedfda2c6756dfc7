"""The command that brings in other makers' files: import."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from carom import recipes
from carom.cli.console import run
from carom.cli.options import ALONE, LONE, Json, new_folder, one_of, positive
from carom.core.errors import CaromError

KINDS = {"strikes": "strike", "tosses": "toss", "pushes": "push"}
Axis = Annotated[
    str | None,
    typer.Option(
        "--up", callback=one_of("axis", lambda: _ups()), help="the file's vertical axis: z, y, -y; else found"
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--cut",
        callback=one_of("event", lambda: LONE["--cut"]),
        help="one recording per event: strike, toss, push; --cut alone: what the take shows most often",
    ),
]
TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", callback=one_of("unit", lambda: ("s", "ms", "us", "ns")), help="of stamps")
]
LengthUnit = Annotated[
    str | None, typer.Option("--length-unit", callback=one_of("unit", lambda: ("m", "cm", "mm")), help="of positions")
]
AngleUnit = Annotated[
    str | None, typer.Option("--angle-unit", callback=one_of("unit", lambda: ("rad", "deg")), help="of angles")
]
Order = Annotated[
    str | None,
    typer.Option("--quaternion", callback=one_of("order", lambda: ("wxyz", "xyzw")), help="where w is in quaternions"),
]
Angles = Annotated[
    str | None,
    typer.Option(
        "--angles",
        callback=one_of("kind", lambda: ("vector", "XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")),
        help="what three angles are (Vicon, Qualisys, tables): a vector, or Euler (about x, the new y, the new z)",
    ),
]
Stamps = Annotated[
    str | None,
    typer.Option(
        "--clock", callback=one_of("clock", lambda: ("header", "received")), help="of bags: whose stamps count"
    ),
]


def _understood(names: list[str] | None) -> list[str] | None:
    from carom.recordings.imports.mapping import parse_map

    for text in names or ():
        try:
            parse_map(text)
        except CaromError as error:
            raise typer.BadParameter(str(error)) from error
    return names


def _ups() -> list[str]:
    from carom.recordings.imports.upright import TURNS

    return list(TURNS)


ImportFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="exports of Motive, Vicon, Qualisys, C3D, TRC, bags of ROS 1 and 2, MCAP, LeRobot, HDF5, TUM, EuRoC, "
        "KITTI, or tables; found by content",
    ),
]
ImportOut = Annotated[
    Path, typer.Option(callback=new_folder, help="folder for the recordings; an earlier import is replaced")
]
ImportNames = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        callback=_understood,
        help="a body and its role: 'Rigid Body 1=target', 'Hammer=stick:striker'; or what it is made of: "
        "'block:target=COLUMN,...' (columns, markers); repeat for each body",
    ),
]
ImportBodies = Annotated[
    Path | None, typer.Option(exists=True, help="shapes and masses: a file with 'bodies:', or a recordings folder")
]
ImportRate = Annotated[
    float | None, typer.Option(callback=positive, help="samples per second, where stamps are missing or wrong")
]
ImportOffset = Annotated[
    float | None, typer.Option(help="seconds to add to the stamps of the second file; else estimated")
]
ImportTypes = Annotated[
    list[Path] | None, typer.Option(exists=True, help="of bags: definition of a message type (.msg)")
]


def import_files(
    files: ImportFiles,
    out: ImportOut,
    names: ImportNames = None,
    up: Axis = None,
    bodies: ImportBodies = None,
    cut: Kind = None,
    rate: ImportRate = None,
    time: Annotated[str | None, typer.Option(help="column or data set with the stamps")] = None,
    time_unit: TimeUnit = None,
    length_unit: LengthUnit = None,
    angle_unit: AngleUnit = None,
    quaternion: Order = None,
    angles: Angles = None,
    offset: ImportOffset = None,
    clock: Stamps = None,
    types: ImportTypes = None,
    json_file: Json = None,
) -> None:
    """Turn other makers' files into recordings: bodies named, z-up, on one clock, cut into events."""
    from carom.recordings.formats.take import ReadOptions
    from carom.recordings.imports.joining import ImportOptions

    read: Any = {
        "time": time,
        "time_unit": time_unit,
        "length_unit": length_unit,
        "angle_unit": angle_unit,
        "quaternion_order": quaternion,
        "angles": angles,
        "rate": rate,
        "definitions": tuple(types or ()),
        "clock": clock,
    }
    options = ImportOptions(up=up, offset=offset, read=ReadOptions(**read))
    cutting: Any = False if cut is None else True if cut == ALONE else KINDS.get(cut, cut)
    run(
        json_file,
        lambda progress: recipes.import_files(
            list(files), out, names=names or (), bodies=bodies, cutting=cutting, options=options, progress=progress
        ),
    )
