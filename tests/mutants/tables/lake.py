"""Mutants of the lake: commits that are repeated or raced, tables that somebody changed, and the order of steps."""

from tests.mutants.mutant import in_file

UNIT = "tests/unit/core/aggregation"
PUBLISH = f"{UNIT}/test_publish.py {UNIT}/test_publish_rows.py"

MUTANTS = (
    *in_file(
        "core/aggregation/publish.py",
        PUBLISH,
        ("a run is committed again", "if last is not None and last.number >= run.number:", "if False:"),
        (
            "a change is committed to a table at a different cut",
            "(_state(standing, last).cut == run.cut_from and fits(standing, change))",
            "fits(standing, change)",
        ),
        (
            "files that are gone are committed",
            "or lake.lacks(table, change.added):",
            "or False:",
        ),
        (
            "a lake that is ahead of a restored database is trusted",
            "return found[0] if found and found[0].number == standing.run else None",
            "return replace(found[0], number=standing.run) if found else None",
        ),
        (
            "rows are committed to the lake before their run is marked",
            "if not run.committed_slices and not store.mark_lake(run):",
            "if run.number < 0:",
        ),
        (
            "the rows are committed before the removed ones",
            "return (removed_of(job), table_of(job))",
            "return (table_of(job), removed_of(job))",
        ),
        (
            "a fault of one file is taken for a commit",
            "            return False\n        if lake.commit(",
            "            return True\n        if lake.commit(",
        ),
    ),
    *in_file(
        "core/aggregation/lake.py",
        PUBLISH,
        ("a change may remove files that are gone", "return set(change.removed) <= {", "return set() <= {"),
        (
            "a change may have different columns",
            "if standing.version >= 0 and dict(standing.columns) != dict(change.columns):",
            "if standing.version < -1:",
        ),
    ),
    *in_file(
        "core/remote/spark/delta.py",
        PUBLISH,
        (
            "a commit is rebased over others",
            "return CommitProperties(dict(mark.facts), max_commit_retries=0, app_transactions=[transaction])",
            "return CommitProperties(dict(mark.facts), app_transactions=[transaction])",
        ),
        (
            "the table is opened at its newest version",
            "found = self._open(table, standing.version)",
            "found = self._open(table)",
        ),
        (
            "a table of a different writer counts as the app's",
            "            if run is None:\n",
            "            run = run or 0\n            if run < 0:\n",
        ),
        (
            "a whole table keeps its old files",
            'mode = "overwrite" if change.is_whole else "append"',
            'mode = "append"',
        ),
    ),
    *in_file(
        "core/aggregation/maintenance.py",
        "tests/unit/handlers/test_lake.py",
        (
            "tables are compacted while a run is open",
            "if own.store.read_standing(job).open_run is not None:",
            "if own.store is None:",
        ),
        (
            "tables of somebody else are compacted",
            "        own.lake.read_table(table, job)  # refuses a table that is not ours\n",
            "",
        ),
    ),
)
