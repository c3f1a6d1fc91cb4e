"""What all models share: messages, events, errors, prices, quirks, transport, and the port of a wire format."""
