"""Images and files over the doors that have some of their own: OpenAI's two APIs, A2A and AG-UI."""

from base64 import b64encode
from typing import Any, Final

import pytest
from a2a.types import Message, Part, Role, SendMessageRequest
from openai.types.responses import ResponseInputParam

from tests.twins.images import MP3, PDF, PNG
from tests.unit.a2a.client import a2a_client, task_from
from tests.unit.agui.client import ask
from tests.unit.openai_endpoint.served import Endpoint, endpoint
from toolcrib.contracts import FileInput
from toolcrib.crib.agents.message_files import MOST_FILES
from toolcrib.interfaces.server.openai.content_files import newest_files
from toolcrib.llm import FilePart, Request

pytestmark = pytest.mark.requirement("files.doors")

IMAGE_URL: Final = f"data:image/png;base64,{b64encode(PNG).decode()}"
PDF_URL: Final = f"data:application/pdf;base64,{b64encode(PDF).decode()}"
QUESTION: Final = {"type": "text", "text": "What is this?"}


def shown(request: Request) -> list[tuple[str, str]]:
    """Names and types of the files of the last message, whose bytes are there."""
    files = [part for part in request.messages[-1].parts if isinstance(part, FilePart)]
    assert request.files is not None
    assert {file.digest for file in files} <= request.files.keys()
    return [(file.name, file.media_type) for file in files]


def last(served: Endpoint) -> list[tuple[str, str]]:
    return shown(served.model.requests[-1])


async def test_a_chat_shows_its_files_and_those_of_earlier_messages():
    image: Any = {"type": "image_url", "image_url": {"url": IMAGE_URL}}
    pdf: Any = {"type": "file", "file": {"filename": "plan.pdf", "file_data": PDF_URL}}
    sound: Any = {"type": "input_audio", "input_audio": {"data": b64encode(MP3).decode(), "format": "mp3"}}
    async with endpoint("A photo.", "All of it.") as served:
        messages: list[Any] = [{"role": "user", "content": [QUESTION, image]}]
        first = await served.client.chat.completions.create(model="clerk", messages=messages)
        assert last(served) == [("", "image/png")]
        messages += [first.choices[0].message, {"role": "user", "content": [QUESTION, pdf, sound]}]
        await served.client.chat.completions.create(model="clerk", messages=messages)

        assert last(served) == [("", "image/png"), ("plan.pdf", "application/pdf"), ("", "audio/mpeg")]
        assert '"files": 1' in served.prompts()[-1]


async def test_a_response_shows_the_files_of_its_input():
    content: Any = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": IMAGE_URL, "detail": "auto"},
        {"type": "input_file", "filename": "plan.pdf", "file_data": PDF_URL},
    ]
    asked: ResponseInputParam = [{"role": "user", "content": content}]
    async with endpoint("Two files.", "Still two.") as served:
        first = await served.client.responses.create(model="clerk", input=asked)
        assert last(served) == [("", "image/png"), ("plan.pdf", "application/pdf")]
        await served.client.responses.create(model="clerk", input="And now?", previous_response_id=first.id)

        assert len(shown_before(served)) == 2


def shown_before(served: Endpoint) -> list[FilePart]:
    """The files of the first message of the last request."""
    return [part for part in served.model.requests[-1].messages[0].parts if isinstance(part, FilePart)]


async def test_an_a2a_message_shows_its_files():
    parts = [Part(text="What is this?"), Part(raw=PNG, media_type="image/png", filename="photo.png")]
    message = Message(message_id="m", role=Role.ROLE_USER, parts=parts)
    async with endpoint("A photo.") as served, a2a_client(served, streaming=False) as client:
        await task_from(client, SendMessageRequest(message=message))

        assert last(served) == [("photo.png", "image/png")]


async def test_an_ag_ui_message_shows_its_files():
    image = {"type": "image", "source": {"type": "data", "value": b64encode(PNG).decode(), "mimeType": "image/png"}}
    document = {"type": "document", "source": {"type": "url", "value": PDF_URL, "mimeType": "application/pdf"}}
    message = {"id": "u1", "role": "user", "content": [QUESTION, image, document]}
    async with endpoint("A photo.") as served:
        told = await ask(served, messages=[message])

        assert told.failure is None
        assert last(served) == [("", "image/png"), ("", "application/pdf")]


def test_a_message_takes_the_newest_files_of_a_conversation_within_the_limits():
    files = [FileInput(name=str(number), base64="AA==") for number in range(30)]
    heavy = FileInput(name="heavy", base64="A" * 28_000_000)

    assert newest_files([files[:25], [], files[25:]]) == files[30 - MOST_FILES :]
    assert newest_files([[heavy], files[:2], files[2:3]]) == files[:3]
    assert newest_files([[], files]) == files  # more than a message may have, which is refused
