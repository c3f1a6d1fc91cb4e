"""What commands share: a crib for one command, options and inputs."""
