"""The client: a few lines turn a training function into a fair client of a Flower federation.

It measures F_k at the model it receives, on all its training rows and before it trains, then
trains, then reports; the loss that a training loop happens to print is neither.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.clientapp.typing import Mod
from jaxtyping import Shaped

from fairfl.clients.federated import SPLITS, SplitName, Task
from fairfl.flower.arrays import seen
from fairfl.flower.orders import Orders, read

ARRAYS, CLIENT, METRICS = "arrays", "client", "metrics"
"""The records of a message."""

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]
"""A model as it travels: arrays by name, in the order in which the server sent them."""


Rows = tuple[Shaped[np.ndarray, "rows ..."], Shaped[np.ndarray, " rows"]]
"""x and y of a split; y are class numbers, or values for a regression."""


class Measured(NamedTuple):
    """How a model serves some rows: their loss F_k, and their accuracy in percent.

    The loss is the mean over the rows (a sum for a sum-type loss) plus the penalty once. accuracy
    is NaN for a regression.
    """

    loss: float
    accuracy: float = float("nan")


@dataclass(frozen=True)
class Site:
    """What a client has and does.

    rows       how many rows each split has: {"train": 90, "test": 10}
    measure    measure(arrays, split): the model on all rows of a split, in evaluation mode
    train      train(arrays, orders): the arrays after local training
    task       "binary", "multiclass" or "regression"
    momentum   of the local optimiser; the update is shortened to what plain SGD would have moved
    adaptive   True for Adam and its like, so that the report says what no longer holds
    """

    rows: Mapping[SplitName, int]
    measure: Callable[[Arrays, SplitName], Measured]
    train: Callable[[Arrays, Orders], Arrays]
    task: Task = "multiclass"
    momentum: float | int = 0.0
    adaptive: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum={self.momentum} must be 0 or more and below 1")
        unknown = set(self.rows) - set(SPLITS)
        if unknown:
            raise ValueError(f"rows has {unknown.pop()!r}, which is none of {', '.join(SPLITS)}")


def counted(data: Mapping[SplitName, tuple[Any, Any]]) -> dict[SplitName, int]:
    """How many rows each split has."""
    return {split: len(y) for split, (_, y) in data.items()}


def fair_client(
    site: Callable[[Context], Site],
    seconds: float | int = 600,
    mods: list[Mod] | None = None,
) -> ClientApp:
    """A ClientApp that does what FairStrategy asks for, around the site that a context has.

    A task that takes longer than `seconds` is given up and reported: until its process ends, a hung
    client would block its node. `mods` are Flower's, around the training.

    A client is called by the name of its node's registered key. Where nodes have no keys, it gives
    itself the name in its node's configuration (`name`, else `partition-id`).

    >>> import numpy as np
    >>> from fairfl.flower import Measured, Site, fair_client
    >>> def pull_to_one(arrays, orders):
    ...     return {name: w - orders.learning_rate * (w - 1) for name, w in arrays.items()}
    >>> def distance(arrays, split):
    ...     return Measured(loss=float(sum(((w - 1) ** 2).sum() / 2 for w in arrays.values())))
    >>> app = fair_client(lambda context: Site({"train": 10}, distance, pull_to_one, "regression"))
    """
    app = ClientApp()

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        return within(seconds, lambda: _introduction(site(context), message, context))

    @app.train(mods=mods or [])
    def train(message: Message, context: Context) -> Message:
        return within(seconds, lambda: _trained(site(context), message))

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return within(seconds, lambda: _evaluated(site(context), message))

    return app


def name_of(context: Context) -> str:
    """What a client without a registered key calls itself."""
    node: Any = context.node_config
    if "name" in node:
        return str(node["name"])
    return f"client-{node['partition-id']}" if "partition-id" in node else f"node-{context.node_id}"


T = TypeVar("T")


def within(seconds: float | int, task: Callable[[], T]) -> T:
    """What the task gives, or TimeoutError when it takes longer.

    The task runs in a thread that does not keep the process alive, so that the process ends and
    the node is free. Code that never lets go of Python's lock cannot be interrupted this way.

    >>> from fairfl.flower.client import within
    >>> within(10, lambda: "done")
    'done'
    """
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(task())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name="fairfl-client")
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"the client's task took longer than {seconds:g} seconds")
    if raised:
        raise raised[0]
    return found[0]


def _introduction(site: Site, message: Message, context: Context) -> Message:
    rows = MetricRecord({f"rows-{split}": int(site.rows.get(split, 0)) for split in SPLITS})
    own = ConfigRecord({"name": name_of(context), "task": site.task})
    return Message(RecordDict({CLIENT: own, METRICS: rows}), reply_to=message)


def _trained(site: Site, message: Message) -> Message:
    arrays, orders = _arrays(message), _orders(message)
    measured = site.measure(arrays, "train")
    own = _shortened(site, arrays, site.train(arrays, orders))
    record = ArrayRecord({name: Array(np.asarray(own[name])) for name in arrays})
    rows = int(site.rows["train"])
    found = {"loss": float(measured.loss), "num-examples": rows, "adaptive": int(site.adaptive)}
    return Message(RecordDict({ARRAYS: record, METRICS: MetricRecord(found)}), reply_to=message)


def _evaluated(site: Site, message: Message) -> Message:
    arrays, found = _arrays(message), {}
    for split in SPLITS:
        if site.rows.get(split):
            measured = site.measure(arrays, split)
            found[f"loss-{split}"] = float(measured.loss)
            found[f"accuracy-{split}"] = float(measured.accuracy)
    found["num-examples"] = int(site.rows.get("test") or site.rows["train"])
    return Message(RecordDict({METRICS: MetricRecord(found)}), reply_to=message)


def _arrays(message: Message) -> dict[str, Shaped[np.ndarray, "..."]]:
    (record,) = message.content.array_records.values()
    return {name: seen(array) for name, array in record.items()}


def _orders(message: Message) -> Orders:
    (config,) = message.content.config_records.values()
    return read(config)


def _shortened(site: Site, w: Arrays, own: Arrays) -> Arrays:
    """w - (1 - momentum) (w - w_k), because L = 1 / rate speaks of plain SGD; with momentum it
    moves 1 / (1 - momentum) times as far in the long run."""
    if site.momentum == 0:
        return own
    keep = 1 - site.momentum
    return {
        name: (now - keep * (now - own[name])).astype(now.dtype) if now.dtype.kind == "f" else now
        for name, now in w.items()
    }
