"""Which files `--params` means: one `parameters.yaml`, or those of the groups of bodies that a folder has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from carom.core.errors import CaromError
from carom.identify.result import FILE, Identification


def parameter_files(path: str | Path) -> tuple[Path, ...]:
    """The files that `--params` means: the one given, that of a folder, or those of its groups, by their names.

    `carom identify` writes a folder for each group where recordings are of several sets of bodies.
    """
    path = Path(path)
    own, groups = path / FILE, sorted(path.glob(f"*/{FILE}")) if path.is_dir() else []
    if groups and own.is_file():
        raise CaromError(
            f"{path} holds {FILE} and those of groups ({_some([g.parent.name for g in groups])}), of different runs; "
            f"choose one: --params {own}"
        )
    return tuple(groups) if groups else (own if path.is_dir() else path,)


def choose_one(path: str | Path, files: Sequence[Path]) -> CaromError:
    """What to say where the parameters of one group are wanted, and there are several."""
    names = [file.parent.name for file in files]
    return CaromError(
        f"{path} holds the parameters of {len(files)} groups of bodies ({_some(names)}); choose one: "
        f"--params {files[0].parent}"
    )


def refuse_of_others(path: str | Path, found: Identification, recordings: Mapping[str, str]) -> None:
    """Raise if parameters were identified from other recordings than these (name and SHA-256).

    A folder that has grown since keeps its name, and one that was moved its content.
    """
    stated = found.made_from.get("recordings")
    if isinstance(stated, Mapping) and all(stated.get(key) != recordings[key] for key in ("name", "sha256")):
        raise CaromError(
            f"{path}: its parameters were identified from other recordings ('{stated.get('name')}', not "
            f"'{recordings['name']}'); run carom identify on these"
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
