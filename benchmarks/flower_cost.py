"""What a round costs a Flower server: fairfl's aggregation next to Flower's FedAvg.

    python benchmarks/flower_cost.py [CLIENTS x MILLIONS ...]      10x1 100x1 10x10 unless given

The same replies, interleaved, the median of several repeats; memory is the highest that an
aggregation holds beyond the replies, in copies of the model (tracemalloc, a run of its own).
"""

import logging
import statistics
import sys
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

import fairfl
from fairfl.flower import FairStrategy
from fairfl.flower.roster import Member

LAYERS = 8
REPEATS = 7


def main(sizes: list[str]) -> None:
    logging.getLogger("flwr").setLevel("ERROR")
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1
    print(f"{'clients':>7} {'numbers':>11} {'strategy':>10} {'ms':>9} {'ratio':>6} {'copies':>6}")
    for size in sizes:
        clients, millions = (int(part) for part in size.split("x"))
        compare(clients, millions * 10**6)


def compare(clients: int, numbers: int) -> None:
    model = record(np.random.default_rng(0), numbers)
    rounds = {
        "FedAvg": (FedAvg(weighted_by_key="num-examples"), None),
        "mean": (strategy(fairfl.fedavg(sampler="everyone"), clients), None),
        "q-FFL": (strategy(fairfl.q_fedavg(q=1, sampler="everyone"), clients), None),
    }
    asked = {name: ask(one, model, clients) for name, (one, _) in rounds.items()}
    draw = np.random.default_rng(1)
    contents = [reply(draw, numbers) for _ in range(clients)]
    seconds = {name: [] for name in rounds}
    for _ in range(REPEATS + 1):
        for name, (one, _) in rounds.items():
            answers = [answer(m, c) for m, c in zip(asked[name], contents, strict=True)]
            began = time.perf_counter()
            one.aggregate_train(1, answers)
            seconds[name].append(time.perf_counter() - began)
    usual = statistics.median(seconds["FedAvg"][1:])
    for name, (one, _) in rounds.items():
        middle = statistics.median(seconds[name][1:])
        answers = [answer(m, c) for m, c in zip(asked[name], contents, strict=True)]
        copies = peak(one, answers) / (4 * numbers)
        print(f"{clients:>7} {numbers:>11,} {name:>10} {1000 * middle:>9.1f} "
              f"{middle / usual:>6.2f} {copies:>6.2f}", flush=True)  # fmt: skip


def peak(one, answers: list[Message]) -> int:
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept = one.aggregate_train(1, answers)
    _, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return highest - before


def record(draw: np.random.Generator, numbers: int) -> ArrayRecord:
    layers = (draw.normal(size=numbers // LAYERS).astype(np.float32) for _ in range(LAYERS))
    return ArrayRecord({f"layer-{n}": Array(layer) for n, layer in enumerate(layers)})


def reply(draw: np.random.Generator, numbers: int) -> RecordDict:
    found = MetricRecord({"loss": float(draw.uniform(1, 2)), "num-examples": 10, "adaptive": 0})
    return RecordDict({"arrays": record(draw, numbers), "metrics": found})


def strategy(algorithm: fairfl.Algorithm, clients: int) -> FairStrategy:
    return FairStrategy(algorithm, clients=clients, cohort=clients)


def ask(one, model: ArrayRecord, clients: int) -> list[Message]:
    """The round's messages, to nodes that are known already."""
    if isinstance(one, FairStrategy):
        members = [Member(f"client-{k}", (10, 0, 10), "multiclass") for k in range(clients)]
        one.meeting.known = {(k + 1, ""): member for k, member in enumerate(members)}
        nodes = [NodeInfo(node_id=k + 1) for k in range(clients)]
        grid = SimpleNamespace(get_nodes=lambda: nodes)
        sent = one.configure_train(1, model, ConfigRecord(), grid)  # type: ignore[arg-type]
    else:
        content = RecordDict({"arrays": model, "config": ConfigRecord()})
        sent = [Message(content, k + 1, "train") for k in range(clients)]
    for number, message in enumerate(sent):
        message.metadata.__dict__["_message_id"] = str(number)
    return sent


def answer(message: Message, content: RecordDict) -> Message:
    return Message(RecordDict(dict(content)), reply_to=message)


if __name__ == "__main__":
    main(sys.argv[1:] or ["10x1", "100x1", "10x10"])
