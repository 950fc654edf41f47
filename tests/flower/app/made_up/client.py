"""A client of the made-up federation, which goes wrong where its node is configured to."""

import os
import time

import numpy as np

import federations
from fairfl.flower import fair_client


def site(context):
    node = context.node_config
    good = federations.site(int(node["partition-id"]))
    fault = str(node.get("fault", ""))
    return good if not fault else good.__class__(good.rows, good.measure, wrong(good, fault))


def wrong(good, fault):
    def train(arrays, orders):
        if fault == "hang":
            time.sleep(1000)
        if fault == "exit":
            os._exit(7)
        own = good.train(arrays, orders)
        return {name: np.full_like(one, np.nan) for name, one in own.items()}

    return train


app = fair_client(site, seconds=8)
