"""AAggFF: an online learner's decisions, from FedAvg at rate 0 to the worst client alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import gumbel_r, invweibull, logistic, norm, weibull_min

import fairfl
from cohorts import CLIENTS, coefficients, cohort, counted, drawn, hyper_of
from fairfl.algorithms.rules import aaggff, mean
from fairfl.algorithms.rules.aaggff import RESPONSES

SETTINGS = ["device", "silo"]


def after(rule, rounds, clients, **changed):
    """The last coefficients of several rounds in a population of so many."""
    hyper = hyper_of(**changed)
    state, step = rule.init(hyper, clients), jax.jit(rule.coefficients)
    for people in rounds:
        a, state, _ = step(hyper, state, people)
    return np.asarray(a)


@pytest.mark.parametrize("seed", range(3))
def test_aaggff_with_a_zero_learning_rate_is_fedavg_bit_for_bit(seed):
    people = drawn(seed)
    plain = np.asarray(coefficients(mean(), people)[0])
    np.testing.assert_array_equal(after(aaggff(), [people] * 3, CLIENTS, eta=0), plain)
    silo = after(aaggff("silo"), [people] * 3, CLIENTS, eta=0)
    np.testing.assert_allclose(silo, plain, rtol=1e-4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_as_the_learning_rate_grows_only_the_worst_served_count(setting):
    a = after(aaggff(setting), [cohort([1, 2, 4])], 3, eta=1e9)
    np.testing.assert_allclose(a, [0, 0, 1], atol=1e-4)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_client_that_stays_badly_served_counts_more_and_more(setting):
    rounds = [cohort([1, 2, 4])] * 30
    shares = [after(aaggff(setting), rounds[:n], 3, eta=1)[2] for n in (1, 5, 30)]
    assert 1 / 3 < shares[0] < shares[1] < shares[2]


def test_a_decision_on_devices_by_hand():
    """F = (1, 3) has r = 1 - exp(-1/4) and 1 - exp(-9/4); everyone is heard, so C = 1."""
    r = 1 - np.exp([-0.25, -2.25])
    gain = (r - r.mean()) / (1 + r.mean())
    favoured = np.exp(np.sqrt(np.log(2) / 2) / 3 * gain)
    a = after(aaggff(), [cohort([1, 3])], 2, eta=1)
    np.testing.assert_allclose(a, favoured / favoured.sum(), rtol=1e-5)


def test_clients_who_were_not_drawn_keep_what_spoke_for_them():
    """The reference drops the mean response of those it heard, and so favours who was not drawn."""
    heard, silent = cohort([5, 5], ids=[0, 1]), cohort([1, 1, 1, 1], ids=[0, 1, 2, 3])
    np.testing.assert_allclose(after(aaggff(), [heard, silent], 4, eta=50), 0.25, rtol=1e-5)


def test_a_decision_of_silos_by_hand():
    """x = (1/2 + d, 1/2 - d), D = g_1 - g_2 and m / 8 = 1/4: eta (d D + (d D)^2 / 4) + 4 d^2 is
    least at d = -eta D / (8 + eta D^2 / 2). The reference's step is around 0, not (1/2, 1/2)."""
    r = (1 - np.exp([-0.25, -2.25])) / 2
    D = (r[1] - r[0]) / (1 + r.mean())
    d = -5 * D / (8 + 5 * D**2 / 2)
    a = after(aaggff("silo"), [cohort([1, 3])], 2, eta=5)
    np.testing.assert_allclose(a, [0.5 + d, 0.5 - d], rtol=1e-5)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_scale_of_the_losses_does_not_matter(setting):
    rounds = [drawn(seed) for seed in range(3)]
    scaled = [people._replace(losses=1e20 * people.losses) for people in rounds]
    plain = after(aaggff(setting), rounds, CLIENTS, eta=3)
    np.testing.assert_allclose(after(aaggff(setting), scaled, CLIENTS, eta=3), plain, rtol=1e-4)


DISTRIBUTIONS = {
    "weibull": weibull_min(2),
    "exponential": weibull_min(1),
    "frechet": invweibull(1),
    "gumbel": gumbel_r(1),
    "logistic": logistic(1),
    "normal": norm(1),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_a_response_is_the_distribution_function_of_its_name(name):
    """The reference's normal one is 1 where it should be .5: an erfc of the wrong sign, plus 1."""
    x = np.linspace(0, 5, 21)
    np.testing.assert_allclose(RESPONSES[name](jnp.asarray(x)), DISTRIBUTIONS[name].cdf(x), 1e-5)


@pytest.mark.parametrize("name", RESPONSES)
def test_every_response_trains(name):
    a = counted(aaggff(response=name), [0.5, 1, 3], eta=10)
    assert a[0] < a[1] < a[2]


def test_a_setting_or_response_that_does_not_exist():
    with pytest.raises(ValueError, match="'edge' is neither of device and silo"):
        fairfl.aaggff(setting="edge", sampler="everyone")
    with pytest.raises(ValueError, match="no response 'cauchy'; choose one of weibull, "):
        fairfl.aaggff(response="cauchy")


def test_silos_are_all_heard():
    with pytest.raises(ValueError, match="setting='silo' hears every client in every round"):
        fairfl.aaggff(setting="silo")
