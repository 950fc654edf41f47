"""Any concurrent.futures.Executor runs the engine: here the one of a Dask cluster."""

import warnings

import jax
import numpy as np

import fairfl


def test_a_two_worker_cluster_gives_the_same_bytes(data, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        # Dask's own: it warns of a busy port and of its event loop, neither of which concerns us.
        warnings.simplefilter("ignore")
        from dask.distributed import Client, LocalCluster

        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            algorithm = fairfl.q_fedavg(q=[0, 1, 5])
            options = {"rounds": 6, "cohort": 4, "seed": [0, 1, 2]}
            remote = fairfl.train(data, model, algorithm, executor=client.get_executor(), **options)
    local = fairfl.train(data, model, algorithm, **options)
    for a, b in zip(jax.tree.leaves(remote.params), jax.tree.leaves(local.params), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    for name, column in local.history.items():
        np.testing.assert_array_equal(column, remote.history[name])
