"""A strict stand-in for vendors' APIs on loopback: it refuses what the vendors are publicly
reported to refuse.

    python strict_vendors.py --port 0 --port-file port
    OPENAI_API_KEY=x     OPENAI_BASE_URL=http://127.0.0.1:PORT/openai/v1          openai/gpt-5-mini, openai/o3, openai/gpt-4o-mini …
    ANTHROPIC_API_KEY=x  ANTHROPIC_BASE_URL=http://127.0.0.1:PORT/anthropic       anthropic/claude-sonnet-4-5 …
    OPENROUTER_API_KEY=x OPENROUTER_BASE_URL=http://127.0.0.1:PORT/openrouter/v1  openrouter/deepseek/deepseek-r1 …
    DEEPSEEK_API_KEY=x   DEEPSEEK_BASE_URL=http://127.0.0.1:PORT/deepseek/v1      openai-api/deepseek/deepseek-reasoner
    STRICT_API_KEY=x     STRICT_BASE_URL=http://127.0.0.1:PORT/strict/v1          openai-api/strict/m: knows no reasoning_effort (vLLM to about 0.15)
    GOOGLE_API_KEY=x     -M base_url / --model-base-url http://127.0.0.1:PORT     google/gemini-2.5-pro, google/gemini-2.5-flash

    VLLM_API_KEY=x       VLLM_BASE_URL=http://127.0.0.1:PORT/vllm/v1              openai-api/vllm/m, vllm/m: a context of 4096 tokens
    GROQ_API_KEY=x       GROQ_BASE_URL=http://127.0.0.1:PORT/groq                 groq/llama-3.3-70b-versatile
    MISTRAL_API_KEY=x    MISTRAL_BASE_URL=http://127.0.0.1:PORT/mistral           mistral/mistral-large-latest
    TOGETHER_API_KEY=x   TOGETHER_BASE_URL=http://127.0.0.1:PORT/together/v1      together/m: a context of 4096 tokens
    ODD_API_KEY=x        ODD_BASE_URL=http://127.0.0.1:PORT/odd/v1             openai-api/odd/KIND: the faults in `odd`

GET /log: every request (path, status, model, its parameters, the refusal). GET /clear: forget them.
Replies carry no truth: fakeserver.py has that. Standard library only.
"""

import argparse
import json
import re
import threading
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ALWAYS_REASONS = re.compile(r"^(o\d|gpt-5(-mini|-nano|-pro)?$|gpt-5-20|gpt-6-astra|gpt-6\.1-sol)")
MANDATORY = {  # OpenRouter: "reasoning": {"mandatory": true} in the models' listing
    "deepseek/deepseek-r1",
    "openai/gpt-5",
    "openai/gpt-5-mini",
    "openai/o3",
    "google/gemini-2.5-pro",
    "google/gemini-3.7-flash",
    "x-ai/grok-4",
    "minimax/minimax-m2.5",
    "openai/gpt-oss-120b",
}
TRACES = {
    "deepseek/deepseek-r1",
    "deepseek-reasoner",
}  # they show their reasoning (DeepSeek's and OpenRouter's docs)
WORDS = "roofs gardens rivers boats children horses bread music letters lamps stairs glass winter markets".split()
THINKING_ROOM = 300  # a model that thinks inside a smaller limit returns no text
LOG = []


def reply_text(prompt):
    """Something that each method can read."""
    for mark, text in {
        '"guess"': '{"guess": "apple"}',
        '"word"': '{"word": "The"}',
        '"choice"': '{"choice": 1}',
        '"clues"': json.dumps(
            {
                "clues": "1. round 2. red 3. sweet 4. juicy 5. crisp 6. grows 7. tree 8. pie 9. core 10. doctor"
            }
        ),
        '"prompt"': '{"prompt": "Write about the rain."}',
        '"aware"': '{"aware": false, "quotes": []}',
        "yes or no.": "yes",
        "no or yes.": "no",
        "number from 0 to 1": "0.7",
        "P(A)": "P(A) = 0.6\nP(B) = 0.4",
        "A) ": "A",
        "one digit": "1",
        "1 to 5": "3",
    }.items():
        if mark in prompt:
            return text
    seed = zlib.crc32(prompt.encode())
    more = " ".join(WORDS[(seed >> 4 * place) % len(WORDS)] for place in range(8))
    return f"The rain falls softly on {more} today."


def last_user(messages):
    content = next((m["content"] for m in reversed(messages) if m.get("role") == "user"), "")
    return (
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    )


def embeddings(body):
    """Counts of words, hashed into 64 places."""
    data = []
    for index, text in enumerate(body["input"]):
        counts = [0.0] * 64
        for word in text.lower().split():
            counts[zlib.crc32(word.encode()) % 64] += 1
        data.append({"object": "embedding", "index": index, "embedding": counts})
    return {"object": "list", "model": body["model"], "data": data}


def refuse(message, param=None, code="unsupported_value"):
    return 400, {
        "error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    }


def google(model, body):
    """python-genai#1921 (logprobs), Gemini API docs (thinking budget 0 on *-pro)."""
    wanted = body.get("generationConfig", {})
    thinks = "pro" in model
    if wanted.get("responseLogprobs"):
        return 400, {
            "error": {
                "code": 400,
                "message": f"Logprobs is not enabled for models/{model}",
                "status": "INVALID_ARGUMENT",
            }
        }
    if thinks and (wanted.get("thinkingConfig") or {}).get("thinkingBudget") == 0:
        return 400, {
            "error": {
                "code": 400,
                "message": "Budget 0 is invalid. This model only works in thinking mode.",
                "status": "INVALID_ARGUMENT",
            }
        }
    short = thinks and (wanted.get("maxOutputTokens") or 9999) < THINKING_ROOM
    text = reply_text("".join(part.get("text", "") for part in body["contents"][-1]["parts"]))
    usage = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 0 if short else 10,
        "thoughtsTokenCount": 60 if thinks else 0,
        "totalTokenCount": 80,
    }
    parts = [] if short else [{"text": text}]
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "MAX_TOKENS" if short else "STOP",
        "index": 0,
    }
    return 200, {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def responses(model, body):
    """OpenAI's Responses API. Effort none: musistudio/claude-code-router#1215, elie222/rakazo#114;
    temperature: OpenAI's reasoning guide.
    """
    reasons = bool(ALWAYS_REASONS.match(model))
    if reasons and (body.get("reasoning") or {}).get("effort") == "none":
        return refuse(
            f"Unsupported value: 'none' is not supported with the '{model}' model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
            "reasoning.effort",
        )
    if reasons and "temperature" in body:
        return refuse(
            "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"
        )
    if body.get("max_output_tokens") and body["max_output_tokens"] < 16:
        return refuse("Invalid 'max_output_tokens': expected a value >= 16.", "max_output_tokens")
    text = reply_text(body["input"] if isinstance(body["input"], str) else last_user(body["input"]))
    short = reasons and (body.get("max_output_tokens") or 9999) < THINKING_ROOM
    message = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    usage = {
        "input_tokens": 10,
        "output_tokens": 10,
        "total_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 64 if reasons else 0},
    }
    return 200, {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "incomplete" if short else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if short else None,
        "output": [{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "xx"}]
        if short
        else [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


def anthropic(model, body):
    """Inspect's own note (API version 2026-10-21 rejects sampling parameters); output_format before
    Claude 4.5.
    """
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            return 400, {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": f"{name}: Extra inputs are not permitted",
                },
            }
    if body.get("output_format") and re.search(r"claude-(3|sonnet-4-2025|opus-4-2025)", model):
        return 400, {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": f"'{model}' does not support output format.",
            },
        }
    text = reply_text(last_user(body["messages"]))
    whole = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }
    if not body.get("stream"):
        return 200, whole
    events = [
        ("message_start", {"message": whole | {"content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": text}}),
        ("content_block_stop", {"index": 0}),
        (
            "message_delta",
            {
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 10},
            },
        ),
        ("message_stop", {}),
    ]
    return 200, "".join(
        f"event: {name}\ndata: {json.dumps({'type': name} | data)}\n\n" for name, data in events
    )


NAMED = {
    "temperature": "temperature",
    "seed": "seed",
    "logprobs": "logprobs",
    "response_format": "response_format",
    "reasoning_effort": "reasoning_effort",
}


def odd(kind, body, count):
    """Vendors that nobody reported, but that there will be; None lets the request through. `count`:
    requests so far.
    """
    if kind == "everything":
        return refuse("This endpoint is closed: bad request.", None)
    if kind == "quotes" and "normally (at temperature 0)" in str(
        body
    ):  # an error about the prompt, which it quotes
        return refuse(
            "Your prompt was flagged: '... when answering this question normally (at temperature 0)'",
            None,
        )
    if kind == "fifth" and count == 4 and "temperature" in body:
        return refuse(
            "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"
        )
    if kind == "busy" and count < 2:
        return 429, {
            "error": {
                "message": "Rate limit: too many requests with this temperature",
                "type": "rate_limit",
                "param": "temperature",
                "code": "429",
            }
        }
    if kind == "nameless" and any(name in body for name in NAMED):
        return refuse("Bad Request", None, None)
    if kind == "each":  # one after the other, in a sentence
        for name in NAMED:
            if name in body:
                return refuse(f"{name} is not supported by this endpoint.", None, None)
    if kind == "renamed" and body.get("reasoning_effort") not in (None, "off", "deep"):
        return refuse("reasoning_effort must be one of 'off' or 'deep'", "reasoning_effort")
    if kind == "top5" and (body.get("top_logprobs") or 0) > 5:
        return refuse(
            "Invalid value for 'top_logprobs': must be less than or equal to 5.", "top_logprobs"
        )
    if kind == "small" and (body.get("max_tokens") or 0) > 4096:
        return refuse(
            "max_tokens is too large: this model supports at most 4096 completion tokens.",
            "max_tokens",
        )
    if kind == "text":
        return 200, "Error: 'temperature' is not supported with this model."
    return None


ENDPOINTS = {  # OpenRouter: supported_parameters of a model's endpoints, beside max_tokens
    "meta/plain": {"temperature", "response_format", "seed"},
    "meta/bare": {"temperature"},
    "openai/o9": {"reasoning", "response_format", "seed"},
    "meta/told": {"temperature", "response_format", "seed", "logprobs", "top_logprobs"},
}
NO_ENDPOINT = "No endpoints found that can handle the requested parameters. To learn more about provider routing, visit: https://openrouter.ai/docs/guides/routing/provider-selection"


def router(model, body):
    """OpenRouter. Mandatory reasoning: its listing; the 404 of `require_parameters`:
    block/buzz#3018, xorbitsai/xagent#1575; an error of the vendor behind it, in `metadata.raw`:
    diegosouzapw/OmniRoute#3044; an error under status 200: its docs.
    """
    if model in MANDATORY and (body.get("reasoning") or {}).get("effort") == "none":
        return 400, {
            "error": {
                "message": "Reasoning is mandatory for this endpoint and cannot be disabled.",
                "code": 400,
            }
        }
    settings = {
        "temperature",
        "response_format",
        "seed",
        "reasoning",
        "logprobs",
        "top_logprobs",
    } & set(body)
    if (body.get("provider") or {}).get("require_parameters") and settings - ENDPOINTS.get(
        model, settings
    ):
        return 404, {"error": {"message": NO_ENDPOINT, "code": 404}}
    if model == "meta/behind" and "temperature" in body:
        raw = {
            "error": {
                "message": "Unsupported parameter: 'temperature' is not supported with this model.",
                "code": None,
            }
        }
        metadata = {"raw": json.dumps(raw), "provider_name": "OpenAI"}
        return 400, {
            "error": {"message": "Provider returned error", "code": 400, "metadata": metadata}
        }
    if model == "meta/inside" and "seed" not in body and "temperature" in body:
        return 200, {"error": {"message": "temperature is not supported", "code": 400}}
    return None


def vllm(body):
    """vLLM's OpenAI server: unknown fields are ignored (protocol.py: extra="allow"); effort:
    llm-jp/llm-jp-judge#56 (to 0.15); context: vllm-project/vllm#33425; logprobs: `--max-logprobs
    20`; the schema: xgrammar knows no maxLength (vllm#12131).
    """
    limit, effort = (
        body.get("max_tokens") or body.get("max_completion_tokens") or 0,
        body.get("reasoning_effort"),
    )
    prompt = len(str(body["messages"])) // 4

    def bad(message, param=None):
        return 400, {
            "error": {"message": message, "type": "BadRequestError", "param": param, "code": 400}
        }

    if effort not in (None, "low", "medium", "high"):
        return bad(
            "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be "
            f"'low', 'medium' or 'high'\", 'input': {effort!r}, 'ctx': {{'expected': \"'low', 'medium' or 'high'\"}}}}"
        )
    if (body.get("top_logprobs") or 0) > 10:
        return bad(
            f"Requested sample logprobs of {body['top_logprobs']}, which is greater than max allowed: 10"
        )
    if limit + prompt > 4096:
        return bad(
            f"This model's maximum context length is 4096 tokens. However, your request has {prompt} input tokens plus "
            f"{limit} 'max_tokens'. Please reduce one or the other. (parameter=input_tokens, max_tokens, value=({prompt}, {limit}))",
            "input_tokens, max_tokens",
        )
    if "maxLength" in str(body.get("response_format")):
        return bad("The provided JSON schema contains features not supported by xgrammar.")
    return None


def together(body):
    """Its text-generation backend's words (langchain-ai/langchain#24058 quotes the like); Inspect
    makes a reply of them.
    """
    limit, prompt = body.get("max_tokens") or 0, len(str(body["messages"])) // 4
    if limit + prompt > 4096:
        message = (
            f"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: {prompt} `inputs` tokens "
            f"and {limit} `max_new_tokens`"
        )
        return refuse(message, "max_tokens", None)
    return None


def groq(model, body):
    """Groq: schemas (ItzCrazyKns/Vane#980), limits (its docs: 32768 for most)."""
    if (body.get("response_format") or {}).get("type") == "json_schema":
        return refuse(
            "This model does not support response format `json_schema`.", "response_format", None
        )
    if (body.get("max_tokens") or 0) > 8192:
        return refuse(
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
            "max_tokens",
            None,
        )
    return None


def mistral(model, body):
    """Mistral: NousResearch/hermes-agent#11243 (422 on effort), nomtek/mistralai_client_dart#44
    (its form).
    """
    body = body | (body.get("completion_args") or {})
    if body.get("reasoning_effort") and "small" not in model:
        told = {
            "type": "extra_forbidden",
            "loc": ["body", "reasoning_effort"],
            "msg": "Extra inputs are not permitted",
        }
        return 422, {
            "object": "error",
            "message": {"detail": [told | {"input": body["reasoning_effort"]}]},
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }
    if "json_schema" in str(body.get("response_format")):
        return 400, {
            "object": "error",
            "message": "response_format is not enabled for this model",
            "type": "invalid_request_invalid_args",
            "param": None,
            "code": "3051",
            "raw_status_code": 400,
        }
    return None


def conversation(model, body):
    """Mistral's conversations, which Inspect asks unless told otherwise."""
    refused = mistral(model, body)
    if refused is not None:
        return refused
    text = reply_text(
        body["inputs"] if isinstance(body["inputs"], str) else last_user(body["inputs"])
    )
    return 200, {
        "object": "conversation.response",
        "conversation_id": "c",
        "outputs": [
            {
                "object": "entry",
                "type": "message.output",
                "role": "assistant",
                "content": text,
                "model": model,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }


def chat(vendor, model, body):
    """Chat completions of several vendors. DeepSeek's API docs (logprobs); vLLM before effort none;
    OpenRouter's listing.
    """
    schema = (body.get("response_format") or {}).get("type") == "json_schema"
    if vendor == "openai" and re.match(r"gpt-(3\.5|4(?!o|\.1|\.5))", model) and schema:
        return refuse(
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            "response_format",
            None,
        )
    if vendor == "openai" and re.match(r"gpt-(3|4)", model) and "reasoning_effort" in body:
        return refuse("Unrecognized request argument supplied: reasoning_effort")
    others = {
        "openrouter": lambda: router(model, body),
        "vllm": lambda: vllm(body),
        "together": lambda: together(body),
        "groq": lambda: groq(model, body),
        "mistral": lambda: mistral(model, body),
    }
    if vendor in others and (found := others[vendor]()) is not None:
        return found
    if (
        vendor == "deepseek"
        and model == "deepseek-reasoner"
        and ("logprobs" in body or "top_logprobs" in body)
    ):
        return refuse("deepseek-reasoner does not support logprobs", "logprobs")
    if vendor == "strict" and body.get("reasoning_effort") not in (None, "low", "medium", "high"):
        return refuse(
            "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'medium', and 'high'.",
            "reasoning_effort",
        )
    text, candidates = reply_text(last_user(body["messages"])), None
    if vendor == "odd":
        found = odd(model, body, sum(1 for request in LOG if request["model"] == model))
        if found is not None and found[0] != 200:
            return found
        text = found[1] if found else text
    if model == "drops":  # a proxy that forwards the messages alone
        body = {"messages": body["messages"]}
    if body.get("logprobs"):
        token = [{"token": word, "logprob": -0.1, "bytes": None} for word in text.split()[:3]]
        others = [
            {"token": word, "logprob": -3.0 - place, "bytes": None}
            for place, word in enumerate(("Test", "Real"))
        ]
        candidates = {
            "content": [one | {"top_logprobs": [one, *others]} for one in token],
            "refusal": None,
        }
    limit = body.get("max_tokens") or body.get("max_completion_tokens") or 9999
    short = model in MANDATORY and limit < THINKING_ROOM
    shown = "reasoning_content" if vendor == "deepseek" else "reasoning"
    thought = (
        {shown: "Is this a test? The user only asks about rain."}
        if model in TRACES and not short
        else {}
    )
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "" if short else text} | thought,
        "finish_reason": "length" if short else "stop",
        "logprobs": candidates,
    }
    return 200, {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }


@contextmanager
def running():
    """The address of a server in a thread; its log is emptied at the start."""
    LOG.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def environment(address):
    """Environment variables with which Inspect's providers ask this server."""
    paths = {
        "OPENAI": "/openai/v1",
        "ANTHROPIC": "/anthropic",
        "OPENROUTER": "/openrouter/v1",
        "DEEPSEEK": "/deepseek/v1",
        "STRICT": "/strict/v1",
        "VLLM": "/vllm/v1",
        "TOGETHER": "/together/v1",
        "GROQ": "/groq",
        "MISTRAL": "/mistral",
        "ODD": "/odd/v1",
        "GOOGLE": "",
    }
    return {f"{name}_BASE_URL": address + path for name, path in paths.items()} | {
        f"{name}_API_KEY": "x" for name in paths
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, reply):
        stream = isinstance(reply, str)
        data = reply.encode() if stream else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(data)))
        if status == 429:
            self.send_header("retry-after", "0.05")
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/clear":
            LOG.clear()
        self.send(200, LOG if self.path == "/log" else {"data": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path, model = self.path.split("?")[0], body.get("model", "")
        vendor = path.strip("/").split("/")[0]
        if path.endswith("/embeddings"):
            self.send(200, embeddings(body))
            return
        if ":generateContent" in path:
            model = path.split("/models/")[1].split(":")[0]
            status, reply = google(model, body)
        elif path.endswith("/conversations"):
            status, reply = conversation(model, body)
        elif path.endswith("/responses"):
            status, reply = responses(model, body)
        elif path.endswith("/messages"):
            status, reply = anthropic(model, body)
        else:
            status, reply = chat(vendor, model, body)
        sent = {
            key: value
            for key, value in body.items()
            if key not in ("messages", "input", "contents", "model")
        }
        LOG.append(
            {
                "path": path,
                "status": status,
                "model": model,
                "sent": sent,
                "refusal": reply.get("error", reply)
                if status != 200
                else reply.get("error")
                if isinstance(reply, dict)
                else None,
                "cut": any(
                    mark in str(reply)
                    for mark in ("'length'", "'MAX_TOKENS'", "'max_output_tokens'")
                ),
            }
        )
        self.send(status, reply)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    given = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Handler)
    server.daemon_threads = True
    if given.port_file:
        Path(given.port_file).write_text(str(server.server_port))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
