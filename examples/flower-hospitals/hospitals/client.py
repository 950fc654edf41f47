"""The client side: it runs where the data are."""

from fairfl.flower import fair_client, model_site
from hospitals.task import model, rows_of


def site(context):
    return model_site(model(), rows_of(int(context.node_config["partition-id"])))


app = fair_client(site, seconds=100)
