"""One tool of each kind, each against a counterpart on this machine, and a tool with a model that uses them all."""
