"""What a run needs before its first model call: model, tools, reference data, prompt and memory."""
