"""What the proof is made of that no change of a tool breaks a graph in silence: a world, its workflows, and changes."""
