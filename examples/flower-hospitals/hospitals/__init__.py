"""Ten sites, one model: the Adult table by occupation."""
