"""The compiled simulator: plans on the host, rounds and experiments in one program."""
