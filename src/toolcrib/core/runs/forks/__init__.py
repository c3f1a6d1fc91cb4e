"""What a fork takes from the run that it is a fork of."""
