"""predict: new rows of a table, scored by the model that a run's folder recommends."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from fairfl.clients.preprocessing import Features, Preprocessing
from fairfl.clients.sources import listed
from fairfl.metrics import Fairness, fairness
from fairfl.models import Model
from fairfl.models.built_in import built_in
from fairfl.runs.folder import RESULT
from fairfl.runs.loading import load_run, read
from fairfl.runs.result import Columns, Experiment, Result
from fairfl.runs.trees import formed, named

PIECE = 65_536
"""Rows that are scored at a time."""


class Prediction(NamedTuple):
    """What a model says of the rows of a table, in the table's row order.

    `label` is in the user's own values; `probability` has a column per class, None for a model
    without scores. `fairness` tells how evenly it serves the clients of these rows, where the
    table has their labels. `names` are the table's columns, and `given` those that were said.
    """

    label: Shaped[np.ndarray, " rows"]
    probability: Float[np.ndarray, "rows classes"] | None
    classes: tuple[Any, ...] | None
    names: tuple[str, ...]
    given: tuple[str, ...] | None
    algorithm: str
    experiment: Mapping[str, float | int]
    fairness: Fairness | None
    notes: Sequence[str]

    @property
    def columns(self) -> Columns:
        """The prediction, and the probability of each class, as columns."""
        columns = {"prediction": self.label}
        if self.probability is None or self.classes is None:
            return columns
        names = [f"probability_{name}" for name in self.classes]
        return columns | dict(zip(names, self.probability.T, strict=True))


def predict(
    folder: Path | str,
    table: Any,
    *,
    experiment: Mapping[str, float | int] | None = None,
    model: Model | None = None,
    columns: Sequence[str] | None = None,
) -> Prediction:
    """Score the rows of a table with the model that a run on a table recommends.

    A run's only model, or of a sweep the chosen hyper-parameters, at the first seed; `experiment`
    names another by hyper-parameters and seed. `model` is needed where it was one of your own, and
    `columns` name those of a file without a header line.

    >>> import pathlib, tempfile, fairfl
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     file = pathlib.Path(parent, "visits.csv")
    ...     _ = file.write_text("hospital,age,readmitted\\n" + "A,30,no\\nB,50,yes\\n" * 10)
    ...     data = fairfl.from_table(file, client="hospital", label="readmitted")
    ...     model = fairfl.models.softmax_regression(data)
    ...     run = pathlib.Path(parent, "run")
    ...     _ = fairfl.train(data, model, fairfl.fedavg(), rounds=9, cohort=2, out=run)
    ...     _ = file.write_text("age\\n50\\n30\\n")
    ...     fairfl.predict(run, file).label.tolist()
    ['yes', 'no']
    """
    place = Path(folder)
    result = load_run(place)
    preprocessing = _preprocessing(place, result)
    member = _member(place, result, experiment)
    found = preprocessing.features_in(table, columns)
    model = _model(place, result, member) if model is None else model
    y, scores = _scored(model, _params(model, member), found.x)
    classes = result.data.classes
    return Prediction(
        label=y if classes is None else np.array(classes)[y],
        probability=None if classes is None or scores is None else scores,
        classes=classes,
        names=found.names,
        given=found.given,
        algorithm=result.algorithm,
        experiment=member.labels,
        fairness=_fairness(found, y, result),
        notes=[*_notes(preprocessing, found, result), *found.notes],
    )


# ---- what the folder keeps ----


def _preprocessing(folder: Path, result: Result) -> Preprocessing:
    file = folder / "preprocessing.json"
    if not file.is_file():
        raise ValueError(
            f"the run in {str(folder)!r} was trained on {result.data.name}, which was no table, so "
            "it cannot read one; train on a table (fairfl sweep TABLE --client .. --label ..)"
        )
    return Preprocessing.from_json(file.read_text(encoding="utf-8"))


def _member(
    folder: Path, result: Result, experiment: Mapping[str, float | int] | None
) -> Experiment:
    """The experiment that was asked for, or the chosen one; of several seeds the first."""
    chosen = read(folder, RESULT)["chosen"]
    wanted = experiment or (chosen["hyperparameters"] if chosen else {})
    for name in wanted:
        if name not in result.members[0].labels:
            raise ValueError(
                f"the models in {str(folder)!r} have no {name}; they differ in "
                f"{', '.join(result.members[0].labels)}"
            )
    found = [m for m in result.members if all(m.labels[n] == v for n, v in wanted.items())]
    if not found:
        raise ValueError(
            f"no model in {str(folder)!r} has {_spelled(wanted)}; there are {_offered(result)}"
        )
    if any(member.hyper != found[0].hyper for member in found):
        raise ValueError(
            f"the run in {str(folder)!r} recommends none of its models; name one of "
            f"{_offered(result)} as the experiment"
        )
    return found[0]


def _spelled(labels: Mapping[str, float | int]) -> str:
    """As it is written on a command line."""
    return ":".join(f"{name}={value:g}" for name, value in labels.items())


def _offered(result: Result) -> str:
    return listed(list(dict.fromkeys(_spelled(m.hyper) for m in result.members)), most=10)


def _model(folder: Path, result: Result, member: Experiment) -> Model:
    name = result.settings.get("built_in")
    model = built_in(name, member.params, result.data.task) if name else None
    if model is None:
        raise ValueError(
            f"the run in {str(folder)!r} trained a model of your own, "
            f"{result.settings.get('model')!r}, which a folder does not keep; give it in Python: "
            "fairfl.predict(folder, table, model=...)"
        )
    return model


# ---- scoring ----


def _params(model: Model, member: Experiment) -> Any:
    """In the model's own kind of tree, which a file does not keep."""
    form = jax.eval_shape(model.init, jax.random.key(0))
    try:
        return jax.tree.map(jnp.asarray, formed(form, named(member.params)))
    except KeyError as error:
        raise ValueError(
            f"the model has a parameter {error} that the folder does not keep; give the model that "
            "the run was trained with"
        ) from error


def _scored(
    model: Model, params: Any, x: Float[np.ndarray, "rows features"]
) -> tuple[Shaped[np.ndarray, " rows"], Float[np.ndarray, "rows classes"] | None]:
    """Classes or values, and probabilities where the model has scores; piece by piece."""
    pieces = [_piece(model, params, x[i : i + PIECE]) for i in range(0, len(x), PIECE)]
    labels, scores = zip(*pieces, strict=True)
    return np.concatenate(labels), None if scores[0] is None else np.concatenate(scores)


def _piece(model: Model, params: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    rows = jnp.asarray(x)
    label = np.asarray(model.predict(params, rows))
    if model.outputs is None or model.task == "regression":
        return label, None
    return label, np.asarray(jax.nn.softmax(model.outputs(params, rows), axis=-1))


# ---- what is to be said ----


def _fairness(found: Features, y: np.ndarray, result: Result) -> Fairness | None:
    """Accuracy in percent over the clients of the rows, where labels and clients are there."""
    if found.y is None or found.clients is None or result.data.task == "regression":
        return None
    here = np.array([client is not None for client in found.clients])
    if not here.any():
        return None
    names, owner, size = np.unique(
        found.clients[here].astype(str), return_inverse=True, return_counts=True
    )
    right = np.bincount(owner, weights=(found.y == y)[here])
    return fairness(100 * right / size, size, names)


def _notes(preprocessing: Preprocessing, found: Features, result: Result) -> list[str]:
    rows = len(found.x)
    said = [
        f"Column {name!r} holds what training never saw in {count:,} of {rows:,} rows; "
        "they are scored by their other columns."
        for name, count in found.unseen.items()
    ]
    if found.clients is None:
        return said
    known = {str(id) for id in result.data.ids}
    new = sorted({client for client in found.clients if client is not None} - known)
    if new:
        said.append(
            f"{len(new):,} clients in column {preprocessing.client!r} took no part in training "
            f"({listed(new, most=5)}); the model was fitted to other clients."
        )
    return said
