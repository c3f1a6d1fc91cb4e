"""Routes of runs: started, followed, approved, forked."""
