"""Types that all models share: messages, events, errors, prices, quirks, transport, and the port of a wire format.

It imports no other package of `llm`; all of them may import it.
"""
