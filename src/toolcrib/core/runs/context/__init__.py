"""The run context, through which a program reaches the world, and what stands behind it."""
