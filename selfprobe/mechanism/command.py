"""`selfprobe mechanism …`."""

import click

from selfprobe import options
from selfprobe.mechanism.induce_command import induce
from selfprobe.study import commands


@click.group(cls=options.Group, studies=lambda: commands("lens", "attention", "patch"))
def mechanism() -> None:
    """Why models can introspect: lens, attention, patching and induction (paper 003, section 5)."""


mechanism.add_command(induce)
