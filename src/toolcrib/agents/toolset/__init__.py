"""Which tools a model is offered, under which names and schemas, and what its system prompt says of them."""
