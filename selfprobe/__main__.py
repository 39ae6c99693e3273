"""`python -m selfprobe` is the command `selfprobe`."""

from selfprobe.cli import main

if __name__ == "__main__":
    main(prog_name="selfprobe")
