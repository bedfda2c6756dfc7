"""What a benchmark is, and the one way to run it: pieces that survive a kill, then rows, notes and a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from carom.bench.results import Results, Row, new_results, summarise
from carom.core.errors import CaromError
from carom.core.progress import Progress, silent
from carom.core.work import Checkpoint, Rows, run_pieces

Work = Sequence[tuple[str, Callable[[], Rows]]]  #: key of each piece, and what to run for it


@dataclass(frozen=True)
class Options:
    """What a benchmark is run with."""

    out: Path  #: folder for models and finished pieces
    draws: int
    samples: int = 0  #: simulated impacts per teacher, where base models are made
    data: Path = Path()  #: folder of real recordings, where they are needed
    seed: int = 0
    threads: int = 0
    progress: Progress = silent
    only: tuple[str, ...] = ()  #: beginnings of the keys of the pieces to run; none: all

    def __getstate__(self) -> dict[str, Any]:  # whoever watches stays here
        return {**vars(self), "progress": silent, "data": self.data.resolve()}


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: the options that it takes, its pieces of work, and what to say about the results."""

    name: str
    draws: int  #: default of `--draws`
    settings: Callable[[Options], Mapping[str, Any]]  #: what the pieces depend on, beside their keys
    work: Callable[[Options], Work]
    notes: Callable[[Options], Sequence[str]]
    samples: int | None = None  #: default of `--samples`; None: the option is refused
    data: str = ""  #: what the folder of `--data` has to hold; empty: the option is refused
    rows: Callable[[Rows], Sequence[Row]] = summarise
    remarks: Callable[[Sequence[Row]], Sequence[str]] = lambda rows: ()  #: notes on what came out

    @property
    def takes(self) -> tuple[str, ...]:
        """The options that are this benchmark's own, as the command line spells them."""
        samples = () if self.samples is None else ("--samples",)
        return (*(("--data",) if self.data else ()), "--draws", *samples)

    def options(
        self, *, data: Path | None = None, draws: int | None = None, samples: int | None = None, **common: Any
    ) -> Options:
        """The options of a run: defaults where None, an error for an option that would have no effect."""
        if data is not None and not self.data:
            raise CaromError(f"bench {self.name} takes no --data; it takes {', '.join(self.takes)}")
        if samples is not None and self.samples is None:
            raise CaromError(f"bench {self.name} takes no --samples; it takes {', '.join(self.takes)}")
        if data is None and self.data:
            raise CaromError(f"{self.name} needs --data DIR: {self.data} (see CONTRIBUTING.md for where to get them)")
        own = {"draws": draws or self.draws, "samples": samples or self.samples or 0, "data": data or Path()}
        return Options(**{"out": Path("out/bench"), **common, **own})

    def run(self, options: Options) -> Results:
        """Do what is not done yet; the results are the same as those of a run without a break."""
        pieces = Checkpoint(options.out / f"{self.name}.jsonl", self.settings(options))
        keys = [key for key, _ in self.work(options)]
        if options.only:
            keys = [key for key in keys if key.startswith(options.only)]
        if not keys:
            known = ", ".join(dict.fromkeys(key.split("/")[0] for key, _ in self.work(options)))
            raise CaromError(f"--only {','.join(options.only)}: no piece begins so; they begin with {known}")
        values, seconds = run_pieces(pieces, keys, _Jobs(self.work, options), options.progress)
        given = {"--data": "DIR", "--draws": options.draws, "--samples": options.samples}
        command = " ".join(["carom bench", self.name, *(f"{name} {given[name]}" for name in self.takes)])
        command += f" --only {','.join(options.only)}" if options.only else ""
        rows = self.rows(values)
        notes = (*self.notes(options), *self.remarks(rows))
        return new_results(self.name, command=command, rows=rows, seconds=seconds, notes=notes)


@final
class _Jobs:
    """The pieces of a benchmark by their keys. Another process makes its own, with a folder of its own to work in: what
    pieces share on disk, like base models, each worker makes once."""

    def __init__(self, work: Callable[[Options], Work], options: Options) -> None:
        self.work, self.options = work, options
        self.folder: TemporaryDirectory[str] | None = None
        self.jobs = dict(work(options))

    def __call__(self, key: str) -> Rows:
        return self.jobs[key]()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(_jobs_elsewhere, self.work), (self.options,)


def _jobs_elsewhere(work: Callable[[Options], Work], options: Options) -> _Jobs:
    own = TemporaryDirectory(prefix="carom-")
    made = _Jobs(work, replace(options, out=Path(own.name)))
    made.folder = own  # it is removed with the jobs
    return made
