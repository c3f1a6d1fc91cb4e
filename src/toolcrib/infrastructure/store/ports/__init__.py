"""What the rest of the code asks of a store, and the rules that all stores share."""
