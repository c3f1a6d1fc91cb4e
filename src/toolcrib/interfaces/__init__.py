"""How people and programs reach a crib besides Python: REST and the command line."""
