"""The ports of a store, and the rules that all stores share."""
