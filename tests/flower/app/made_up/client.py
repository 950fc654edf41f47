"""A client of the made-up federation."""

import federations
from fairfl.flower import fair_client

app = fair_client(lambda context: federations.site(int(context.node_config["partition-id"])))
