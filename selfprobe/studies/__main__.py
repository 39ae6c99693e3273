"""`python -m selfprobe.studies`: note the options of every study, so that help and wrong calls import nothing."""

import json

from selfprobe.studies import listed
from selfprobe.study import STUDIES_FILE

if __name__ == "__main__":
    STUDIES_FILE.write_text(json.dumps(listed(), indent=1) + "\n", encoding="utf-8")
