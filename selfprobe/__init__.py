"""selfprobe: measures what a language model knows about itself."""
