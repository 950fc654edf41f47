"""What a report needs of a run's folder: the result, the choice of q, and how it came about."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairfl.choice import Choice, choose_q
from fairfl.clients.preprocessing import Preprocessing
from fairfl.runs import Result, load_run
from fairfl.runs.folder import CONFIGURATION, RESULT
from fairfl.runs.loading import read, read_configuration


class Kept(NamedTuple):
    """A run as its folder keeps it; `choice` is None where there is no q to choose, and `unchosen`
    says why."""

    name: str
    result: Result
    configuration: Mapping[str, Any]
    preprocessing: Preprocessing | None
    choice: Choice | None
    unchosen: str | None


def kept(folder: Path) -> Kept:
    """Read a run's folder.

    >>> import tempfile, fairfl
    >>> from pathlib import Path
    >>> from fairfl.report.folders import kept
    >>> from fairfl.runs import folder
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> result = fairfl.train(data, model, fairfl.fedavg(), rounds=2, cohort=5)
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     found = kept(folder.write(result, Path(parent, "first")))
    >>> found.name, found.choice
    ('first', None)
    """
    result = load_run(folder)
    choice, unchosen = _choice(result, read(folder, RESULT)["chosen"])
    table = folder / "preprocessing.json"
    return Kept(
        name=folder.resolve().name,
        result=result,
        configuration=read_configuration(folder),
        preprocessing=Preprocessing.from_json(table.read_text("utf-8")) if table.exists() else None,
        choice=choice,
        unchosen=unchosen,
    )


def runs_in(folder: Path) -> list[Path]:
    """The folder where it is a run's, else the runs' folders in it, by name.

    >>> from pathlib import Path
    >>> from fairfl.report.folders import runs_in
    >>> runs_in(Path("nowhere"))
    Traceback (most recent call last):
    ...
    ValueError: 'nowhere' is not a folder; name the folder that a run was written to
    """
    if not folder.is_dir():
        raise ValueError(
            f"{str(folder)!r} is not a folder; name the folder that a run was written to"
        )
    if (folder / CONFIGURATION).is_file():
        return [folder]
    found = [place for place in sorted(folder.iterdir()) if (place / CONFIGURATION).is_file()]
    if not found:
        raise ValueError(
            f"there is no run in {str(folder)!r}: neither it nor a folder in it holds a "
            f"{CONFIGURATION}; name the folder that a run was written to"
        )
    return found


def _choice(result: Result, told: Mapping[str, Any] | None) -> tuple[Choice | None, str | None]:
    """The choice that was made, or the one that the paper's protocol makes."""
    if told is not None:
        return Choice(**told), None
    try:
        return choose_q(result), None
    except ValueError as error:
        return None, str(error)
