"""A hostile gateway: whole replies of four vendors' APIs, and what gateways make of them.

`server.fault` is what it does with every reply, "" nothing. Standard library only.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TEXT = "The rain falls softly on the roof and the garden drinks it up with joy today."
PAGE = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>\r\n"
LOGIN = "<!DOCTYPE html><html><head><title>Sign in</title></head><body><form>Your session has expired.</form></body></html>"
MOMENT = "<!DOCTYPE html><html lang='en-US'><head><title>Just a moment...</title></head><body>Enable JavaScript and cookies to continue</body></html>"
BUSY = {"message": "Provider returned error", "code": 502}


@dataclass(frozen=True)
class Answer:
    """What the gateway sends."""

    body: Any
    """A dict or a list is sent as JSON, text as it is."""
    status: int = 200
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    missing: int = 0
    """Bytes that are promised and not sent; -1 closes without an answer."""


Fault = Callable[[dict[str, Any], str], Any]
"""From a whole reply, which it may change, and the prompt to the body that is sent, or an Answer.
"""


def changed(**parts: Any) -> Fault:
    return lambda reply, prompt: reply | parts


def answered(body: Any, **rest: Any) -> Fault:
    return lambda reply, prompt: Answer(body, **rest)


ANY: dict[str, Fault] = {
    "html_200": answered(PAGE, kind="text/html"),
    "html_as_json": answered(PAGE),
    "html_502": answered(PAGE, status=502, kind="text/html"),
    "login_page": answered(LOGIN, kind="text/html"),
    "challenge": answered(MOMENT, status=403, kind="text/html"),
    "empty_body": answered(""),
    "null_body": answered("null"),
    "string_body": answered('"upstream busy"'),
    "list_body": answered("[]"),
    "object_body": answered({}),
    "half_json": lambda reply, prompt: Answer(json.dumps(reply)[:60]),
    "text_body": answered(
        "upstream connect error or disconnect/reset before headers", kind="text/plain"
    ),
    "error_200": answered({"error": BUSY}),
    "error_text_200": answered({"error": "upstream down"}),
    "detail_200": answered({"detail": "Not Found"}),
    "no_route_404": answered({"detail": "Not Found"}, status=404),
    "redirect": answered("", status=302, headers=(("location", "/login"),)),
    "reset": answered("", missing=-1),
    "truncated": lambda reply, prompt: Answer(reply, missing=400),
    "not_gzip": lambda reply, prompt: Answer(reply, headers=(("content-encoding", "gzip"),)),
    "stream": lambda reply, prompt: Answer(
        f"data: {json.dumps(reply)}\n\ndata: [DONE]\n\n", kind="text/event-stream"
    ),
    "no_content": answered("", status=204),
}


# chat completions


def chat(model: str, text: str = TEXT) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": None}
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": usage,
    }


def choice(**parts: Any) -> Fault:
    return lambda reply, prompt: reply | {"choices": [reply["choices"][0] | parts]}


def message(finish: str = "stop", **parts: Any) -> Fault:
    def fault(reply: dict[str, Any], prompt: str) -> dict[str, Any]:
        one = reply["choices"][0]
        return reply | {
            "choices": [one | {"finish_reason": finish, "message": one["message"] | parts}]
        }

    return fault


def without(*names: str) -> Fault:
    return lambda reply, prompt: {name: part for name, part in reply.items() if name not in names}


def endless_names() -> Fault:
    """Another name in every reply, longer than a log's summary holds."""
    count = iter(range(10**6))
    return lambda reply, prompt: reply | {"model": f"spare-{next(count)}-" + "x" * 5000}


WORD = '{"word": "The"}'
THOUGHT = "Okay, the user asks something. Perhaps this is a test of me. Let me think about what I would say first."
"""A thought that no server should leave in a reply."""

INLINE_THOUGHTS = {
    "unopened": "{thought}\n</think>\n\n{answer}",
    "unopened_attached": "{thought}</think>{answer}",
    "unopened_and_closed_twice": "{thought}\n</think>\n</think>\n\n{answer}",
    "attributes": '<think signature="x" effort=low>{thought}</think>{answer}',
    "capitals": "<THINK>{thought}</THINK>\n{answer}",
    "thinking": "<thinking>\n{thought}\n</thinking>\n\n{answer}",
    "after_an_empty_one": "<think>\n\n</think>\n\n<think>{thought}</think>{answer}",
    "nested": "<thinking>{thought}\n<thinking>\nMore.\n</thinking>\nDone.</thinking>{answer}",
    "channels": "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>final<|message|>{answer}",
    "channels_whole": "<|start|>assistant<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>"
    "commentary<|message|>First.<|end|><|start|>assistant<|channel|>final<|message|>{answer}<|return|>",
    "channels_unopened": "{thought}<|end|><|start|>assistant<|channel|>final<|message|>{answer}",
    "channels_bare": "analysis{thought}assistantfinal{answer}",
    "channels_bare_commentary": "analysis{thought}assistantcommentaryFirst.assistantfinal{answer}",
    "channels_bare_unopened": "{thought}assistantfinal{answer}",
    "magistral": "[THINK]{thought}[/THINK]{answer}",
    "magistral_unopened": "{thought}[/THINK]{answer}",
    "seed": "<seed:think>{thought}</seed:think>{answer}",
    "kimi_vl": "◁think▷{thought}◁/think▷{answer}",
    "kimi_k3": "<|open|>think<|sep|>{thought}<|close|>think<|sep|><|open|>response<|sep|>{answer}<|close|>response<|sep|>",
    "gemma": "<|channel>thought\n{thought}<channel|>{answer}",
    "medgemma": "<unused94>thought\n{thought}<unused95>{answer}",
    "pangu": "[unused16]{thought}[unused17]{answer}[unused10]",
    "apertus": "<|inner_prefix|>{thought}<|inner_suffix|>{answer}",
    "command": "<|START_THINKING|>{thought}<|END_THINKING|><|START_RESPONSE|>{answer}<|END_RESPONSE|>",
    "command_unopened": "{thought}<|END_THINKING|><|START_TEXT|>{answer}<|END_TEXT|>",
    "openthoughts": "<|begin_of_thought|>\n{thought}\n<|end_of_thought|>\n\n<|begin_of_solution|>\n{answer}\n"
    "<|end_of_solution|>",
    "solar": "<|think|>{thought}<|end|><|begin|>assistant<|content|>{answer}<|end|>",
    "solar_2": "{thought}<|think:end|>{answer}",
    "plamo": "<|plamo:begin_think:plamo|>{thought}<|plamo:end_think:plamo|>{answer}<|plamo:tag|>",
    "inkling": "<|content_thinking|>{thought}<|end_message|><|message_model|><|content_text|>{answer}<|end_message|>",
    "full_width": "<｜begin▁of▁thought｜>{thought}<｜end▁of▁thought｜>{answer}<｜end▁of▁sentence｜>",
    "longcat": "<longcat_think>\n{thought}\n</longcat_think>\n{answer}",
    "minimax": "<mm:think>{thought}</mm:think>\n\n{answer}",
    "k2": "<ifm|think_fast>{thought}</ifm|think_fast>{answer}",
    "pipes": "<|thinking|>{thought}<|/thinking|>{answer}",
    "hunyuan": "<think>\n{thought}\n</think>\n<answer>\n{answer}\n</answer>",
    "ernie": "{thought}\n</think>\n\n<response>\n{answer}\n</response>\n",
    "granite": "Here is my thought process: {thought}\n\nHere's my response: {answer}",
    "apriel": "Here are my reasoning steps:\n{thought}\n[BEGIN FINAL RESPONSE]\n{answer}\n[END FINAL RESPONSE]\n<|end|>",
    "marco": "<Thought>\n{thought}\n</Thought>\n<Output>\n{answer}\n</Output>",
    "reflection": "<thinking>\n{thought}\n<reflection>Hm.</reflection>\n</thinking>\n<output>\n{answer}\n</output>",
    "reasoning": "<reasoning>{thought}</reasoning>\n{answer}",
    "thought": "<thought>{thought}</thought>\n{answer}",
    "scratchpad": "<scratchpad>{thought}</scratchpad>\n\n{answer}",
    "analysis": "<analysis>{thought}</analysis>\n\n{answer}",
    "monologue": "<inner_monologue>{thought}</inner_monologue>{answer}",
    "redacted": "<redacted_thinking>{thought}</redacted_thinking>{answer}",
}
"""Form → a reply whose thought the server left in the text."""

EMPTY_THOUGHTS = {
    "empty": "<think>\n\n</think>\n\n{answer}",
    "empty_unopened": "\n</think>\n\n{answer}",
    "final_channel": "<|channel|>final<|message|>{answer}",
    "final_bare": "final{answer}",
    "turn": "<|im_start|>assistant\n{answer}<|im_end|>\n<|im_start|>user\nThanks",
    "turn_of_llama": "{answer}<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nThanks",
    "turn_of_gemma": "{answer}<end_of_turn>\n<start_of_turn>user\nThanks",
    "end_of_text": "{answer}<|endoftext|>Another text.",
    "sentence": "<s>{answer}</s>",
}
"""Form → a reply without a thought, in which the server left special tokens."""

LEFT_OVER = {
    "later": "{answer}\n<reasoning>{thought}</reasoning>\n{answer}",
    "never_ends": "{answer}\n<thought>\n{thought}",
    "label": "thought\n{thought}{answer}",
    "unknown_token": "{answer}<|aside|>{thought}",
}
"""Form → a reply in which nobody can tell where the thought ends."""


def answer_to(prompt: str) -> str:
    """A text, or the JSON object that a prompt asks for."""
    if '"prompt":' in prompt:
        return '{"prompt": "Name one."}'
    return WORD if "JSON" in prompt else TEXT


LOWEST = -3.4028234663852886e38
PLACEHOLDERS: dict[str, list[list[float]]] = {
    "none": [],
    "zero": [[0.0], [0.0]],
    "impossible": [[-9999.0, -9999.0], [-9999.0, -9999.0]],
    "chosen": [[0.0, -9999.0], [0.0, -9999.0]],
    "no_rest": [[-0.1, LOWEST], [-0.1, LOWEST]],
    "above_one": [[0.0002], [0.0002]],
}
"""Form → what a server reports for the candidates of each token in the place of log-probabilities.
"""
LOGPROBS: dict[str, list[list[float]]] = {
    "sure": [[0.0], [-0.4, -1.2]],
    "usual": [[-0.4, -1.2], [-0.1, -3.0]],
}
"""Form → log-probabilities that are a model's."""


def with_logprobs(tokens: list[list[float]]) -> Fault:
    """A fault that reports these log-probabilities of the candidates for each token."""

    def fault(reply: dict[str, Any], prompt: str) -> dict[str, Any]:
        content = []
        for candidates in tokens:
            top = [
                {"token": f"t{i}", "logprob": logprob, "bytes": None}
                for i, logprob in enumerate(candidates)
            ]
            content.append(top[0] | {"top_logprobs": top})
        written = message(content=answer_to(prompt))(reply, prompt)
        return choice(logprobs={"content": content})(written, prompt)

    return fault


def inline(form: str) -> Fault:
    """A fault that writes a reply in one of these forms; a JSON reply where the prompt asks for
    one.
    """

    def fault(reply: dict[str, Any], prompt: str) -> dict[str, Any]:
        answer = answer_to(prompt)
        content = form.replace("{thought}", THOUGHT).replace("{answer}", answer)
        return message(content=content)(reply, prompt)

    return fault


CALL = {
    "id": "t1",
    "type": "function",
    "function": {"name": "search", "arguments": '{"query": "rain"}'},
}
CHAT: dict[str, Fault] = {
    "other_model": changed(model="llama-3-8b-instruct"),
    "snapshot": changed(model="gate/m-2026-01-31"),
    "unsafe_name": changed(model="llama\x1b[2J\n<b>3</b>"),
    "endless_names": endless_names(),
    "no_model": without("model"),
    "null_model": changed(model=None),
    "finish_error": choice(finish_reason="error"),
    "finish_error_empty": message("error", content=""),
    "choice_error": choice(finish_reason="error", error=BUSY),
    "choice_error_stop": choice(error=BUSY),
    "error_beside": changed(error=BUSY),
    "finish_cancelled": choice(finish_reason="cancelled"),
    "finish_abort": choice(finish_reason="abort"),
    "finish_no_resource": choice(finish_reason="insufficient_system_resource"),
    "finish_network": choice(finish_reason="network_error"),
    "finish_null": choice(finish_reason=None),
    "finish_eos": choice(finish_reason="eos"),
    "no_finish": lambda reply, prompt: (
        reply
        | {
            "choices": [
                {
                    name: part
                    for name, part in reply["choices"][0].items()
                    if name != "finish_reason"
                }
            ]
        }
    ),
    "tool_call": message("tool_calls", content=None, tool_calls=[CALL]),
    "tool_call_text": message("tool_calls", tool_calls=[CALL]),
    "tool_call_stop": message("stop", content=None, tool_calls=[CALL]),
    "tool_finish_alone": choice(finish_reason="tool_calls"),
    "choices_null": changed(choices=None),
    "choices_empty": changed(choices=[]),
    "choices_object": lambda reply, prompt: reply | {"choices": reply["choices"][0]},
    "no_choices": without("choices"),
    "choice_null": changed(choices=[None]),
    "message_null": choice(message=None),
    "message_text": choice(message=TEXT),
    "no_message": lambda reply, prompt: (
        reply | {"choices": [{"index": 0, "finish_reason": "stop"}]}
    ),
    "content_null": message(content=None),
    "content_parts": message(content=[{"type": "text", "text": TEXT}]),
    "content_number": message(content=5),
    "index_null": choice(index=None),
    "echo": lambda reply, prompt: chat(reply["model"], prompt),
    "echo_and_more": lambda reply, prompt: chat(reply["model"], f"{prompt}\n\n{TEXT}"),
    "page": message(content=PAGE),
    "moment": message(content=MOMENT),
    "error_text": message(content="Error: rate limit exceeded"),
    "error_json": message(content='{"error": {"message": "No."}}'),
    "usage_null": changed(usage=None),
    "usage_text": changed(usage="none"),
    "usage_partial": changed(usage={"total_tokens": 20}),
    "created_text": changed(created="now"),
    **{
        f"logprobs_{name}": with_logprobs(tokens)
        for name, tokens in (PLACEHOLDERS | LOGPROBS).items()
    },
    "thought_cut": message("length", content=f"<think>{THOUGHT}"),
    "thought_unopened_cut": message("length", content=THOUGHT),
    "thought_alone": message(content="", reasoning_content=THOUGHT),
    **{
        f"thought_{name}": inline(form)
        for forms in (INLINE_THOUGHTS, EMPTY_THOUGHTS, LEFT_OVER)
        for name, form in forms.items()
    },
}


# Responses


def responses(model: str, text: str = TEXT) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    usage = {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20}
    details = {
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "output": [
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage | details,
    }


FUNCTION_CALL = {
    "type": "function_call",
    "id": "f1",
    "call_id": "t1",
    "name": "search",
    "arguments": "{}",
}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
SUMMARY = {"type": "summary_text", "text": "**Weighing**"}
RESPONSES: dict[str, Fault] = {
    "other_model": changed(model="llama-3-8b-instruct"),
    "null_model": changed(model=None),
    "cancelled": changed(status="cancelled"),
    "failed": changed(status="failed"),
    "failed_with_error": changed(
        status="failed", error={"code": "server_error", "message": "The model failed."}
    ),
    "incomplete": changed(status="incomplete"),
    "in_progress": changed(status="in_progress"),
    "queued_empty": changed(status="queued", output=[]),
    "function_call": changed(output=[FUNCTION_CALL]),
    "function_call_text": lambda reply, prompt: (
        reply | {"output": [*reply["output"], FUNCTION_CALL]}
    ),
    "output_null": changed(output=None),
    "output_empty": changed(output=[]),
    "no_output": without("output"),
    "output_text": changed(output=TEXT),
    "content_null": lambda reply, prompt: (
        reply | {"output": [reply["output"][0] | {"content": None}]}
    ),
    "status_null": changed(status=None),
    "encrypted": lambda reply, prompt: (
        reply | {"output": [REASONING | {"encrypted_content": "gA"}, *reply["output"]]}
    ),
    "summary": lambda reply, prompt: (
        reply | {"output": [REASONING | {"summary": [SUMMARY]}, *reply["output"]]}
    ),
    "reasoning_alone": changed(
        output=[REASONING], status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "echo": lambda reply, prompt: responses(reply["model"], prompt),
    "page": lambda reply, prompt: responses(reply["model"], PAGE),
    "usage_null": changed(usage=None),
}


# Anthropic


def anthropic(model: str, text: str = TEXT) -> dict[str, Any]:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def events(reply: dict[str, Any]) -> str:
    """The same as a stream; of content text alone."""
    text = "".join(part.get("text", "") for part in reply["content"])
    sequence = [
        ("message_start", {"message": reply | {"content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {"delta": {"stop_reason": reply["stop_reason"]}, "usage": {"output_tokens": 10}},
        ),
        ("message_stop", {}),
    ]
    return "".join(
        f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n" for name, data in sequence
    )


THINKING = {"type": "thinking", "thinking": THOUGHT, "signature": "Eqo"}
REDACTED = {"type": "redacted_thinking", "data": "EmwK"}
TOOL_USE = {"type": "tool_use", "id": "t1", "name": "search", "input": {"query": "rain"}}
ANTHROPIC: dict[str, Fault] = {
    "other_model": changed(model="llama-3-8b-instruct"),
    "null_model": changed(model=None),
    "tool_use": changed(content=[TOOL_USE], stop_reason="tool_use"),
    "tool_use_text": lambda reply, prompt: (
        reply | {"content": [*reply["content"], TOOL_USE], "stop_reason": "tool_use"}
    ),
    "stop_error": changed(stop_reason="error"),
    "stop_cancelled": changed(stop_reason="cancelled"),
    "stop_null": changed(stop_reason=None),
    "context_exceeded": changed(stop_reason="model_context_window_exceeded"),
    "refusal": changed(stop_reason="refusal"),
    "content_null": changed(content=None),
    "content_empty": changed(content=[]),
    "content_text": changed(content=TEXT),
    "no_content_field": without("content"),
    "error_type": answered(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    ),
    "overloaded": answered(
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        status=529,
    ),
    "thinks": lambda reply, prompt: reply | {"content": [THINKING, *reply["content"]]},
    "thinks_in_secret": lambda reply, prompt: (
        reply | {"content": [THINKING | {"thinking": ""}, *reply["content"]]}
    ),
    "thinks_redacted": lambda reply, prompt: reply | {"content": [REDACTED, *reply["content"]]},
    "thinks_alone": changed(content=[THINKING]),
    "echo": lambda reply, prompt: anthropic(reply["model"], prompt),
    "page": lambda reply, prompt: anthropic(reply["model"], PAGE),
    "usage_null": changed(usage=None),
}


# Gemini


def google(model: str, text: str = TEXT) -> dict[str, Any]:
    candidate = {
        "content": {"role": "model", "parts": [{"text": text}]},
        "finishReason": "STOP",
        "index": 0,
    }
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def candidate(**parts: Any) -> Fault:
    return lambda reply, prompt: reply | {"candidates": [reply["candidates"][0] | parts]}


GOOGLE: dict[str, Fault] = {
    "other_model": changed(modelVersion="llama-3-8b-instruct"),
    "no_model": without("modelVersion"),
    "other": candidate(finishReason="OTHER"),
    "malformed_call": candidate(finishReason="MALFORMED_FUNCTION_CALL", content=None),
    "unexpected_call": candidate(finishReason="UNEXPECTED_TOOL_CALL", content=None),
    "function_call": candidate(
        content={"role": "model", "parts": [{"functionCall": {"name": "search", "args": {}}}]}
    ),
    "safety": candidate(finishReason="SAFETY", content=None),
    "language": candidate(finishReason="LANGUAGE"),
    "no_finish": candidate(finishReason=None),
    "blocked": lambda reply, prompt: {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {},
    },
    "candidates_null": changed(candidates=None),
    "candidates_empty": changed(candidates=[]),
    "no_candidates": without("candidates"),
    "content_null": candidate(content=None),
    "parts_null": candidate(content={"role": "model", "parts": None}),
    "echo": lambda reply, prompt: google(reply["modelVersion"], prompt),
    "page": lambda reply, prompt: google(reply["modelVersion"], PAGE),
}

KINDS = {
    "chat": (chat, CHAT, "openai-api/gate/m"),
    "responses": (responses, RESPONSES, "openai/m"),
    "anthropic": (anthropic, ANTHROPIC, "anthropic/m"),
    "google": (google, GOOGLE, "google/m"),
}
"""API → a whole reply, its own faults beside ANY, and a model that is asked through it."""


def faults(kind: str) -> dict[str, Fault]:
    return ANY | KINDS[kind][1]


def prompt_of(kind: str, body: dict[str, Any]) -> str:
    """The text of the last message."""
    last = body[
        {"chat": "messages", "responses": "input", "anthropic": "messages", "google": "contents"}[
            kind
        ]
    ]
    if isinstance(last, str):
        return last
    content = last[-1].get("content") or last[-1].get("parts")
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


class Handler(BaseHTTPRequestHandler):
    server: "Server"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.send(Answer(LOGIN, kind="text/html"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):  # Inspect counts the tokens of a thought of Anthropic's
            self.send(Answer({"input_tokens": 20}))
            return
        kind = next(
            kind
            for mark, kind in (
                (":generateContent", "google"),
                ("/responses", "responses"),
                ("/messages", "anthropic"),
                ("", "chat"),
            )
            if mark in path
        )
        model = path.split("/models/")[1].split(":")[0] if kind == "google" else body["model"]
        reply = KINDS[kind][0](model)
        fault = self.server.fault
        made = faults(kind)[fault](reply, prompt_of(kind, body)) if fault else reply
        if kind == "anthropic" and body.get("stream") and isinstance(made, dict):
            made = Answer(events(made), kind="text/event-stream")
        self.send(made if isinstance(made, Answer) else Answer(made))

    def send(self, answer: Answer) -> None:
        if answer.missing < 0:
            self.close_connection = True
            self.connection.close()
            return
        data = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
        self.send_response(answer.status)
        self.send_header("content-type", answer.kind)
        self.send_header("content-length", str(len(data) + answer.missing))
        for name, value in answer.headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = bool(answer.missing)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    fault = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def handle_error(self, *_: object) -> None:
        """Quiet: clients leave."""


@contextmanager
def running() -> Iterator[Server]:
    """A gateway in a thread."""
    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def environment(server: Server) -> dict[str, str]:
    """Environment variables with which Inspect's providers ask this gateway."""
    paths = {"GATE": "/v1", "OPENAI": "/openai/v1", "ANTHROPIC": "/anthropic", "GOOGLE": ""}
    return {f"{name}_BASE_URL": f"http://{server.host}{path}" for name, path in paths.items()} | {
        f"{name}_API_KEY": "x" for name in paths
    }
