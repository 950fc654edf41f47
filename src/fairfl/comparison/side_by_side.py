"""compare: methods trained one after another on the same splits, cohorts and batches."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from fairfl import datasets
from fairfl.algorithms import Algorithm
from fairfl.algorithms.algorithm import whole
from fairfl.clients import FederatedData, with_validation
from fairfl.clients.holdout import has_validation
from fairfl.comparison.comparison import Comparison, baseline_of, comparison_of
from fairfl.comparison.folder import Shelf
from fairfl.comparison.methods import Method, Methods, methods
from fairfl.models import Model
from fairfl.runs import Result, train
from fairfl.runs.training import OnChunk, prepared


class How(NamedTuple):
    """How every method is trained, in the words of `train`."""

    rounds: int
    cohort: int
    seed: Sequence[int]
    split_seed: int | None = None
    evaluate_every: int | None = None
    x64: bool = False


Watch = Callable[[str, Algorithm], AbstractContextManager[OnChunk]]
"""Called with the name of a method and what is tried, for the time that it trains."""


def compare(
    data: FederatedData,
    model: Model,
    algorithms: Sequence[Method] | Mapping[str, Method] | None = None,
    *,
    rounds: int,
    cohort: int = 10,
    seeds: int | Sequence[int] = 5,
    split_seed: int | None = None,
    evaluate_every: int | None = None,
    baseline: str | None = None,
    x64: bool = False,
    executor: Executor | None = None,
    watch: Watch | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Comparison:
    """Train methods with the same seeds, tune each on validation data, and compare them on test.

    `algorithms` are words as the command line takes them (`"q-fedavg:q=1"`), algorithms of your own
    (`fairfl.with_rule(...)`, whose lists are what is tried), a mapping of names to these, or None
    for all there are. `seeds` says how many, or lists them. Data without validation rows hold out a
    tenth of each client's training rows where there is something to tune, drawn by the seed.

    `out` names a folder that keeps one run per method; `resume` goes on with what is there, also
    with further methods, and `overwrite` replaces it.

    >>> import fairfl
    >>> data = fairfl.datasets.load("synthetic", clients=20)
    >>> model = fairfl.models.softmax_regression(data)
    >>> mine = fairfl.with_rule(fairfl.rules.term(), t=[0.1, 1])
    >>> found = fairfl.compare(data, model, [fairfl.fedavg(), mine], rounds=3, cohort=5, seeds=2)
    >>> found.differences()["metric"].tolist()
    ['average', 'worst10', 'variance']
    """
    listed = list(range(whole("seeds", seeds))) if isinstance(seeds, int) else list(seeds)
    how = How(rounds, cohort, listed, split_seed, evaluate_every, x64)
    chosen = methods(algorithms, vars(datasets.defaults(data.name)), {})
    if out is None and (resume or overwrite):
        raise ValueError("resume and overwrite are for what is kept; add out=FOLDER")
    return compared(
        data,
        model,
        chosen,
        how,
        baseline=baseline,
        leaves_out=algorithms is None,
        executor=executor,
        watch=watch,
        shelf=None if out is None else Shelf(Path(out), resume, overwrite),
    )


def compared(
    data: FederatedData,
    model: Model,
    chosen: Methods,
    how: How,
    *,
    baseline: str | None = None,
    leaves_out: bool = False,
    executor: Executor | None = None,
    watch: Watch | None = None,
    shelf: Shelf | None = None,
) -> Comparison:
    """`compare` for methods by name; what cannot be trained is left out, or else refused."""
    held, said = with_rows_to_tune_on(data, chosen)
    chosen, left_out = trainable(held, model, chosen, how, leaves_out)
    first = baseline_of(tuple(chosen), baseline)
    if shelf is not None:
        shelf.begin(tuple(chosen), first, said + left_out)
    results = {}
    for name, method in chosen.items():
        with watch(name, method) if watch else nullcontext() as on_chunk:
            results[name] = _trained(held, model, name, method, how, executor, on_chunk, shelf)
    found = comparison_of(results, first, said + left_out)
    if shelf is not None:
        shelf.finish(found)
    return found


def with_rows_to_tune_on(data: FederatedData, chosen: Methods) -> tuple[FederatedData, list[str]]:
    """The data with rows to tune on, and what is to be said about where they come from."""
    tunes = any(len(method.experiments) > 1 for method in chosen.values())
    if not tunes or has_validation(data):
        return data, []
    return with_validation(data), [
        f"{data.name} has no validation rows, so a tenth of each client's training rows was held "
        "out to tune on, drawn anew with every seed; the models saw the rest."
    ]


def trainable(
    data: FederatedData, model: Model, chosen: Methods, how: How, leaves_out: bool
) -> tuple[Methods, list[str]]:
    """The methods that can train the model on the data, and what is said about the others."""
    able, left_out = {}, []
    for name, method in chosen.items():
        try:
            prepared(data, model, method, **how._asdict())
        except ValueError as error:
            if not leaves_out:
                raise ValueError(f"{name}: {error}") from error
            left_out.append(f"{name} is left out: {error}.")
        else:
            able[name] = method
    if not able:
        raise ValueError(f"no method can be trained here; {left_out[0]}")
    return able, left_out


def _trained(
    data: FederatedData,
    model: Model,
    name: str,
    method: Algorithm,
    how: How,
    executor: Executor | None,
    on_chunk: OnChunk,
    shelf: Shelf | None,
) -> Result:
    job = partial(train, data, model, method, **how._asdict(), executor=executor, on_chunk=on_chunk)
    try:
        if shelf is None:
            return job()
        with shelf.keeper(name) as keeper:
            result = job(out=keeper)
            keeper.finish(result)
        return result
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    finally:
        if shelf is not None:
            shelf.leave()
