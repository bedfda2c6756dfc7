"""What every scene is: an `MjSpec` whose bodies have roles, with parameters that can be written into it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from carom.core.errors import SceneError, unknown_name
from carom.scenes.mjcf_files import built, check_xml, load_mjcf
from carom.scenes.parameters import CONTACT, write_contacts
from carom.scenes.shapes import ROLES, Body
from carom.state import Array

if TYPE_CHECKING:
    import mujoco


class Scene(ABC):
    """Bodies, ground and robots, as MuJoCo builds them.

    A body that moves by a free joint, or in the plane by the joints NAME_x, NAME_y and NAME_yaw, has a pose and a twist
    in a `SceneState`; all other joints are joints.
    """

    name: str

    @property
    @abstractmethod
    def takes(self) -> tuple[str, ...]:
        """Names of the parameters that can be written into it."""

    def check_parameters(self, names: Sequence[str]) -> None:
        """Refuse parameters that mean nothing here."""
        for name in names:
            if name not in self.takes:
                takes = f"it takes: {', '.join(self.takes)}"
                raise SceneError(f"parameter '{name}' has no meaning in scene '{self.name}'; {takes}")

    @abstractmethod
    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """The scene with this time step [s], ready for these parameters; `step` None: the scene's own."""

    @abstractmethod
    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """Write parameters [N] by name into the simulations of a `mujoco.batch.Batch`."""

    def write_rows(self, batch: Any, values: Mapping[str, Array], bodies: Sequence[Sequence[Body]]) -> None:
        """The same with bodies of its own for each row, as many as the scene has; only a `VariedScene` can."""
        self.check_rows(bodies)

    def check_rows(self, bodies: Sequence[Sequence[Body]] | None) -> None:
        """Refuse bodies of rows that this scene cannot have."""
        if bodies is not None:
            raise SceneError(f"scene '{self.name}': its bodies are the same in all rows; use a VariedScene")


@final
@dataclass(frozen=True)
class MjcfScene(Scene):
    """A user's own MJCF: any bodies, joints and actuators, with the roles that Carom needs to know."""

    name: str
    xml: str = ""  #: the MJCF itself, or empty if it is in a file
    roles: Mapping[str, str] = field(default_factory=dict)  #: role to name of the body
    file: Path | None = None  #: with the MJCF; its meshes and includes are looked for beside it

    def __post_init__(self) -> None:
        spec = self.spec()
        what = f"scene '{self.name}'" if self.file is None else f"scene '{self.name}' ({self.file})"
        built(what, spec.compile)
        names = [body.name for body in spec.bodies if body.name]
        for role, body in self.roles.items():
            if role not in ROLES:
                raise SceneError(f"{what}: {unknown_name('role', role, ROLES)}")
            if body not in names:
                raise SceneError(f"{what}: role {role}: {unknown_name('body', body, names)}")

    def spec(self, *, step: float | None = None, parameters: Sequence[str] = ()) -> mujoco.MjSpec:
        """The MJCF as it is written."""
        import mujoco  # here: it is slow to import, and most uses of scenes don't need it

        if self.file is None:
            check_xml(self.xml, f"scene '{self.name}'")
            spec = built(f"scene '{self.name}': the MJCF", lambda: mujoco.MjSpec.from_string(self.xml))
        else:
            spec = load_mjcf(self.file, mujoco.MjSpec.from_file)
        if step is not None:
            spec.option.timestep = step
        return spec

    @property
    def takes(self) -> tuple[str, ...]:
        """Those of contacts, which go into all contact pairs that the MJCF declares."""
        return CONTACT

    def write(self, batch: Any, values: Mapping[str, Array]) -> None:
        """See `Scene`."""
        if values and not batch.model.npair:
            raise SceneError(f"scene '{self.name}': parameters of contacts need <pair> elements in the MJCF")
        write_contacts(batch, values)


def mjcf_scene(path: str | Path, roles: Mapping[str, str] | None = None) -> MjcfScene:
    """The scene of an MJCF file."""
    path = Path(path)
    return MjcfScene(path.stem, roles=dict(roles or {}), file=path)
