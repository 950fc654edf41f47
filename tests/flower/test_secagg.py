"""SecAgg+ as Flower runs it, with its real cryptography, between clients of this process."""

import copy
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from flwr.app import Context, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

from fairfl.algorithms.rules import Cohort, q_ffl
from fairfl.flower.secagg import SummedStrategy, Trained, secure_client, train_securely
from fairfl.flower.summed import Announced

ROWS = (5, 20, 75)
LOSSES = (0.4, 1.5, 0.9)
MODEL = [np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.zeros(3, np.float32)]


def pull(w, k):
    """A client's training: a step of its own towards its own place."""
    return [leaf + 0.1 * (k + 1 - leaf) for leaf in w]


def train(w, context):
    k = int(context.node_config["partition-id"])
    return Trained(LOSSES[k], ROWS[k], pull(w, k))


class Here(Grid):
    """A Grid whose nodes are clients of this process; `gone` never send their vector."""

    def __init__(self, app, clients, gone=()):
        self.app, self.gone, self.carried = app, set(gone), []
        self.contexts = {
            node: Context(1, node, {"partition-id": node - 1}, RecordDict(), {})
            for node in range(1, clients + 1)
        }

    @property
    def run(self):
        return SimpleNamespace(run_id=1)

    def get_node_ids(self):
        return list(self.contexts)

    def send_and_receive(self, messages, *, timeout=None):
        replies = [self._answer(message) for message in messages]
        self.carried += [reply for reply in replies if reply is not None]
        return [reply for reply in replies if reply is not None]

    def _answer(self, message):
        TaskIdentity.node_id = node = message.metadata.dst_node_id
        if node in self.gone and message.content.array_records:
            return None
        # A wire carries copies; the mod takes what it reads out of the message.
        return self.app(copy.deepcopy(message), self.contexts[node])

    def set_run(self, run):
        raise NotImplementedError

    create_message = push_messages = pull_messages = set_run


@pytest.fixture(autouse=True)
def identity():
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1


def server():
    return Context(1, 1, {}, RecordDict(), {})


def federation(q=1.0, scale=1.0, gone=()):
    """Three clients, and the strategy that sums them."""
    announced = Announced(q=q, L=10.0, scale=scale, rows=100.0)
    return Here(secure_client(train), 3, gone), SummedStrategy(MODEL, announced, clients=3)


def plainly(w, q, rounds, who=(0, 1, 2)):
    """The same rounds with the simulator's rule and u_k = n_k."""
    for _ in range(rounds):
        updates = [[a - b for a, b in zip(w, pull(w, k), strict=True)] for k in who]
        squares = [sum(float((leaf**2).sum()) for leaf in update) for update in updates]
        people = Cohort(
            ids=jnp.asarray(who),
            sizes=jnp.asarray([ROWS[k] for k in who], float),
            weights=jnp.asarray([ROWS[k] for k in who], float),
            losses=jnp.asarray([LOSSES[k] for k in who]),
            norms=jnp.asarray(squares),
        )
        hyper = {"q": jnp.asarray(q), "L": jnp.asarray(10.0)}
        a = np.asarray(q_ffl().coefficients(hyper, (), people)[0])
        w = [
            leaf - sum(a[i] * u[place] for i, u in enumerate(updates))
            for place, leaf in enumerate(w)
        ]
    return w


@pytest.mark.parametrize("q", [0.0, 1.0])
def test_the_masked_sum_gives_the_plain_step_to_its_quantisation(q):
    grid, strategy = federation(q)
    got = train_securely(grid, server(), strategy, 2, 3, 2)
    for mine, theirs in zip(got, plainly(MODEL, q, 2), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-4)
    assert abs(got[0] - MODEL[0]).max() > 0.05


def test_nothing_of_a_single_client_leaves_in_the_clear():
    """Neither rows nor losses nor metrics, and no vector without its mask."""
    grid, strategy = federation()
    train_securely(grid, server(), strategy, 1, 3, 2)
    results = [reply.content for reply in grid.carried if reply.content.array_records]
    assert len(results) == 3
    for content in results:
        plain = [value for record in content.metric_records.values() for value in record.values()]
        assert set(plain) <= {0, 1}
        assert all(not record for record in content.array_records.values())


def test_the_scale_that_is_announced_follows_the_losses():
    grid, strategy = federation(scale=3.0)
    train_securely(grid, server(), strategy, 1, 3, 2)
    weights = [rows * loss for rows, loss in zip(ROWS, LOSSES, strict=True)]
    mean = sum(w * loss for w, loss in zip(weights, LOSSES, strict=True)) / sum(weights)
    np.testing.assert_allclose(strategy.announced.scale, mean, rtol=1e-3)


def test_a_client_that_drops_out_is_left_out_of_the_sum():
    """Three shares, any two of which recover its mask."""
    grid, strategy = federation(gone=[2])
    got = train_securely(grid, server(), strategy, 1, 3, 2)
    for mine, theirs in zip(got, plainly(MODEL, 1.0, 1, who=(0, 2)), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-4)


def test_a_round_without_enough_clients_fails_the_run():
    grid, strategy = federation(gone=[1, 2])
    with pytest.raises(RuntimeError, match="1 of 1 rounds gave no sum"):
        train_securely(grid, server(), strategy, 1, 3, 2)
    np.testing.assert_array_equal(strategy.w[0], MODEL[0])
