"""A request in words, as a command line gives it, becomes data, a model and an algorithm."""

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairfl import datasets, models
from fairfl.algorithms import NAMED, Algorithm
from fairfl.algorithms.algorithm import Numbers, whole, with_server
from fairfl.clients import FederatedData
from fairfl.clients.tables import from_table
from fairfl.clients.task import check_task
from fairfl.models import Model

MODELS = {
    "softmax": models.softmax_regression,
    "softmax-glorot": partial(models.softmax_regression, start="glorot"),
    "svm": models.linear_svm,
    "svm-mean": partial(models.linear_svm, reduction="mean"),
    "mlp": models.mlp,
    "char-lstm": models.char_lstm,
    "sentiment-lstm": models.sentiment_lstm,
    "omniglot-cnn": models.omniglot_cnn,
}


METHOD = ("q", "learning_rate", "L", "epochs", "batch_size", "sampler", "weights")
SERVER = {"server": str, "server_learning_rate": Numbers}
"""What every algorithm can be given in words beside what it takes itself."""

COLUMNS = ("client", "label", "features", "columns", "split", "task")
OPTIONS = (
    "alpha",
    "beta",
    "partition",
    "clients",
    "sizes",
    "least",
    "most",
    "data_seed",
    "data_dir",
)

Words = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is to be trained on what."""

    data: FederatedData
    model: Model
    algorithm: Algorithm
    rounds: int
    cohort: int
    seeds: Sequence[int]
    split_seed: int | None
    evaluate_every: int | None

    @property
    def total(self) -> int:
        """Rounds of all experiments together."""
        return self.rounds * len(self.algorithm.experiments) * len(self.seeds)


def plan(source: str, words: Words, seeds: Sequence[int], q: Sequence[float]) -> Plan:
    """Words that are None were not said; the data set's own settings and `q` stand in for them.

    >>> from fairfl.runs.request import plan
    >>> words = {"algorithm": "q-fedavg", "clients": 8}
    >>> found = plan("synthetic", words, seeds=[0, 1], q=[0.0, 1.0])
    >>> found.algorithm.experiments[0], found.cohort, found.total
    ({'q': 0.0, 'learning_rate': 0.1}, 8, 40000)
    """
    usual = datasets.defaults(source)
    rounds = _checked("rounds", words)
    method = {name: words.get(name) for name in METHOD}
    chosen = algorithm(words.get("algorithm") or usual.algorithm, method, {**vars(usual), "q": q})
    columns = {name: words.get(name) for name in COLUMNS}
    options = {name: words.get(name) for name in OPTIONS}
    found = (_table if is_table(source) else _registered)(source, columns, options)
    seeds = [whole("seed", seed, least=0) for seed in seeds]
    split_seed = _checked("split_seed", words, least=0)
    cohort = _checked("cohort", words)
    if cohort is None:
        split = found.split(seeds[0] if split_seed is None else split_seed)
        cohort = min(usual.cohort, np.count_nonzero(split.train.sizes))
    usual_model = "mlp" if found.task == "regression" else usual.model
    return Plan(
        data=found,
        model=model(words.get("model") or usual_model, found),
        algorithm=chosen,
        rounds=usual.rounds if rounds is None else rounds,
        cohort=int(cohort),
        seeds=seeds,
        split_seed=split_seed,
        evaluate_every=_checked("evaluate_every", words),
    )


def _checked(name: str, words: Words, least: int = 1) -> int | None:
    value = words.get(name)
    return None if value is None else whole(name, value, least)


def is_table(source: str) -> bool:
    """Whether the words mean a file or folder of the user's, and not a data set by name.

    >>> from fairfl.runs.request import is_table
    >>> is_table("synthetic"), is_table("visits.parquet"), is_table("syntetic")
    (False, True, False)
    """
    if source in datasets.names():
        return False
    path = Path(source)
    return bool(path.suffix) or len(path.parts) > 1 or os.path.exists(path)


def _registered(source: str, columns: Words, options: Words) -> FederatedData:
    """A data set by name, which has clients and labels of its own."""
    for name, value in columns.items():
        if value is not None and source in datasets.names():
            raise ValueError(
                f"--{name} is for tables, but {source} has clients and labels of its own; "
                f"leave --{name} out"
            )
    given = {name: value for name, value in options.items() if value is not None}
    seed = given.pop("data_seed", 0)
    return datasets.load(source, seed=seed, **given)


def _table(source: str, columns: Words, options: Words) -> FederatedData:
    """The user's own table; the options of the named data sets mean nothing to it."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"--{name.replace('_', '-')} is for the data sets that `fairfl datasets` lists, "
                f"but {source} is a table; leave it out"
            )
    client, label = columns["client"], columns["label"]
    if client is None or label is None:
        raise ValueError(
            f"{source} is a table, so say which column holds a row's client and which is to be "
            "predicted, with --client COLUMN --label COLUMN"
        )
    return from_table(
        source,
        client=client,
        label=label,
        features=names(columns["features"]),
        columns=names(columns["columns"]),
        task=check_task(columns["task"]),
        **({"split": fractions(columns["split"])} if columns["split"] else {}),
    )


def names(words: str | None) -> list[str] | None:
    """Names with commas between.

    >>> from fairfl.runs.request import names
    >>> names("age, sex")
    ['age', 'sex']
    """
    return None if words is None else [name.strip() for name in words.split(",")]


def labels(words: str) -> dict[str, float]:
    """Hyper-parameters and the seed of an experiment.

    >>> from fairfl.runs.request import labels
    >>> labels("q=1:seed=2")
    {'q': 1.0, 'seed': 2.0}
    """
    pairs = dict(
        _pair(pair, f"the experiment {words!r}", "q=1:seed=2") for pair in words.split(":")
    )
    return {name: numbers(name, value)[0] for name, value in pairs.items()}


def fractions(words: str) -> tuple[float, float, float]:
    """Shares of the rows that train, validate and test.

    >>> from fairfl.runs.request import fractions
    >>> fractions("0.6,0.2,0.2")
    (0.6, 0.2, 0.2)
    """
    found = numbers("split", words)
    if len(found) != 3:
        raise ValueError(
            f"split={words} must be the shares of the rows that train, validate and test; write "
            "for example split=0.8,0.1,0.1"
        )
    return found[0], found[1], found[2]


def model(name: str, data: FederatedData) -> Model:
    """A built-in model by its name, with the shapes of the data.

    >>> import numpy as np, fairfl
    >>> from fairfl.runs.request import model
    >>> model("svm", fairfl.from_arrays({"a": (np.ones((4, 2)), [0, 1, 1, 0])})).name
    'linear SVM (sum)'
    """
    if name not in MODELS:
        raise ValueError(_unknown("model", name, MODELS))
    return MODELS[name](data)


def algorithm(words: str, given: Mapping[str, Any], usual: Mapping[str, Any]) -> Algorithm:
    """An algorithm by its name, with hyper-parameters after colons or given beside it.

    Whole numbers and lists may be text; `usual` holds the values of what is not given, as far as
    the algorithm has them.

    >>> from fairfl.runs.request import algorithm
    >>> found = algorithm("q-fedavg:q=0,5:weights=equal", {"epochs": 2}, {"learning_rate": 0.3})
    >>> found.hyper, found.weights, found.work.epochs
    ({'q': (0.0, 5.0), 'learning_rate': (0.3,)}, 'equal', 2)
    """
    name, *pairs = words.split(":")
    if name not in NAMED:
        raise ValueError(_unknown("algorithm", name, NAMED))
    kinds = keywords(name)
    inline = dict(
        _pair(pair, f"the algorithm {words!r}", "q-fedavg:q=5:sampler=uniform") for pair in pairs
    )
    beside = {key: value for key, value in given.items() if value is not None}
    for key in (*inline, *beside):
        if key not in kinds:
            raise ValueError(f"{name} has no {key}; it has {', '.join(kinds)}")
        if key in inline and key in beside:
            raise ValueError(f"{key} is given twice, in {words!r} and beside it; give it once")
    known = {key: value for key, value in usual.items() if key in kinds}
    words_of = {**known, **inline, **beside}
    values = {key: _value(key, value, kinds[key]) for key, value in words_of.items()}
    server = {key: values.pop(key) for key in SERVER if key in values}
    found = NAMED[name](**values)
    if not server:
        return found
    if "server" not in server:
        raise ValueError("server_learning_rate is for a server; add for example server=adam")
    return with_server(found, **server)


def keywords(name: str) -> dict[str, Any]:
    """What an algorithm can be given in words, and the type of each.

    >>> from fairfl.runs.request import keywords
    >>> list(keywords("fedsgd"))
    ['learning_rate', 'sampler', 'weights', 'server', 'server_learning_rate']
    """
    parameters = inspect.signature(NAMED[name]).parameters.values()
    return {p.name: p.annotation for p in parameters if p.name != "server"} | SERVER


def numbers(name: str, words: str) -> list[float]:
    """Numbers with commas between.

    >>> from fairfl.runs.request import numbers
    >>> numbers("q", "0,.1,1")
    [0.0, 0.1, 1.0]
    """
    try:
        return [float(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(
            f"{name}={words} is not a number or numbers with commas between; write for example "
            f"{name}=0.1 or {name}=0.1,1"
        ) from None


def _pair(words: str, whole: str, example: str) -> tuple[str, str]:
    key, equals, value = words.partition("=")
    if not (key and equals and value):
        raise ValueError(f"{words!r} in {whole} is not name=value; write for example {example}")
    return key.replace("-", "_"), value


def _value(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, str) or kind is str:
        return value
    if kind is not int:
        return numbers(name, value)
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name}={value} must be one whole number") from None


def _unknown(what: str, name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name.lower().replace("_", "-"), known)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"there is no {what} {name!r}; {hint}the known ones are {', '.join(known)}"
