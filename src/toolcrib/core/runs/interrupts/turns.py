"""The turns of conversations are runs, whose ids follow from the conversation and the turn's place in it.

So a turn is claimed by creating its run, which the journal lets one process do: there is no claim beside the run that a
crash could leave behind, and no list of turns to keep.
"""

import hashlib


def turn_run_id(conversation_id: str, turn: int) -> str:
    """The id of the run that is a turn of a conversation.

    Args:
        conversation_id: The conversation.
        turn: Its place, from 1.
    """
    return "run_" + hashlib.sha256(f"{conversation_id}/turns/{turn}".encode()).hexdigest()[:32]
