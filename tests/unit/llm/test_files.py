"""Files in requests: how each wire writes them, and what models are told that cannot read them."""

import json
from base64 import b64encode
from typing import Any

import orjson
import pytest
from anthropic.types import MessageParam
from google.genai.types import Content
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from tests.twins.images import MP3, PDF, PNG, WAV, png
from toolcrib.contracts import Attachment, InvalidSettings
from toolcrib.contracts.base.media import ModelInput, attachment_of
from toolcrib.llm import (
    AnthropicWire,
    ChatWire,
    FilePart,
    GeminiWire,
    Message,
    Quirks,
    Request,
    ResponsesWire,
    Text,
    ToolCall,
    ToolResult,
    Wire,
    assistant,
    decode_messages,
    encode_messages,
    hash_request,
    resolve,
    user,
)
from toolcrib.llm.base.files import (
    MOST_SHOWN,
    MOST_SHOWN_BYTES,
    describe,
    file_of,
    files_in,
    image_tokens,
    tokens_of_file,
    with_files,
    with_files_shown,
)
from toolcrib.llm.base.prices import estimate_tokens
from toolcrib.llm.models.model import SchemaTools
from toolcrib.llm.text import TextTools

EVERY_INPUT: frozenset[ModelInput] = frozenset({"image", "pdf", "audio"})
CSV = b"company,deals\nAcme,2\n"
BYTES = {"photo.png": PNG, "plan.pdf": PDF, "call.mp3": MP3, "call.wav": WAV, "deals.csv": CSV}
TYPES = {
    "photo.png": "image/png",
    "plan.pdf": "application/pdf",
    "call.mp3": "audio/mpeg",
    "call.wav": "audio/wav",
    "deals.csv": "text/csv",
}


def part(name: str, data: bytes | None = None) -> FilePart:
    found = file_of(attachment_of(BYTES[name] if data is None else data, TYPES[name], name=name))
    assert found is not None
    return found


def base64(name: str) -> str:
    return b64encode(BYTES[name]).decode()


def asked(*messages: Message, inputs: frozenset[ModelInput] = EVERY_INPUT, **quirks: Any) -> tuple[Request, Quirks]:
    """A request with the bytes of its files, as its wire takes it."""
    known = Quirks(inputs=inputs, **quirks)
    files = {part(name).digest: data for name, data in BYTES.items()}
    return with_files_shown(Request(model="m", messages=messages, files=files), known), known


def body(wire: Wire, *messages: Message, **quirks: Any) -> dict[str, Any]:
    request, known = asked(*messages, inputs=wire.inputs, **quirks)
    return json.loads(orjson.dumps(wire.build(request, known, stream=False)[1]))


def question(*names: str) -> Message:
    return Message("user", (Text("What is this?"), *map(part, names)))


CALLED = Message("assistant", (ToolCall("c1", "draw", "{}"), ToolCall("c2", "read", "{}")))
RETURNED = Message(
    "user",
    (ToolResult("c1", "draw", "drawn", files=(part("photo.png"), part("plan.pdf"))), ToolResult("c2", "read", "ok")),
)


@pytest.mark.requirement("files.wires")
def test_chat_completions_takes_files_as_pieces_of_the_users_message():
    sent = body(ChatWire(), question("photo.png", "plan.pdf", "call.mp3", "call.wav"))["messages"]

    assert sent == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64('photo.png')}"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "plan.pdf",
                        "file_data": f"data:application/pdf;base64,{base64('plan.pdf')}",
                    },
                },
                {"type": "input_audio", "input_audio": {"data": base64("call.mp3"), "format": "mp3"}},
                {"type": "input_audio", "input_audio": {"data": base64("call.wav"), "format": "wav"}},
            ],
        }
    ]
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(sent)


@pytest.mark.requirement("files.wires")
def test_chat_completions_gets_files_of_results_after_all_results():
    sent = body(ChatWire(), user("Draw."), CALLED, RETURNED)["messages"]

    assert sent[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "drawn"},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Files that draw returned (call c1):"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64('photo.png')}"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "plan.pdf",
                        "file_data": f"data:application/pdf;base64,{base64('plan.pdf')}",
                    },
                },
            ],
        },
    ]
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(sent)


@pytest.mark.requirement("files.wires")
def test_responses_takes_files_of_users_and_of_results():
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{base64('photo.png')}", "detail": "auto"}
    pdf = {
        "type": "input_file",
        "filename": "plan.pdf",
        "file_data": f"data:application/pdf;base64,{base64('plan.pdf')}",
    }
    sent = body(ResponsesWire(), question("photo.png", "plan.pdf"), CALLED, RETURNED)["input"]

    assert sent[:3] == [
        {"role": "user", "content": "What is this?"},
        {"role": "user", "content": [image]},
        {"role": "user", "content": [pdf]},
    ]
    assert sent[5:] == [
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "drawn"}, image, pdf],
        },
        {"type": "function_call_output", "call_id": "c2", "output": "ok"},
    ]
    TypeAdapter(list[ResponseInputItemParam]).validate_python(sent)


@pytest.mark.requirement("files.wires")
def test_anthropic_takes_images_and_documents_in_messages_and_in_results():
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": base64("photo.png")},
    }
    pdf = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": base64("plan.pdf")},
        "title": "plan.pdf",
    }
    sent = body(AnthropicWire(), question("photo.png", "plan.pdf"), CALLED, RETURNED)["messages"]

    assert sent[0] == {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image, pdf]}
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "drawn"}, image, pdf]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "ok"},
    ]
    TypeAdapter(list[MessageParam]).validate_python(sent)


@pytest.mark.requirement("files.wires")
def test_gemini_takes_inline_data_in_messages_and_in_results():
    image = {"inlineData": {"mimeType": "image/png", "data": base64("photo.png")}}
    pdf = {"inlineData": {"mimeType": "application/pdf", "data": base64("plan.pdf")}}
    sent = body(GeminiWire(), question("photo.png", "plan.pdf"), CALLED, RETURNED)["contents"]

    assert sent[0] == {"role": "user", "parts": [{"text": "What is this?"}, image, pdf]}
    assert sent[2]["parts"] == [
        {"functionResponse": {"id": "c1", "name": "draw", "response": {"output": "drawn"}, "parts": [image, pdf]}},
        {"functionResponse": {"id": "c2", "name": "read", "response": {"output": "ok"}}},
    ]
    for content in sent:
        Content.model_validate(content)


@pytest.mark.requirement("files.wires")
def test_gemini_of_the_second_generation_gets_files_of_results_after_all_results():
    sent = body(GeminiWire(), user("Draw."), CALLED, RETURNED, files_in_results=False)["contents"][2]

    assert [next(iter(each)) for each in sent["parts"]] == [
        "functionResponse",
        "functionResponse",
        "text",
        "inlineData",
        "inlineData",
    ]
    assert sent["parts"][0]["functionResponse"] == {"id": "c1", "name": "draw", "response": {"output": "drawn"}}
    assert sent["parts"][2] == {"text": "Files that draw returned (call c1):"}
    Content.model_validate(sent)


@pytest.mark.requirement("files.wires")
@pytest.mark.parametrize("wire", [ChatWire(), ResponsesWire(), AnthropicWire(), GeminiWire()])
def test_a_request_without_files_is_written_as_before(wire: Wire):
    plain = Request(model="m", messages=(user("hi"), CALLED, Message("user", (ToolResult("c1", "draw", "ok"),))))

    shown, quirks = asked(*plain.messages)
    one, other = (orjson.dumps(wire.build(each, quirks, stream=False)[1]) for each in (shown, plain))

    assert one == other


# Words in place of files ----------------------------------------------------------------------------------------------


def told(*messages: Message, inputs: frozenset[ModelInput] = frozenset()) -> list[str]:
    """All that the messages say in words."""
    request, _ = asked(*messages, inputs=inputs)
    found: list[str] = []
    for message in request.messages:
        found += [each.text for each in message.parts if isinstance(each, Text | ToolResult)]
    return found


@pytest.mark.requirement("files.described")
def test_a_model_is_told_in_words_what_it_cannot_read():
    large = part("photo.png", png(800, 600))
    words = describe(FilePart("0" * 64, "image/png", 120_000, "photo.png", 800, 600), "this model cannot read images")

    assert words == "[image photo.png, image/png, 800x600, 120 kB; this model cannot read images]"
    assert told(question("photo.png", "plan.pdf", "call.mp3"))[1:] == [
        f"[image photo.png, image/png, 8x6, {len(PNG)} bytes; this model cannot read images]",
        f"[file plan.pdf, application/pdf, {len(PDF)} bytes; this model cannot read PDF files]",
        f"[audio call.mp3, audio/mpeg, {len(MP3)} bytes; this model cannot read audio]",
    ]
    assert told(RETURNED)[0].splitlines()[0] == "drawn"
    assert len(told(RETURNED)[0].splitlines()) == 3
    assert told(Message("user", (large,)), inputs=EVERY_INPUT)[0].endswith("its bytes are not kept any more]")
    assert describe(FilePart("", "application/zip", 3_000_000), "no") == "[file, application/zip, 3 MB; no]"


@pytest.mark.requirement("files.described")
def test_a_text_file_is_shown_to_every_model_as_text():
    assert told(question("deals.csv"))[1] == "[file deals.csv, text/csv]\ncompany,deals\nAcme,2\n"


@pytest.mark.requirement("files.described")
def test_bytes_that_are_not_what_their_type_says_are_described():
    false = FilePart(part("plan.pdf").digest, "image/png", 3, "x.png")

    (words,) = told(Message("user", (false,)), inputs=EVERY_INPUT)
    assert words.startswith("[image x.png, image/png, 3 bytes; its bytes are not of that type")


@pytest.mark.requirement("files.described")
def test_one_request_shows_the_last_files_within_its_limits():
    many = [Message("user", (part("photo.png"),)) for _ in range(MOST_SHOWN + 2)]
    request, _ = asked(*many)
    shown = [isinstance(message.parts[0], FilePart) for message in request.messages]
    heavy = FilePart(part("photo.png").digest, "image/png", MOST_SHOWN_BYTES // 2, width=8, height=6)
    halves, _ = asked(*(Message("user", (heavy,)) for _ in range(3)))

    assert shown == [False, False, *[True] * MOST_SHOWN]
    assert [isinstance(message.parts[0], FilePart) for message in halves.messages] == [False, True, True]
    assert "later files fill the request" in request.messages[0].text


@pytest.mark.requirement("files.described")
def test_files_follow_on_results_that_are_written_as_text():
    messages = (user("Draw."), CALLED, RETURNED)
    request, quirks = asked(*messages, tool_calling="schema")
    by_schema = SchemaTools(request, quirks).request.messages[-1]
    by_text = TextTools(request, quirks).request.messages[-1]

    assert [type(each) for each in by_schema.parts] == [Text, FilePart, FilePart, Text]
    assert [type(each) for each in by_text.parts] == [Text, FilePart, FilePart]
    assert all(file.data for file in files_in([by_schema, by_text]))


# What is known of models ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("files.known_models")
@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        ("openai:gpt-5", ["image", "pdf"]),
        ("openai:gpt-3.5-turbo", []),
        ("openai:gpt-4-turbo", ["image"]),
        ("openai:gpt-4o-audio-preview", ["audio"]),
        ("openai-responses:gpt-5", ["image", "pdf"]),
        ("openai-responses:o3-mini", []),
        ("openai-responses:gpt-audio", []),
        ("anthropic:claude-sonnet-4-5", ["image", "pdf"]),
        ("anthropic:claude-2.1", []),
        ("google:gemini-3-pro", ["image", "pdf", "audio"]),
        ("google:gemma-3-27b-it", ["image"]),
        ("mistral:pixtral-12b", ["image"]),
        ("groq:meta-llama/llama-4-scout-17b", ["image"]),
        ("openrouter:anthropic/claude-sonnet-4.5", ["image", "pdf"]),
        ("deepseek:deepseek-chat", []),
        ("ollama:llava", []),
    ],
)
def test_what_a_model_can_read_is_known(model: str, inputs: list[str]):
    assert resolve(model).quirks.inputs == set(inputs)


@pytest.mark.requirement("files.known_models")
def test_a_setting_says_what_a_model_can_read_within_what_its_api_takes():
    assert resolve("ollama:llava", inputs=("image",)).quirks.inputs == {"image"}
    assert resolve("openai:gpt-5", inputs=()).quirks.inputs == set()
    with pytest.raises(InvalidSettings, match="inputs has 'audio', and its API takes image, pdf; leave it out"):
        resolve("anthropic:claude-sonnet-4-5", inputs=("audio",))


# Tokens, hashes, bytes that are stored --------------------------------------------------------------------------------


@pytest.mark.requirement("files.tokens")
def test_an_image_counts_as_the_most_that_a_provider_counts():
    assert image_tokens(200, 200) == 258  # Gemini; Anthropic 54, OpenAI 85 + 170
    assert image_tokens(512, 512) == 4 * 258
    assert image_tokens(1000, 1000) == max(1334, 85 + 4 * 170, 4 * 258)
    assert image_tokens(8000, 8000) == 1600
    assert image_tokens(2048, 4096) == max(1600, 85 + 6 * 170, 6 * 258)
    assert image_tokens(0, 10) == 1600
    assert image_tokens(1, 10_000) == 8 * 258


@pytest.mark.requirement("files.tokens")
def test_other_files_count_by_their_bytes():
    sizes = [("application/pdf", 10), ("application/pdf", 100_001), ("audio/mpeg", 16_000), ("text/csv", 41)]

    assert [tokens_of_file(FilePart("", kind, size)) for kind, size in sizes] == [3000, 9000, 32, 11]
    assert tokens_of_file(FilePart("", "application/zip", 10_000)) == 0


@pytest.mark.requirement("files.tokens")
def test_a_prompt_counts_its_files_wherever_they_stand():
    photo = part("photo.png")
    plain, shown = Message("user", (Text("abcd"),)), Message("user", (Text("abcd"), photo))
    result = Message("user", (ToolResult("c", "draw", "abcd", files=(photo,)),))

    assert estimate_tokens([shown]) == estimate_tokens([result]) == estimate_tokens([plain]) + tokens_of_file(photo)


FILES = st.builds(
    FilePart,
    digest=st.text("0123456789abcdef", min_size=64, max_size=64),
    media_type=st.sampled_from(["image/png", "application/pdf", "text/csv"]),
    size=st.integers(0, 2**40),
    name=st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    width=st.integers(0, 9),
    height=st.integers(0, 9),
)
PARTS = st.one_of(
    FILES,
    st.builds(Text, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    st.builds(ToolResult, st.just("c"), st.just("t"), st.just("x"), files=st.lists(FILES, max_size=2).map(tuple)),
)


@pytest.mark.requirement("files.messages")
@given(st.lists(st.lists(PARTS, max_size=4).map(lambda parts: Message("user", tuple(parts))), max_size=4))
def test_messages_with_files_are_read_as_they_were_stored(messages: list[Message]):
    stored = encode_messages(tuple(messages))

    assert decode_messages(stored) == tuple(messages)
    assert b'"data"' not in stored
    assert len(files_in(messages)) == stored.count(b'"digest"')


@pytest.mark.requirement("files.messages")
def test_the_bytes_of_files_are_no_part_of_a_requests_hash():
    bare = Request(messages=(question("photo.png"),))
    loaded = Request(messages=bare.messages, files={part("photo.png").digest: PNG})
    other = Request(messages=(question("plan.pdf"),))

    assert hash_request("m", bare) == hash_request("m", loaded) != hash_request("m", other)


@pytest.mark.requirement("files.messages")
def test_a_message_gets_those_files_that_the_crib_keeps():
    elsewhere = Attachment(kind="image", url="https://example.com/a.png")

    assert with_files(assistant("x"), [elsewhere]) == assistant("x")
    assert with_files(user("x"), [attachment_of(PNG, "image/png")]).parts[1:] != ()
