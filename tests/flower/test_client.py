"""A client measures before it trains, in evaluation mode, and gives up what takes too long."""

import threading

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict

import federations
from fairfl.flower import Measured, Orders, Site, fair_client, sklearn_site, torch_site
from fairfl.flower.client import name_of, within


@pytest.fixture(autouse=True)
def identity():
    federations.identify()


def asked(app, kind="train", **config):
    arrays = ArrayRecord({"w": Array(np.array([4.0, 0.0], np.float32))})
    told = ConfigRecord({"server-round": 1, "learning-rate": 0.5, **config})
    message = Message(RecordDict({"arrays": arrays, "config": told}), 7, kind)
    return app(message, Context(1, 7, {"partition-id": 3}, RecordDict(), {})).content


def distance(arrays, split):
    return Measured(float((arrays["w"] ** 2).sum() / 2))


def halve(arrays, orders):
    return {"w": arrays["w"] * np.float32(1 - orders.learning_rate)}


def made(**options):
    rows = {"train": 10, "test": 2}
    return fair_client(lambda context: Site(rows, distance, halve, "regression", **options))


def test_the_loss_is_that_of_the_model_which_was_received():
    content = asked(made())
    assert content["metrics"]["loss"] == 8.0
    assert content["metrics"]["num-examples"] == 10
    assert content["arrays"]["w"].numpy().tolist() == [2.0, 0.0]


def test_momentum_shortens_the_update_to_what_plain_sgd_moves():
    assert asked(made(momentum=0.75))["arrays"]["w"].numpy().tolist() == [3.5, 0.0]
    assert asked(made(adaptive=True))["metrics"]["adaptive"] == 1
    with pytest.raises(ValueError, match="momentum=1"):
        Site({}, distance, halve, momentum=1)


def test_an_evaluation_covers_the_splits_that_have_rows():
    found = asked(made(), "evaluate")["metrics"]
    assert found["loss-test"] == found["loss-train"] == 8.0
    assert "loss-validation" not in found


def test_a_client_says_who_it_is_and_what_it_has():
    content = asked(made(), "query")
    assert content["client"]["name"] == "client-3"
    assert content["metrics"]["rows-train"] == 10
    assert content["metrics"]["rows-validation"] == 0
    node = Context(1, 7, {"name": "ward", "partition-id": 3}, RecordDict(), {})
    assert name_of(node) == "ward"
    assert name_of(Context(1, 7, {}, RecordDict(), {})) == "node-7"


def test_a_task_that_hangs_is_given_up():
    held = threading.Event()
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 seconds"):
        within(0.05, held.wait)
    held.set()


def test_what_a_task_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        within(10, lambda: 1 // 0)


def test_orders_without_a_learning_rate_are_refused():
    app = made()
    arrays = ArrayRecord({"w": Array(np.zeros(2, np.float32))})
    message = Message(RecordDict({"arrays": arrays, "config": ConfigRecord()}), 7, "train")
    with pytest.raises(ValueError, match="names no learning rate"):
        app(message, Context(1, 7, {}, RecordDict(), {}))


def test_a_scikit_learn_classifier_is_a_site():
    from sklearn.linear_model import SGDClassifier

    x, y = federations.rows(1)

    def train(estimator, orders, x, y):
        estimator.set_params(eta0=orders.learning_rate)
        estimator.partial_fit(x, y)

    estimator = SGDClassifier(loss="log_loss", learning_rate="constant", alpha=0, shuffle=False)
    site = sklearn_site(estimator, {"train": (x, y)}, [0, 1, 2], train)
    w = {"coef": np.zeros((3, 4), np.float32), "intercept": np.zeros(3, np.float32)}
    assert round(site.measure(w, "train").loss, 5) == round(np.log(3), 5)
    own = site.train(w, Orders(round=1, learning_rate=0.1))
    assert own["coef"].dtype == np.float32
    assert site.measure(own, "train").loss < np.log(3)
    again = site.train(w, Orders(round=1, learning_rate=0.1))
    np.testing.assert_array_equal(own["coef"], again["coef"])


def test_a_torch_module_is_measured_in_evaluation_mode():
    torch = pytest.importorskip("torch", reason="PyTorch is no dependency of fairfl")
    x, y = (torch.from_numpy(array) for array in federations.rows(1))
    y = y.long()
    module = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)
    )
    modes = []

    def train(module, orders):
        modes.append(module.training)
        optimiser = torch.optim.SGD(module.parameters(), lr=orders.learning_rate)
        torch.nn.functional.cross_entropy(module(x), y).backward()
        optimiser.step()

    site = torch_site(module, {"train": (x, y)}, train)
    w = {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}
    module.train()
    one, other = (site.measure(w, "train") for _ in range(2))
    assert one == other
    assert module.training
    assert w["1.running_mean"].tolist() == [0.0] * 8
    own = site.train(w, Orders(round=1, learning_rate=0.1))
    assert modes == [True]
    assert own["1.num_batches_tracked"] == 1
    assert np.abs(own["0.weight"] - w["0.weight"]).max() > 0
