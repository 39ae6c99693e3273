"""Texts: what a reply means, which name is nearest, what is safe to show."""
