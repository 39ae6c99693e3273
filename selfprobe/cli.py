"""The `selfprobe` command."""

import click


@click.group()
@click.version_option(package_name="selfprobe")
def main() -> None:
    """Measure what a language model knows about itself."""
