"""What Inspect finds through the entry point: tasks by name, and the models that need no key."""

from selfprobe.introspect_tasks.kth_word import kth_word
from selfprobe.providers.planted import planted

__all__ = ["kth_word", "planted"]
