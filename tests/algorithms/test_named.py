"""Named algorithms: which four parts each name stands for, and what their arguments may be."""

import re
from contextlib import suppress

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import optax
import pytest

import fairfl
from fairfl.algorithms import NAMED, with_hyper
from fairfl.algorithms.algorithm import with_lipschitz
from fairfl.algorithms.server import LAST, MEAN, PLAIN
from fairfl.algorithms.work import local_sgd
from fairfl.runs import request

PARTS = {
    "fedavg": ("local SGD", "mean", ["learning_rate"]),
    "fedsgd": ("full gradient", "mean", ["learning_rate"]),
    "q-fedavg": ("local SGD", "q-FFL", ["q", "learning_rate"]),
    "q-fedsgd": ("full gradient", "q-FFL", ["q", "learning_rate"]),
    "fixed-step": ("full gradient", "fixed step", ["q", "learning_rate"]),
    "afl": ("full gradient", "AFL", ["gamma", "learning_rate"]),
    "fedprox": ("proximal SGD", "mean", ["mu", "learning_rate"]),
    "term": ("local SGD", "TERM", ["t", "learning_rate"]),
    "superquantile": ("local SGD", "superquantile", ["theta", "learning_rate"]),
    "gifair": ("local SGD", "GIFAIR", ["c", "learning_rate"]),
    "semi-vred": ("local SGD", "Semi-VRed", ["beta", "learning_rate"]),
    "fedmgda": ("local SGD", "FedMGDA+", ["eps", "eta", "learning_rate"]),
    "fedfv": ("local SGD", "FedFV", ["alpha", "tau", "learning_rate"]),
    "propfair": ("proportional SGD", "mean", ["M", "eps", "learning_rate"]),
    "aaggff": ("local SGD", "AAggFF (device)", ["eta", "learning_rate"]),
    "maml": ("adapted gradient", "mean", ["learning_rate", "inner_learning_rate"]),
    "q-maml": ("adapted gradient", "q-FFL", ["q", "learning_rate", "inner_learning_rate"]),
    "ditto": ("local and personal SGD", "mean", ["lam", "learning_rate"]),
}
LOCAL = [name for name, (work, _, _) in PARTS.items() if "gradient" not in work]
FULL = [name for name, (work, _, _) in PARTS.items() if work == "full gradient"]
FAIR = ["q-fedavg", "q-fedsgd"]


def refusal(make, **options):
    """What a call is refused with: one line, one sentence."""
    with pytest.raises(ValueError, match=r"\A[^\n]+[^.\n]\Z") as caught:
        make(**options)
    assert not re.search(r"[.;?] [A-Z]", str(caught.value)), caught.value
    return str(caught.value)


def same(left, right):
    return all(
        np.array_equal(a, b)
        for a, b in zip(jax.tree.leaves(left.params), jax.tree.leaves(right.params), strict=True)
    )


@pytest.fixture
def unchecked(monkeypatch):
    """The package as its users run it, without the type checks that the tests switch on."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


# --- parts ----------------------------------------------------------------------------------------


def test_every_name_is_tested():
    assert set(PARTS) == set(NAMED)


@pytest.mark.parametrize("name", PARTS)
def test_a_name_stands_for_its_parts(name):
    work, rule, hyper = PARTS[name]
    found = NAMED[name]()
    assert (found.name, found.work.name, found.rule.name) == (name, work, rule)
    assert list(found.hyper) == hyper
    everyone = name == "afl"
    assert (found.sampler.name, found.weights) == ("everyone" if everyone else "by-size", "size")
    assert (found.server, found.answer) == (PLAIN, MEAN if everyone else LAST)


@pytest.mark.parametrize("name", LOCAL)
def test_local_work_has_the_epochs_and_batches_it_was_given(name):
    default, chosen = NAMED[name]().work, NAMED[name](epochs=3, batch_size=7).work
    assert (default.epochs, default.batch_size) == (1, 10)
    assert (chosen.epochs, chosen.batch_size) == (3, 7)


@pytest.mark.parametrize("name", FULL)
def test_gradient_work_is_one_pass_in_the_rows_own_order(name):
    work = NAMED[name]().work
    assert (work.epochs, work.batch_size) == (1, None)


@pytest.mark.parametrize("name", ["maml", "q-maml"])
def test_adapted_gradients_read_one_mini_batch_of_support_and_one_of_query_rows(name):
    work = NAMED[name](batch_size=7, inner_steps=2, personal_steps=3, order=2).work
    assert (work.epochs, work.batch_size, work.batches) == (1, 7, 1)
    assert work.adaptation is not None
    assert work.adaptation[:3] == (2, 3, 7)
    assert work.adaptation.exact
    assert not NAMED[name]().work.adaptation.exact


@pytest.mark.parametrize("name", PARTS)
def test_sampler_weights_and_server_can_be_chosen(name):
    found = NAMED[name](sampler="uniform", weights="equal", server=optax.adam(0.1))
    assert (found.sampler.name, found.weights, found.server.name) == ("uniform", "equal", "optax")


def test_q_fedavg_and_q_fedsgd_differ_in_their_work_only():
    """Replacing the gradient by local steps is the paper's move from Algorithm 1 to 2."""
    assert fairfl.q_fedavg().rule is fairfl.q_fedsgd().rule


# --- sweeps ---------------------------------------------------------------------------------------


def test_lists_sweep_as_their_product_the_first_argument_outermost():
    found = fairfl.q_fedavg(q=[5, 0], learning_rate=[0.3, 0.1], L=[1, 2]).experiments
    expected = [(q, rate, L) for q in (5, 0) for rate in (0.3, 0.1) for L in (1, 2)]
    assert [tuple(e.values()) for e in found] == expected
    assert all(list(e) == ["q", "learning_rate", "L"] for e in found)


@pytest.mark.parametrize("q", [2, 2.0, [2], (2,), np.array([2]), np.float32(2), np.int64(2)])
def test_one_value_is_one_experiment(q, unchecked):
    assert fairfl.q_fedsgd(q=q).experiments == [{"q": 2.0, "learning_rate": 0.1}]
    assert isinstance(fairfl.q_fedsgd(q=q).hyper["q"][0], float)


@pytest.mark.parametrize("array", [np.array(2.0), jnp.array(2.0)], ids=["numpy", "jax"])
def test_a_scalar_array_is_one_value(array, unchecked):
    assert fairfl.q_fedsgd(q=array).hyper["q"] == (2.0,)


def test_hyper_parameters_can_be_replaced():
    family = fairfl.q_fedavg(q=[0, 1], epochs=2, weights="equal")
    changed = with_hyper(family, q=[3, 4], L=5)
    assert changed.hyper == {"q": (3.0, 4.0), "learning_rate": (0.1,), "L": (5.0,)}
    assert (changed.work, changed.weights) == (family.work, "equal")
    assert family.hyper["q"] == (0.0, 1.0)
    assert "q=-1 must be" in refusal(lambda: with_hyper(family, q=-1))


# --- the Lipschitz estimate -----------------------------------------------------------------------


@pytest.mark.parametrize("name", FAIR)
def test_lipschitz_is_one_over_the_learning_rate_of_its_own_experiment(name):
    found = [with_lipschitz(e)["L"] for e in NAMED[name](learning_rate=[0.1, 0.5, 4]).experiments]
    assert found == [10, 2, 0.25]
    given = [with_lipschitz(e)["L"] for e in NAMED[name](L=[3, 7]).experiments]
    assert given == [3, 7]


@pytest.mark.parametrize("name", FAIR)
def test_training_uses_it(model, data, name):
    def run(**hyper):
        return fairfl.train(data, model, NAMED[name](q=1, **hyper), rounds=2, cohort=3, width=2)

    assert same(run(learning_rate=0.25), run(learning_rate=0.25, L=4))
    assert not same(run(learning_rate=0.25), run(learning_rate=0.25, L=8))


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [fairfl.q_fedavg, fairfl.q_fedsgd, fairfl.fixed_step])
@pytest.mark.parametrize("q", [-1, -1e-9, float("nan"), float("inf"), [0, -2]])
def test_q_out_of_range(make, q):
    bad = q[-1] if isinstance(q, list) else q
    assert refusal(make, q=q) == f"q={bad} must be a finite number 0 or greater"


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("rate", [0, -0.1, float("nan"), float("inf"), [0.1, 0]])
def test_a_learning_rate_out_of_range(make, rate):
    bad = rate[-1] if isinstance(rate, list) else rate
    said = refusal(make, learning_rate=rate)
    assert said == f"learning_rate={bad} must be a finite number greater than 0"


@pytest.mark.parametrize(
    ("name", "bad", "allowed"),
    [
        ("afl:gamma", -1, "0 or greater"),
        ("fedprox:mu", -0.1, "0 or greater"),
        ("term:t", float("inf"), ""),
        ("superquantile:theta", 0, "greater than 0 and at most 1"),
        ("superquantile:theta", 1.5, "greater than 0 and at most 1"),
        ("gifair:c", 1.01, "0 or greater and at most 1"),
        ("semi-vred:beta", -1, "0 or greater"),
        ("fedmgda:eps", 1.1, "0 or greater and at most 1"),
        ("fedmgda:eta", 0, "greater than 0"),
        ("fedfv:alpha", 1.1, "0 or greater and at most 1"),
        ("fedfv:tau", -1, "0 or greater"),
        ("propfair:M", 0, "greater than 0"),
        ("propfair:eps", 0, "greater than 0"),
        ("aaggff:eta", -1, "0 or greater"),
    ],
)
def test_a_rules_own_parameter_out_of_range(name, bad, allowed):
    make, parameter = name.split(":")
    said = refusal(NAMED[make], **{parameter: bad})
    assert re.fullmatch(f"{parameter}={bad} must be a finite number ?{allowed}", said)


def test_a_tilt_may_be_negative():
    assert fairfl.term(t=[-2, 2]).hyper["t"] == (-2, 2)


@pytest.mark.parametrize("make", [NAMED[name] for name in FAIR], ids=FAIR)
@pytest.mark.parametrize("L", [0, -1, float("nan")])
def test_a_lipschitz_estimate_out_of_range(make, L):
    assert refusal(make, L=L) == f"L={L} must be a finite number greater than 0"


@pytest.mark.parametrize("text", ["much", "1,5"])
def test_text_is_no_number(text, unchecked):
    assert f"q={text!r} is not a number" in refusal(fairfl.q_fedavg, q=text)


def test_text_is_never_a_list_of_its_digits(unchecked):
    with suppress(ValueError):
        assert fairfl.q_fedavg(q="15").hyper["q"] == (15.0,)


@pytest.mark.parametrize("bad", ["much", None, [1], {}])
def test_a_list_with_something_that_is_no_number(bad, unchecked):
    said = refusal(fairfl.fedavg, learning_rate=[0.1, bad])
    assert said == f"learning_rate={bad!r} is not a number"


@pytest.mark.parametrize("name", ["q", "learning_rate"])
def test_a_hyper_parameter_that_has_no_default_cannot_be_none(name, unchecked):
    assert name in refusal(fairfl.q_fedavg, **{name: None})


@pytest.mark.parametrize("empty", [[], (), np.array([])])
def test_an_empty_list(empty):
    assert refusal(fairfl.q_fedavg, q=empty) == "q is an empty list; give at least one value"


@pytest.mark.parametrize("q", [[1, 1], [0, 0.0], [1, 2, 1.0]])
def test_a_value_that_is_listed_twice(q):
    said = refusal(fairfl.q_fedavg, q=q)
    assert said == f"q={list(map(float, q))} names a value twice; list each value once"


@pytest.mark.parametrize("make", [NAMED[name] for name in LOCAL], ids=LOCAL)
@pytest.mark.parametrize("name", ["epochs", "batch_size"])
@pytest.mark.parametrize("bad", [0, -1, [1, 2], (1,), True, 1.0, 0.5, "2", None])
def test_a_structural_hyper_parameter_is_one_whole_number(make, name, bad, unchecked):
    said = refusal(make, **{name: bad})
    assert said.startswith(f"{name}={bad!r} must be one whole number of at least 1; ")
    assert "q or learning_rate take lists" in said


def test_a_numpy_whole_number_will_do(unchecked):
    work = fairfl.fedavg(epochs=np.int64(2), batch_size=np.int32(5)).work
    assert (type(work.epochs), work.epochs, work.batch_size) == (int, 2, 5)
    assert work == local_sgd(2, 5)


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_weights_that_do_not_exist(make):
    assert refusal(make, weights="foo") == "weights='foo' is neither 'size' nor 'equal'; choose one"


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_a_sampler_that_does_not_exist(make):
    assert refusal(make, sampler="foo").startswith("there is no sampler 'foo'; choose one of ")


@pytest.mark.parametrize("server", ["adam", optax.adam])
def test_a_server_that_is_no_optimiser(server, unchecked):
    assert "server=" in refusal(fairfl.fedavg, server=server)


# --- a rule of one's own --------------------------------------------------------------------------


def test_a_rule_of_ones_own_trains_as_its_named_algorithm(data, model):
    own = fairfl.with_rule(fairfl.rules.term(), t=[0, 2], batch_size=7)
    ours = fairfl.train(data, model, own, rounds=2, cohort=4)
    named = fairfl.train(data, model, fairfl.term(t=[0, 2], batch_size=7), rounds=2, cohort=4)
    assert same(ours, named)


@pytest.mark.parametrize("given", [{}, {"q": 1}, {"t": 1, "q": 1}])
def test_a_rule_of_ones_own_gets_its_parameters(given):
    said = refusal(fairfl.with_rule, rule=fairfl.rules.term(), **given)
    assert said.startswith("the rule 'TERM' has the parameters t, but ")


# --- proximal work --------------------------------------------------------------------------------


def test_fedprox_without_its_term_is_fedavg_bit_for_bit(data, model):
    ours = fairfl.train(data, model, fairfl.fedprox(mu=0, epochs=2), rounds=3, cohort=4)
    assert same(ours, fairfl.train(data, model, fairfl.fedavg(epochs=2), rounds=3, cohort=4))


def test_fedprox_holds_local_models_near_the_global_one(data, model):
    """mu = 1 / learning rate - 1 takes all but one gradient back at every step."""
    family = fairfl.fedprox(mu=[0, 1, 9], epochs=3)
    ours = fairfl.train(data, model, family, rounds=1, cohort=4).params["weights"]
    far = [float(np.linalg.norm(w)) for w in ours]
    assert far[0] > far[1] > far[2] > 0


# --- servers by name ------------------------------------------------------------------------------


def test_a_server_by_name_sweeps_its_rate():
    found = fairfl.with_server(fairfl.q_fedavg(q=[0, 1]), "yogi", server_learning_rate=[0.1, 1])
    assert [e["server_learning_rate"] for e in found.experiments] == [0.1, 1, 0.1, 1]
    assert found.server.name == "yogi"


def test_a_server_that_has_no_name():
    said = refusal(fairfl.with_server, algorithm=fairfl.fedavg(), server="foo")
    assert said.startswith("there is no server 'foo'; choose one of momentum, adam, yogi")


def test_an_algorithm_has_one_server():
    algorithm = fairfl.fedavg(server=optax.sgd(1.0))
    said = refusal(fairfl.with_server, algorithm=algorithm, server="adam")
    assert said == "fedavg has the server 'optax' already; leave one out"


def test_a_server_learning_rate_of_zero():
    said = refusal(
        fairfl.with_server, algorithm=fairfl.fedavg(), server="adam", server_learning_rate=0
    )
    assert said == "server_learning_rate=0 must be a finite number greater than 0"


def test_a_server_in_words():
    found = request.algorithm("fedavg:server=adam:server-learning-rate=.01,.1", {}, {})
    assert (found.server.name, found.hyper["server_learning_rate"]) == ("adam", (0.01, 0.1))
    assert request.algorithm("fedavg:server=momentum", {}, {}).hyper["server_learning_rate"] == (1,)


def test_a_server_learning_rate_without_a_server():
    said = refusal(request.algorithm, words="fedavg:server_learning_rate=1", given={}, usual={})
    assert said == "server_learning_rate is for a server; add for example server=adam"


def test_a_server_by_name_is_its_optax_transformation_for_every_rate(data, model):
    """FedAvgM and FedAdam of Reddi et al. (2021), each experiment of a sweep on its own."""
    rates = [0.05, 0.5]
    family = fairfl.with_server(fairfl.fedavg(), "adam", server_learning_rate=rates)
    both = fairfl.train(data, model, family, rounds=3, cohort=4, width=2)
    for place, rate in enumerate(rates):
        alone = fairfl.fedavg(server=optax.adam(rate, b1=0.9, b2=0.99, eps=1e-3))
        wanted = fairfl.train(data, model, alone, rounds=3, cohort=4, width=2)
        for ours, optaxs in zip(
            jax.tree.leaves(both.params), jax.tree.leaves(wanted.params), strict=True
        ):
            np.testing.assert_allclose(ours[place], optaxs[0], rtol=1e-4, atol=1e-6)


def test_server_momentum_by_hand(data, model):
    """w1 = w0 - D0, w2 = w1 - (D1 + .9 D0): two rounds of rate 1 from what FedAvg sends."""
    plain = [
        fairfl.train(data, model, fairfl.fedavg(), rounds=n, cohort=4).params["weights"][0]
        for n in (1, 2)
    ]
    family = fairfl.with_server(fairfl.fedavg(), "momentum")
    found = fairfl.train(data, model, family, rounds=2, cohort=4).params["weights"][0]
    np.testing.assert_allclose(found, plain[1] + 0.9 * plain[0], rtol=1e-4, atol=1e-6)
