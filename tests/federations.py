"""A federation in this process: a Grid whose nodes run ClientApps on made-up rows."""

from functools import lru_cache
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
from flwr.app import Context, Error, Message, RecordDict
from flwr.proto.node_pb2 import NodeInfo
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

import fairfl
from fairfl.flower import fair_client, model_site
from fairfl.flower.models import model_arrays

CLIENTS = 6


def identify():
    """Who this process is to Flower, which its own launcher would say."""
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1


def server_context(**config):
    return Context(1, 1, {}, RecordDict(), config)


class Nodes(Grid):
    """Nodes that answer at once, in an order that `shuffle` changes.

    `apps` maps a node to its app. `faults` maps (node, message type) to a function of the reply:
    None is silence, an Error comes back under the SuperLink's name, as Flower does it.
    """

    def __init__(self, apps, names=None, keys=None, order=1):
        self.apps = dict(apps)
        self.names, self.keys = names or {}, keys or {}
        self.faults, self.order, self.outbox, self.asked = {}, order, {}, []
        self.hidden = set()

    @property
    def run(self):
        return SimpleNamespace(run_id=1)

    def get_nodes(self):
        for node in list(self.apps)[:: self.order]:
            if node not in self.hidden:
                name, key = self.names.get(node, ""), self.keys.get(node, b"")
                yield NodeInfo(node_id=node, name=name, public_key=key, last_activated_at="now")

    def get_node_ids(self):
        return [node.node_id for node in self.get_nodes()]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            message.metadata.__dict__["_message_id"] = message.object_id
            ids.append(message.object_id)
            self.outbox[message.object_id] = message
            self.asked.append((message.metadata.dst_node_id, message.metadata.message_type))
        return ids

    def pull_messages(self, message_ids):
        found = [self._answer(self.outbox[id]) for id in message_ids]
        return [reply for reply in found if reply is not None][:: self.order]

    def _answer(self, message):
        node, kind = message.metadata.dst_node_id, message.metadata.message_type
        identify()
        fault = self.faults.get((node, kind), lambda reply: reply)
        context = Context(1, node, {"partition-id": node - 1}, RecordDict(), {})
        try:
            reply = fault(self.apps[node](message, context))
        except Exception as error:
            reply = Error(2, str(error))
        if isinstance(reply, Error):
            reply = Message(reply, reply_to=message)
            reply.metadata.__dict__["_src_node_id"] = 1
        return reply

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(list(messages)))

    def set_run(self, run):
        raise NotImplementedError

    create_message = set_run


@lru_cache(maxsize=1)
def model():
    """Softmax regression of four features and three classes, as two functions."""

    def init(key):
        return {"bias": jnp.zeros(3), "weights": jnp.zeros((4, 3))}

    return fairfl.models.from_functions(init, lambda w, x: x @ w["weights"] + w["bias"])


def rows(k, count=None):
    """Client k's rows: labels by the largest of three features that its own shift moves."""
    draw = np.random.default_rng(k)
    x = draw.normal(size=(count or 12 * (1 + k % 2), 4)).astype(np.float32)
    y = np.argmax(x[:, :3] + 0.4 * k * np.eye(3)[k % 3], axis=1).astype(np.int32)
    return x, y


def site(k):
    """Every client has rows to train on and four to test on."""
    return model_site(model(), {"train": rows(k), "test": rows(100 + k, 4)})


def apps(clients=CLIENTS, site=site):
    return {k + 1: fair_client(lambda context, k=k: site(k)) for k in range(clients)}


def arrays():
    return model_arrays(model())


def data(clients=CLIENTS):
    """The same rows as the simulator takes them."""
    pairs = {f"client-{k}": (rows(k), rows(100 + k, 4)) for k in range(clients)}
    return fairfl.from_arrays(
        train={name: train for name, (train, _) in pairs.items()},
        test={name: test for name, (_, test) in pairs.items()},
    )


FULL = {"learning_rate": 0.5, "batch_size": 100}
