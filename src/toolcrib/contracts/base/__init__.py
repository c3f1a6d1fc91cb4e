"""What every contract stands on: the base model, errors, identities, principals, envelopes and questions."""
