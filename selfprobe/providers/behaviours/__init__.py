"""How planted models answer each task's prompts: one module a task, registered on import."""

from selfprobe.providers.behaviours import kth_word

__all__ = ["kth_word"]
