"""Inspect's logs, for everything that reads them: finding, reading, refusing and naming.

A log that cannot be read stops nobody: it is set aside with its name and the reason. Which log
counts is decided in one place (`runs`): logs with one `Identity` are the same measurement, and
every study selects by it.

`header` has what a log's header says, `finding` which logs are there, `reading` their samples,
`identity` what makes two logs one measurement, `run` which of them counts, `rows` their decisions.
"""

from selfprobe.logs.finding import CANNOT as CANNOT
from selfprobe.logs.finding import ReadableLogs as ReadableLogs
from selfprobe.logs.finding import first_of as first_of
from selfprobe.logs.finding import logs_in as logs_in
from selfprobe.logs.finding import no_logs_text as no_logs_text
from selfprobe.logs.finding import none_found as none_found
from selfprobe.logs.finding import readable_logs as readable_logs
from selfprobe.logs.finding import restore as restore
from selfprobe.logs.header import CUT_METRIC as CUT_METRIC
from selfprobe.logs.header import LEFT_OUT as LEFT_OUT
from selfprobe.logs.header import about_of as about_of
from selfprobe.logs.header import args_of as args_of
from selfprobe.logs.header import counted as counted
from selfprobe.logs.header import cut_in as cut_in
from selfprobe.logs.header import effort_of as effort_of
from selfprobe.logs.header import informed_of as informed_of
from selfprobe.logs.header import is_whole as is_whole
from selfprobe.logs.header import item_count as item_count
from selfprobe.logs.header import metrics_in as metrics_in
from selfprobe.logs.header import missing_samples as missing_samples
from selfprobe.logs.header import planned_samples as planned_samples
from selfprobe.logs.header import roles_of as roles_of
from selfprobe.logs.header import short_task as short_task
from selfprobe.logs.header import target_of as target_of
from selfprobe.logs.header import task_of as task_of
from selfprobe.logs.header import unscored_in as unscored_in
from selfprobe.logs.identity import HOW_CALLED as HOW_CALLED
from selfprobe.logs.identity import Identity as Identity
from selfprobe.logs.identity import SettingPairs as SettingPairs
from selfprobe.logs.identity import arguments_of as arguments_of
from selfprobe.logs.identity import as_typed as as_typed
from selfprobe.logs.identity import differing as differing
from selfprobe.logs.identity import identified as identified
from selfprobe.logs.identity import identity_of as identity_of
from selfprobe.logs.identity import other_version as other_version
from selfprobe.logs.identity import task_defaults as task_defaults
from selfprobe.logs.identity import titles as titles
from selfprobe.logs.judged import values_of as values_of
from selfprobe.logs.reading import UNREADABLE as UNREADABLE
from selfprobe.logs.reading import cause as cause
from selfprobe.logs.reading import header_of as header_of
from selfprobe.logs.reading import in_thread as in_thread
from selfprobe.logs.reading import invalidated_in as invalidated_in
from selfprobe.logs.reading import question_of as question_of
from selfprobe.logs.reading import samples as samples
from selfprobe.logs.reading import summaries as summaries
from selfprobe.logs.reading import token_count as token_count
from selfprobe.logs.reading import transcripts as transcripts
from selfprobe.logs.reading import valid_samples as valid_samples
from selfprobe.logs.reading import whole_sample as whole_sample
from selfprobe.logs.reading import without_request as without_request
from selfprobe.logs.rows import decision_columns as decision_columns
from selfprobe.logs.rows import decisions as decisions
from selfprobe.logs.rows import item_decisions as item_decisions
from selfprobe.logs.rows import read_best as read_best
from selfprobe.logs.run import Run as Run
from selfprobe.logs.run import Runs as Runs
from selfprobe.logs.run import once as once
from selfprobe.logs.run import runs as runs
