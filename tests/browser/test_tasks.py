"""The tasks on the operator's page: replays, erasures, purges, and the runs of the aggregation."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.browser.conftest import HOSTILE, Run, reading, registration
from tests.browser.tab import (
    Picture,
    boxes,
    confirmed,
    order,
    portraits,
    seen,
    show,
    with_aggregation,
)
from tests.patience import allowed

if TYPE_CHECKING:
    from playwright.sync_api import Page

STATUS, RUNS = "#task-status .badge", "table[aria-label='Aggregation runs']"


def ask(
    page: "Page", partitions: str = "", first: str = "", last: str = "", reason: str = "a mended transform"
) -> None:
    page.locator("section[aria-label='New replay'] details").evaluate("(one) => { one.open = true }")
    page.fill("input[name=partitions]", partitions)
    page.select_option("select[name=way]", "sequence_number" if first else "")
    if first:
        page.fill("input[name=first]", first)
        page.fill("input[name=last]", last)
    else:
        assert page.locator("input[name=first]").is_hidden()
    page.fill("input[name=reason]", reason)
    page.click("button:text-is('Dry run')")


def test_from_a_poisoned_batch_to_a_discarded_letter_and_a_committed_replay(
    page: "Page", run: Run, picture: Picture
) -> None:
    run.feed("9", reading(9, 50), reading(9, 51), b"{poison", b"{poison")
    lost = "sensor_reading WHERE partition_id = '9' AND sequence_number = 5"
    run.rows(f"CREATE TABLE lost AS SELECT * FROM {lost}")
    run.rows(f"DELETE FROM {lost}")
    run.rows("UPDATE sensor_reading SET state = 'idle' WHERE partition_id = '9' AND sequence_number = 6")
    show(page, "#/letters?partition_id=9")
    page.click("table[aria-label='Letters by cause'] button.grave")
    order(page, "2", "grave")
    page.wait_for_selector("#notice:has-text('2 letters discarded')")
    show(page, "#/tasks")
    ask(page, "9")
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    assert page.inner_text("#task-status").endswith("2 of 45 events would change: 1 row added, 1 row changed.")
    said = page.inner_text("#failing ~ p")
    assert said.startswith("Nothing has been changed. If this is what you expect, replay it: ")
    assert said.endswith(" Scope: partition 9, sequence numbers 0 to 44.")
    page.wait_for_selector("table[aria-label='Changes by column'] tbody tr:nth-child(2)")
    page.click("summary:text-is('Event by event')")
    told = page.locator("table[aria-label=Differences] > tbody > tr").all_inner_texts()
    assert len(told) == 2
    assert "9 / 5" in told[0]
    assert "added sensor_reading" in told[0]
    changed = page.locator("table.diff[aria-label='changed sensor_reading'] tbody tr")
    assert changed.locator("th, td").all_inner_texts() == ["state", "idle", "active"]
    summed = page.locator("table[aria-label='Changes by column'] tbody tr").all_inner_texts()
    column, added = sorted(" ".join(one.split()) for one in summed)
    assert column == "sensor_reading column state 1 idle → active"
    assert added.startswith("sensor_reading whole rows, added 1 home_id H")
    picture(page, "ops-replay", seen="section[aria-label='What would change']")
    portraits(page, "task-dry-run")
    stored = "SELECT COUNT(*), COUNT(DISTINCT state) FROM sensor_reading WHERE partition_id = '9'"
    assert run.rows(stored) == [(41, 2)]
    run.rows("INSERT INTO sensor_reading SELECT * FROM lost")  # a later audit would miss it
    run.rows("DROP TABLE lost")
    page.click("#commit")
    order(page, "45", "main", "idle was wrong")
    page.wait_for_selector("h1:text-is('Replay: partition 9')")
    page.wait_for_selector("#task-status:has-text('43 of 45 events replayed: 85 rows replaced by 85.')")
    page.wait_for_selector("#failing:has-text('They were letters before: nothing new is wrong.')")
    assert page.locator(".badge:text-is('done; 2 letters as before')").count() == 2
    assert page.locator("table[aria-label=Ranges]").count() == 0
    seen(page, "**/api/tasks/*", lambda body: body["counts"].update(rows_retracted=84))  # the row came back above
    portraits(page, "task-replay")
    page.unroute("**/api/tasks/*")
    assert run.rows(stored) == [(42, 1)]
    assert run.status()["ledger_balanced"] is True
    show(page, "#/ledger/9/5")
    page.wait_for_selector("section[aria-label='Step by step'] li:has-text(', a replay in one transaction, had ')")
    show(page, "#/letters/9/44")
    page.wait_for_selector("h1 .badge:has-text('discarded')")


def test_a_replay_by_key_is_told_by_the_number_of_its_keys_and_leaves_other_events_alone(page: "Page") -> None:
    show(page, "#/tasks?first")
    page.fill("textarea[name=keys]", "nobody\nno one\n")
    ask(page, "13", "0", "40", HOSTILE)
    page.wait_for_selector(f"{STATUS}:has-text('done')")
    page.wait_for_selector("p:has-text('No event of the range has one of these partition keys.')")
    assert page.inner_text("#task-status").endswith("None of 0 events would change.")
    scope = "nothing to do. Scope: partition 13, sequence numbers 0 to 40, 2 partition keys. No event"
    assert scope in page.inner_text("#task-status ~ p")
    page.click("summary:has-text('All figures')")
    told = " ".join(page.inner_text("main").split())
    assert "Events of other keys, left alone 41" in told
    assert "nobody" not in told
    assert HOSTILE in page.inner_text("main")
    assert page.evaluate("window.hacked") is None
    assert page.locator("#commit").count() == 0


def test_a_replay_is_paused_resumed_and_goes_through_and_one_is_cancelled_only_after_a_reason(
    page: "Page", run: Run
) -> None:
    show(page, "#/tasks")
    status = run.status()
    page.route("**/api/status", lambda route: route.fulfill(json=status))  # the app would wait for the hub
    with run.halted_hub():
        ask(page, "13", "0", "40", "to be paused")
        page.wait_for_selector(f"{STATUS}:has-text('running')")
        task = page.evaluate("location.hash")
        show(page, "#/tasks")
        row = page.locator("table[aria-label='Running and paused'] tbody tr:has-text('to be paused')")
        row.locator("progress").wait_for()
        assert row.locator("td[data-label=Progress]").inner_text() == "0 of 41 events"
        row.locator("a:text-is('Replay, dry run')").click()
        page.wait_for_url(f"**{task}")
        portraits(page, "task-running")
        confirmed(page, "Pause the dry run …", "the night shift")
        page.wait_for_selector(f"{STATUS}:has-text('paused')")
        page.wait_for_selector("#stands:has-text(': “the night shift”. It goes on only when somebody resumes it.')")
        portraits(page, "task-paused")
    confirmed(page, "Resume the dry run …", "the morning shift")
    page.wait_for_selector(f"{STATUS}:has-text('done')", timeout=allowed(60_000))
    page.wait_for_selector("#task-status:has-text('None of 41 events would change.')")
    assert page.locator("#commit").count() == 0, "there is nothing to replay for good"
    show(page, "#/tasks")
    with run.halted_hub():
        ask(page, "11", "0", "40", "to be cancelled")
        page.wait_for_selector(f"{STATUS}:has-text('running')")
        page.click("button:text-is('Cancel the dry run …')")
        assert page.is_disabled("dialog button:text-is('Cancel the task')")
        page.keyboard.press("Escape")
        confirmed(page, "Cancel the dry run …", "asked by mistake")
        page.wait_for_selector(f"{STATUS}:has-text('cancelled')")
    assert page.locator("button:has-text('Pause'), #commit").count() == 0


def test_the_list_of_tasks_comes_first_and_says_how_fast_a_running_one_is_and_how_long_it_takes(page: "Page") -> None:
    """Half of 4,000 letters were retried in 50 s, a part of four of a purge in 90 s, and a retry is paused."""
    here = datetime.now(UTC)
    earlier, since, now = (f"{here + timedelta(seconds=by):%Y-%m-%dT%H:%M:%SZ}" for by in (-90, -50, 0))
    task: dict[str, Any] = {"started_at": since, "requested_at": since, "updated_at": now, "ended_at": None}
    task.update(status="running", reason="the new transform is deployed", dry_run=False, history=[], fault=None)
    old = {"started_at": earlier, "requested_at": earlier}

    def running(body: Any) -> None:
        of = {**body["tasks"][0], **task, "kind": "redrive", "move": "retry", "outcome": None}
        pause = {"move": "pause", "at": since, "by": "unverified (key holder)", "why": "too much load at the peak"}
        paused = {"status": "paused", "filter": {"partition_id": "3"}, "history": [pause]}
        body["tasks"] = [
            {**of, "done": 2_000, "total": 4_000, "filter": {"partition_id": "5"}},
            {**of, **old, "kind": "purge", "move": None, "done": 1, "total": 4, "rows": 7, "reason": "room is needed"},
            {**of, **old, **paused, "done": 300, "total": 1_200},
        ]
        body["next"] = None

    seen(page, "**/api/tasks?*", running)
    show(page, "#/tasks")
    results = page.locator("table[aria-label='Running and paused'] td[data-label=Progress]")
    results.first.wait_for()
    assert [" ".join(one.split()) for one in results.all_inner_texts()] == [
        "300 of 1,200 letters",
        "2,000 of 4,000 letters, 40 letters a second, about 50 s left",
        "1 of 4 steps, 7 rows deleted so far, about 5 min left",
    ]
    assert page.inner_text("#standing") == "2 tasks are running: the app goes on by itself."
    paused = page.locator(".matter:has-text('1 task is paused until')")
    assert ", partition 3: 300 of 1,200 letters done. Paused " in paused.inner_text()
    assert "reason: “too much load at the peak”" in paused.inner_text()
    paused.locator("button:text-is('Resume …')").click()
    page.wait_for_selector("dialog h2:text-is('Resume: Retry of letters')")
    page.keyboard.press("Escape")
    listed, replay = boxes(page, "table[aria-label='Running and paused']", "section[aria-label='New replay']")
    assert listed["y"] < replay["y"]
    portraits(page, "tasks-running")
    show(page, "#/tasks?partition=3&first=41&last=41")  # what a letter leads to is the form
    page.wait_for_selector("input[name=first]")
    listed, replay = boxes(page, "table[aria-label='Running and paused']", "section[aria-label='New replay']")
    assert replay["y"] < listed["y"]


def test_a_range_that_is_none_is_refused_in_words_and_stays_in_the_form(page: "Page") -> None:
    show(page, "#/tasks?kind=purge&status=failed")
    page.wait_for_selector("main :text-is('No task matches the filter.')")
    show(page, "#/tasks")
    for partitions, first, last, field in (
        ("0", "40", "0", "to: the range is backwards"),
        ("0", "twelve", "", "from.sequence_number: a sequence number has 1 to 19 digits and nothing else"),
        ("nowhere", "", "", "partitions"),
        (HOSTILE, "", "", "partitions[0]: the id of a partition has 1 to 40 letters"),
    ):
        ask(page, partitions, first, last)
        page.wait_for_selector("section[aria-label='New replay'] .fault")
        assert field in page.inner_text("section[aria-label='New replay'] .fault")
        assert page.input_value("input[name=partitions]") == partitions
        page.evaluate("document.querySelector(\"section[aria-label='New replay'] .fault\").remove()")
    assert page.evaluate("window.hacked") is None


def test_erase_is_offered_for_what_was_counted_and_for_nothing_else(page: "Page", run: Run) -> None:
    subject, number = "H000701", 701
    run.feed("15", registration(number), *(reading(number, at) for at in range(5)))  # each is an alert too
    run.feed("15", f"{{poison /{subject}/".encode())
    show(page, "#/tasks?erase")
    erase = page.locator("#erasure-erase")
    assert erase.is_hidden()
    page.fill("textarea[name=subjects]", subject)
    page.fill("form:has(textarea[name=subjects]) input[name=reason]", "she asked for it")
    assert erase.is_hidden()
    page.click("#erasure-count")
    page.wait_for_selector(f"{STATUS}:text-is('counted')")
    assert f"Counted for {subject}." in page.inner_text("main")
    by_table = "home 1, home_alert 5, sensor_reading 5"
    assert page.inner_text("#task-status").endswith("11 rows and 1 letter found.")
    assert page.inner_text("dt:text-is('Table home_alert') + dd") == "5 rows"
    letter = page.locator("section[aria-label='Letters that mention them'] a.whole")
    position, address = letter.inner_text(), str(letter.get_attribute("href"))
    assert position.startswith("15 / ")
    portraits(page, "task-erasure-counted")

    def elsewhere(body: Any) -> None:
        body["letters"] = 1_204
        body["partitions"].append(
            {**body["partitions"][0], "stream": HOSTILE, "partition_id": "3", "next": "41", "last": "4711"}
        )
        body["letters_found"].append({"stream": HOSTILE, "partition_id": "3", "sequence_number": "12"})

    counted = page.evaluate("location.hash")
    seen(page, "**/api/tasks/*", elsewhere)
    show(page, "#/letters")
    show(page, counted)
    page.wait_for_selector("p:text-is('The first 2 of 1,204 letters')")
    page.click("summary:text-is('16 of 17 partitions searched')")
    assert page.locator("p.found").all_inner_texts() == [position, f"{HOSTILE}: 3 / 12"]
    ours, other = page.locator("section[aria-label='Where the app looked'] table").all()
    assert (ours.locator("tbody tr").count(), other.locator("td").all_inner_texts()) == (16, ["3", "up to 40 of 4,711"])
    assert "Elsewhere in the app no other copy" in " ".join(page.inner_text("main").split())
    assert page.evaluate("window.hacked") is None
    page.unroute("**/api/tasks/*")
    page.reload()
    page.click("a.grave:text-is('Erase 11 rows and 1 letter for good …')")
    page.wait_for_selector("#erasure-erase:enabled")
    assert page.locator("main h2").first.inner_text() == "Forget a person"
    page.reload()
    page.wait_for_selector(f"#counted:has-text('11 rows and 1 letter found of {subject} ({by_table}), counted ')")
    page.wait_for_selector("#erasure-erase:text-is('Erase 11 rows and 1 letter for good …')")
    portraits(page, "tasks-erase")
    page.wait_for_selector("#erasure-erase:enabled")
    page.fill("textarea[name=subjects]", f"{subject}\nH000001")
    assert erase.is_hidden()
    page.fill("textarea[name=subjects]", subject)
    erase.click()
    page.wait_for_selector("dialog:has-text('Rows, letters and windows of 1 subject are erased for good')")
    order(page, "1", "grave", "she asked for it")
    page.wait_for_selector("#task-status:has-text('11 rows and 1 letter erased.')")
    page.wait_for_selector(f"{STATUS}:has-text('done in this app; ')")
    portraits(page, "task-erasure-done")
    assert run.get(f"homes?prefix={subject}")["homes"] == []
    assert run.status()["ledger_balanced"]
    show(page, address)
    page.wait_for_selector("#erased:has-text('An erasure blanked this letter.')")
    assert page.locator("[data-form]").count() == 0
    page.click("#erased a")
    page.wait_for_selector("h2:text-is('Erased for good')")
    page.wait_for_selector(
        "p:has-text('only you can look') + ul li:has-text('Event Hubs Capture? Take these events out')"
    )
    show(page, "#/tasks?erase")
    page.wait_for_selector("#erasure-erase", state="hidden")
    assert page.input_value("textarea[name=subjects]") == "", "the page forgets them too"
    show(page, counted)
    page.wait_for_selector("a:text-is('To erase, enter the subjects and count again')")


def test_a_dry_run_counts_the_old_rows_and_is_among_the_tasks_then(page: "Page", run: Run) -> None:
    run.feed("12", reading(12, 55))
    show(page, "#/tasks?purge")
    page.click("#purge-count")
    page.wait_for_selector(f"{STATUS}:text-is('counted')")
    assert "No row is old enough to be deleted" in page.inner_text("#task-status")
    page.wait_for_selector("h2:text-is('Dry run: nothing is deleted')")
    page.wait_for_selector("table[aria-label=Tables] tr:has-text('its newest batch stays')", state="attached")
    assert "a dry run from the operator's page" in page.inner_text("main")
    portraits(page, "task-purge-counted")
    show(page, "#/tasks")
    page.wait_for_selector("tr:has-text('Purge of old rows, dry run') .badge:text-is('counted')")


def test_the_runs_are_listed_with_what_they_came_to_and_a_fault_of_the_quality_is_red(
    aggregated: Run, page: "Page", picture: Picture
) -> None:
    aggregated.feed("14", reading(14, 55))
    show(page, "#/runs")
    page.wait_for_selector("#cut:has-text('not in the sums yet')")
    page.wait_for_selector(f"{RUNS} tbody tr")
    (first,) = page.request.get(f"{aggregated.address}/api/aggregations").json()["runs"]
    found = first["quality"]
    told = {cell.get_attribute("data-label"): cell.inner_text() for cell in page.locator(f"{RUNS} tbody tr td").all()}
    assert (told["Status"], told["Engine"].strip(), told["Rows"]) == (
        "rows differ",
        "local",
        f"{found['rows_ledger'] - 1:,} of {found['rows_ledger']:,}",
    )
    assert (told["Aggregate"], told["Windows"]) == (first["job"], f"{first['windows']:,}")
    assert "Readings" not in told, "words of one app"
    missing = "1 row is missing"
    assert told["Result"] == missing
    lead = page.locator(".matter.bad")
    assert page.locator(f"{RUNS} td[data-label=Status] .badge.bad").count() == 1
    said = f"{missing} in partition\u00a03: do not rely on the sums of home_activity"
    assert lead.locator(".words").inner_text() == said
    assert f": {found['fault']}. " in lead.locator(".detail").inner_text()
    assert lead.locator("li a").get_attribute("href") == "#/tasks?partition=3&first="
    assert "the runs below are from before" in page.inner_text("#no-engine")
    picture(page, "ops-runs")
    show(page, "#/")
    page.click(".matter:has-text('do not rely on the sums of home_activity') a:text-is('Show the run')")
    page.wait_for_selector("#quality")
    figures, late = page.locator("#quality p").all_inner_texts()
    assert figures == f"It added up {found['rows_ledger'] - 1:,} rows. {missing}."
    assert late == "2 rows came late, long after the window of time that they belong to. The sums have them."
    page.click("button:text-is('Audit the rows of partition 3')")
    page.wait_for_selector("#task-status:has-text('1 of 1 partition, ')")
    show(page, "#/")
    page.click("button:text-is('Audit the ledger and the rows')")
    page.wait_for_selector("#task-status:has-text(' of 16 partitions, ')")
    show(page, "#/runs/no-such-run")
    page.wait_for_selector("main .fault")
    assert page.locator("#cut").count() == 1, "the fault took the place of the sums"


def test_the_aggregation_offers_only_what_can_work_and_a_repair_is_ordered_and_withdrawn(
    aggregated: Run, page: "Page"
) -> None:
    show(page, "#/runs")
    page.wait_for_selector("#no-engine:has-text('SPARK_ENGINE')")
    assert page.locator("main .row button").count() == 0
    with_aggregation(page, engine="livy")
    page.reload()
    step = page.locator("button:text-is('Take the next step now')")
    step.wait_for()
    described = page.inner_text(f"#{step.get_attribute('aria-describedby')}")
    assert "plans a run, submits its Spark job" in described
    assert page.locator("main button:text-is('Repair days')").count() == 1
    step.click()
    page.click("dialog form button:not([type=button])")
    page.wait_for_selector("dialog .fault:has-text('SPARK_ENGINE')")  # the app itself has none
    page.keyboard.press("Escape")
    page.click("#remedy button:text-is('Repair days')")
    page.fill("dialog input[name=since_day]", "2026-03-08")
    page.fill("dialog input[name=reason]", "changed by hand")
    page.click("dialog button:text-is('Repair days')")
    page.wait_for_selector("#waiting")
    told = page.inner_text("#waiting")
    assert told.startswith("Waiting for its run: repair of 2026-03-08 to the last day, ordered by ")
    assert told.endswith(": changed by hand")
    confirmed(page, "Withdraw the order", "the wrong days")
    page.wait_for_selector("#waiting", state="detached")
    ordered = page.locator("table[aria-label='Orders about the aggregation'] td[data-label=Order]")
    assert ordered.all_text_contents()[:2] == ["withdraw the repair", "repair of 2026-03-08 to the last day"]


def test_a_run_is_paused_inspected_and_discarded_with_a_reason(page: "Page", aggregated: Run) -> None:
    run_id, failures = "00000000000000aa", "table[aria-label='Attempts of the run']"
    begun, before, planned, at, now = (
        f"{datetime.now(UTC) - timedelta(minutes=by):%Y-%m-%dT%H:%M:%S.000000Z}" for by in (30, 26, 20, 13, 12)
    )
    reached = json.dumps(aggregated.get("aggregations")["reached"])
    aggregated.rows(
        "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status,"
        " planned_at, intent_at, submitted_at, engine_job_id, is_snapshot) SELECT ?, job, run_number + 1, cut, ?,"
        " 'livy', 2, 2, 'submitted', ?, ?, ?, '41', 0 FROM aggregation_cut",
        *(run_id, reached, planned, now, now),
    )
    aggregated.rows(
        "INSERT INTO aggregation_failure VALUES (?, 1, 1, ?, '40', 'its job failed', 'The pool has no free node',"
        " ?, ?)",
        *(run_id, at, f"{HOSTILE} Traceback: the last line", link := "https://spark.example/jobs/40"),
    )

    def whole(body: Any) -> None:  # the first run has no fault
        quality = body["runs"][-1]["quality"]
        quality.update(fault=None, rows_ledger=quality["rows_read"], rows_difference=0, rows_late=0)
        body["runs"][-1].update(planned_at=begun, closed_at=before, engine="livy")
        for one in body["history"][1:]:
            one.update(at=begun)
        body.update(engine="livy", lag_seconds=1560)

    seen(page, "**/api/aggregations?*", whole)
    show(page, "#/runs")
    page.wait_for_selector(f"{failures} td:has-text('its job failed')")
    said = ": its job failed. The Spark engine said: The pool has no free node."
    late = "The sums of home_activity are late: run 2"
    assert page.inner_text("#failing").endswith(said)
    assert page.inner_text(".matter .words") == f"{late} tries again, with attempt 2 of 5"
    assert " not in the sums yet: run 2, which is under way, adds " in page.inner_text("#cut")
    assert page.locator(f"{failures} tbody tr").first.inner_text().startswith("12 min ago\t2\tunder way since then")
    portraits(page, "ops-run-open")
    aggregated.rows("UPDATE aggregation_failure SET link = 'javascript:alert(1)'")
    page.wait_for_selector(f"{failures} td:has-text('javascript:')")
    assert page.locator(f"{failures} a").count() == 0  # only a web address is a link
    page.click(f"{failures} summary")
    assert HOSTILE in page.inner_text(f"{failures} pre:has-text('the last line')")
    confirmed(page, "Pause", "peak hours")
    page.wait_for_selector("#paused:has-text('peak hours')")
    confirmed(page, "Resume", "they are over")
    page.wait_for_selector("#paused", state="detached")
    aggregated.rows("UPDATE aggregation_failure SET link = ?", link)
    confirmed(page, "Discard the run", "its job hangs")
    page.wait_for_selector(f"{RUNS} td:has-text('Discarded: “its job hangs”')")
    page.wait_for_selector(f".matter .words:text-is('{late} was discarded')")
    page.wait_for_selector(f"{failures} td:has-text('the run was discarded by an operator with the access key: its')")
    told = page.inner_text(".matter")
    assert ", in attempt 2, whose job 41 had run for 12 min: “its job hangs”." in told
    assert f"{said}\n" in told and "\nSee that the Spark pool has free nodes: end other jobs, or add nodes." in told
    assert page.locator(".matter ol li button").all_inner_texts() == ["Take the next step now"]
    assert page.inner_text("#cut").startswith("No: ")
    portraits(page, "ops-run-failed")
    assert aggregated.rows("SELECT status FROM aggregation_run WHERE run_id = ?", run_id) == [("failed",)]
    for table in ("aggregation_failure", "aggregation_run"):
        aggregated.rows(f"DELETE FROM {table} WHERE run_id = ?", run_id)
