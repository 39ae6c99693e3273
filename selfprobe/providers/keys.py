"""Environment variables that hold the keys of vendors. Nothing of Inspect is imported, and no client
is opened.
"""

import os
from collections.abc import Mapping
from typing import Any

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "cloudflare": ("CLOUDFLARE_API_TOKEN", "CLOUDFLARE_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks": ("FIREWORKS_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_USE_ADC"),
    "grok": ("XAI_API_KEY", "GROK_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "hf-inference-providers": ("HF_TOKEN",),
    "meta": ("META_API_KEY", "MODEL_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "perplexity": ("PERPLEXITY_API_KEY",),
    "sambanova": ("SAMBANOVA_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
}
"""Provider → variables of which one is enough; the first is the one to name."""

CLOUDS = ("azure", "bedrock", "vertex")
"""Second parts of names such as `openai/azure/gpt-5.4`, whose credentials stand elsewhere."""

CREDENTIAL_ARGUMENTS = frozenset({"api_key", "use_adc", "credentials"})
"""Model arguments in place of a variable."""


def key_variables(model_name: str) -> tuple[str, ...]:
    """The variables of which a model needs one; none where it needs no key, or nobody knows.

    >>> key_variables("openai-api/my-server/llama"), key_variables("planted/ada")
    (('MY_SERVER_API_KEY',), ())
    """
    provider, _, model = model_name.partition("/")
    service = model.partition("/")[0]
    if provider == "openai-api":
        return (f"{service.upper().replace('-', '_')}_API_KEY",)
    if service in CLOUDS:
        return ()
    return KEY_VARIABLES.get(provider, ())


def missing_key(model_name: str, args: Mapping[str, Any]) -> str:
    """The variable that a model needs and that is not set; "" where nothing is missing.

    Args:
        model_name: Name of the model in Inspect.
        args: Arguments that it is opened with.
    """
    variables = key_variables(model_name)
    if not variables or not CREDENTIAL_ARGUMENTS.isdisjoint(args):
        return ""
    if any(os.environ.get(variable) for variable in variables):
        return ""
    return variables[0]


def missing_keys_text(models_by_variable: Mapping[str, list[str]]) -> str:
    """Variables, each with the models that need it.

    >>> missing_keys_text({"OPENAI_API_KEY": ["openai/a", "openai/b"]})
    'OPENAI_API_KEY (openai/a, openai/b)'
    """
    texts = [f"{name} ({', '.join(models)})" for name, models in models_by_variable.items()]
    return ", ".join(texts)
