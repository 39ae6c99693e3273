"""`python -m selfprobe.studies`: note options of studies and settings of planted models: help
imports nothing else.
"""

import json

from selfprobe.providers.names import SETTINGS_FILE
from selfprobe.providers.planted import known_settings
from selfprobe.studies import described_studies
from selfprobe.study import STUDIES_FILE

if __name__ == "__main__":
    STUDIES_FILE.write_text(json.dumps(described_studies(), indent=1) + "\n", encoding="utf-8")
    SETTINGS_FILE.write_text(
        json.dumps(sorted(known_settings()), indent=1) + "\n", encoding="utf-8"
    )
