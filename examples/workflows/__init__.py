"""A gallery of workflows: definitions to read and to start from, each with a scenario that runs it.

python -m examples.workflows.demo            # all of them
python -m examples.workflows.demo book_trip  # one
"""
