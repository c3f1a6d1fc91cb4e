"""The run context, through which a program makes calls, and its parts."""
