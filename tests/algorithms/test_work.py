"""Work: what a client does beside plain local SGD."""

import jax
import numpy as np

import fairfl


def trained(data, model, family, **options):
    return fairfl.train(data, model, family, rounds=3, cohort=4, **options).params


def far(ours, theirs):
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    return max(float(np.abs(x - y).max()) for x, y in pairs)


def test_propfair_tends_to_fedavg_as_its_baseline_grows(data, model):
    """-log(1 - l / M) is l / M + O(1 / M^2): FedAvg with the learning rate over M."""
    plain = trained(data, model, fairfl.fedavg(learning_rate=0.1), x64=True)
    apart = [
        far(trained(data, model, fairfl.propfair(M=M, learning_rate=0.1 * M), x64=True), plain)
        for M in (1e2, 1e4, 1e6)
    ]
    assert apart[0] > 1e-3
    np.testing.assert_allclose(np.divide(apart[:-1], apart[1:]), 100, rtol=0.1)


def test_propfair_is_linear_beyond_its_baseline(data, model):
    """M - l < eps everywhere, as eps is M: l / M, never the logarithm of a negative number."""
    family = fairfl.propfair(M=0.5, eps=0.5, learning_rate=0.05)
    plain = trained(data, model, fairfl.fedavg(learning_rate=0.1))
    assert far(trained(data, model, family), plain) < 1e-6


def test_propfair_reports_the_losses_themselves(data, model):
    """The reference's clients report what they trained on, which no other method's table has."""
    family = fairfl.propfair(M=[2, 5])
    found = fairfl.train(data, model, family, rounds=1, cohort=4)
    np.testing.assert_allclose(found.history["loss"], np.log(3), rtol=1e-5)


def test_propfair_takes_a_sum_of_losses_with_its_penalty(two_classes):
    """phi'(F) grad F of the whole batch: far above M = 5 the step is FedAvg's over M."""
    svm = fairfl.models.linear_svm(two_classes)
    plain = fairfl.fedavg(learning_rate=0.001, batch_size=200)
    ours = fairfl.propfair(M=0.5, eps=0.499, learning_rate=0.0005, batch_size=200)
    options = {"rounds": 1, "cohort": 3}
    wanted = fairfl.train(two_classes, svm, plain, **options).params
    found = fairfl.train(two_classes, svm, ours, **options).params
    assert far(found, wanted) < 1e-6 < far(found, jax.tree.map(np.zeros_like, found))
