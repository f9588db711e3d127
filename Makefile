# Everything sets itself up: `make run` and `make demo` install what the local run needs, `make test` and `make check` the rest.
.DEFAULT_GOAL := help
.PHONY: help setup run demo serve func real-host needs-java test test-all test-spark soak check-room test-sqlserver test-spark41 scriptdom azurite javascript screenshots check check-fresh check-deployed check-types check-texts check-infra check-bicep simulate explore house smoke format bench bench-full bench-readme docs clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

EVENTS ?= 20000
KILL ?= 0
CHAOS ?= 0
UNDELIVERABLE ?= 0
LIKE_AZURE ?= 0
AGGREGATE ?= 0
IOT ?= 0
KEEP ?= 0
FOLDER ?=
PORT ?=
HUB_PORT ?=
WORKERS ?= 0
HOMES ?=
RATE ?=
TRANSFORM ?=
EVENTS_FROM ?=
KEY ?=
STORE ?=
override export STORE := $(value STORE)
BASE ?=
HUB ?=
ONLY ?=
STORIES ?= 0
SEED ?= 1
SEEDS ?= 20000
FIRST ?= 0

# A setting that no target of the call reads would be ignored without a word: `make serve EVENTS=5`.
OF_DEMO := EVENTS KILL CHAOS UNDELIVERABLE LIKE_AZURE AGGREGATE IOT KEEP PORT WORKERS HOMES RATE TRANSFORM EVENTS_FROM KEY STORE SEED
SETTINGS_OF_demo := $(OF_DEMO)
SETTINGS_OF_run := HOMES RATE PORT HUB_PORT TRANSFORM EVENTS_FROM KEY STORE SEED
SETTINGS_OF_serve := FOLDER PORT
SETTINGS_OF_real-host := EVENTS BASE HUB STORE
SETTINGS_OF_simulate := SEEDS FIRST
SETTINGS_OF_mutants := ONLY
SETTINGS_OF_explore := ONLY STORIES
SETTINGS_OF_check-room := TRANSFORM
SETTINGS_OF_func := STORE
SETTINGS_OF_bench := STORE
SETTINGS_OF_bench-full := STORE
SETTINGS := $(sort $(OF_DEMO) HUB_PORT FOLDER BASE HUB ONLY STORIES SEEDS FIRST)
GIVEN := $(foreach name,$(SETTINGS),$(if $(filter command,$(origin $(name))),$(name)))
UNREAD := $(filter-out $(foreach goal,$(MAKECMDGOALS),$(SETTINGS_OF_$(goal))),$(GIVEN))
ifneq ($(UNREAD),)
READERS := $(foreach goal,demo run serve real-host simulate explore mutants check-room func bench,$(if $(filter $(firstword $(UNREAD)),$(SETTINGS_OF_$(goal))),$(goal)))
$(error $(firstword $(UNREAD)): make $(or $(firstword $(MAKECMDGOALS)),help) does not read it; it is a setting of: $(strip $(READERS)))
endif

help: ## Show the targets and their settings
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  STORE=\"<ODBC string>\" for run, demo, bench and func: the store is on SQL Server (docs/run.md)"
	@echo "  settings: EVENTS=20000 KILL=0 CHAOS=0 UNDELIVERABLE=0 LIKE_AZURE=0 AGGREGATE=0 IOT=0 KEEP=0 WORKERS=0 HOMES= RATE= SEED=1 for demo; HOMES=100000 RATE=1000 for run; TRANSFORM=home_security, flight_info or apps.orders; EVENTS_FROM=events.jsonl KEY=field for your own events (docs/run.md); PYTHON=python3"

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 to 3.14, or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || { echo "make: Hubledger needs Python 3.11 to 3.14, and $(PYTHON) is $$($(PYTHON) -V 2>&1): name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) has no venv module: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/local.done: requirements.txt local/requirements.txt requirements-cli.txt | $(VENV)/bin/python
	@echo "installing what the local run needs"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r local/requirements.txt
	@touch $@

$(VENV)/dev.done: requirements-dev.txt requirements-mcp.txt infra/hooks/requirements.txt $(VENV)/local.done
	@echo "installing what tests and checks need"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

# Spark is installed where Java is found; without it this says so each time, and the tests of Spark are skipped by name.
JAVA = $(or $(wildcard $(JAVA_HOME)/bin/java),$(shell command -v java))
NO_JAVA = Java is missing, so Spark is left out: apt-get install openjdk-17-jre-headless (or set JAVA_HOME), then make again

$(VENV)/spark.done: jobs/requirements.txt | $(VENV)/dev.done
	@if [ -z "$(JAVA)" ]; then echo "$(NO_JAVA)" >&2; else \
	echo "installing Spark (345 MB, or 489 MB on Python 3.12 and newer)"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r jobs/requirements.txt && touch $@; fi

$(VENV)/spark41/done: jobs/requirements-spark41.txt requirements-dev.txt | $(VENV)/bin/python
	@if [ -z "$(JAVA)" ]; then echo "$(NO_JAVA)" >&2; exit 1; fi
	@echo "installing Spark 4.1 (489 MB)"
	@$(PYTHON) -m venv $(VENV)/spark41
	@$(VENV)/spark41/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -r jobs/requirements-spark41.txt
	@touch $@

$(VENV)/docs.done: requirements-docs.txt | $(VENV)/bin/python
	@echo "installing what the site of docs/ needs"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	@touch $@

PUBLISHED = $(if $(TRANSFORM),--transform "$(TRANSFORM)") $(if $(EVENTS_FROM),--events-from "$(EVENTS_FROM)") $(if $(KEY),--key "$(KEY)")

setup: $(VENV)/local.done ## Install what the commands for your own events need
	@echo "next: bin/hubledger new NAME --from events.jsonl"

run: $(VENV)/local.done ## Run emulator, store, functions host and feed until Ctrl-C: PORT=7071 and HUB_PORT=5672
	@ASKED_BY_MAKE=1 $(BIN)/python -m local.run $(if $(HOMES),--homes $(HOMES)) $(if $(RATE),--rate $(RATE)) $(if $(PORT),--port $(PORT)) $(if $(HUB_PORT),--hub-port $(HUB_PORT)) $(PUBLISHED) --seed $(SEED)

demo: $(VENV)/local.done $(if $(filter-out 0,$(AGGREGATE)),needs-java $(VENV)/spark.done) ## Run the same for EVENTS=20000 and prove the result: KILL=3 kills the host three times, CHAOS=1 breaks more, AGGREGATE=1 adds Spark, a killed job and a replay, IOT=1 sends as an IoT Hub does
	@ASKED_BY_MAKE=1 $(BIN)/python -m local.demo --events $(EVENTS) --kill $(KILL) $(if $(filter-out 0,$(CHAOS)),--chaos) $(if $(filter-out 0,$(UNDELIVERABLE)),--undeliverable $(UNDELIVERABLE)) $(if $(filter-out 0,$(LIKE_AZURE)),--like-azure) $(if $(filter-out 0,$(AGGREGATE)),--aggregate) $(if $(filter-out 0,$(IOT)),--iot) $(if $(filter-out 0,$(KEEP)),--keep) $(if $(PORT),--port $(PORT)) --workers $(WORKERS) $(if $(HOMES),--homes $(HOMES)) $(if $(RATE),--rate $(RATE)) $(PUBLISHED) --seed $(SEED)

needs-java:
	@if [ -z "$(JAVA)" ]; then echo "$(NO_JAVA)" >&2; exit 1; fi

serve: $(VENV)/local.done ## Serve the pages of the last demo until Ctrl-C: FOLDER= and PORT=7071
	@ASKED_BY_MAKE=1 $(BIN)/python -m local.serve $(if $(FOLDER),--folder $(FOLDER)) $(if $(PORT),--port $(PORT))

func: $(VENV)/local.done ## Run the app on Microsoft's host until Ctrl-C, where func and Docker are: .env, services, database, settings, func start
	@$(BIN)/python -m local.func

# Azurite is the storage of Microsoft's host only.
REAL_HOST = $(if $(BASE),--base "$(BASE)" --hub "$(HUB)" --store "$(STORE)") $(if $(filter file,$(origin EVENTS)),,--events $(EVENTS))

real-host: $(VENV)/local.done $(if $(shell command -v func),$(VENV)/azurite/node_modules/.bin/azurite) ## Accept Microsoft's host, where func is, or else ours: events, an undeliverable one, one that kills, redrive, replay, recount; BASE=, HUB= and STORE= name a running app
	@ASKED_BY_MAKE=1 $(BIN)/python -m local.acceptance $(REAL_HOST)

# Most of the slow tests wait for processes of theirs, so more of them run than there are cores. `make check` has tests/repo.
TESTS = $(IN_MEMORY) $(BIN)/python -m pytest -n 4 -rs

test: $(VENV)/dev.done $(VENV)/spark.done ## Run what no change may break: the fast tests, and a proof of each subject from end to end
	@$(TESTS) --ignore=tests/repo -m "(not slow or proof) and not soak" --hypothesis-profile=quick

test-all: $(VENV)/dev.done $(VENV)/spark.done ## Run every test but those of soak; all of Spark's when jobs, aggregation or their tests have changed
	@$(TESTS) --ignore=tests/repo -m "not soak" --durations=50

test-spark: $(VENV)/spark.done ## Run all tests of Spark, and store in tests/spark/passed.txt that these files have passed them
	@$(BIN)/python -m pytest -n 0 -rs tests/spark && $(BIN)/python -m tests.spark.passed

soak: $(VENV)/dev.done $(VENV)/spark.done ## Run what is weekly and before a release: all of Spark, game days, upgrades, the bench, hostile requests at length
	@$(TESTS) -m soak --durations=50

check: $(VENV)/dev.done ## Format, lint, types, import rules, and what the texts say of the code
	@$(BIN)/ruff format --check --quiet . || { echo "make format mends this" >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-types check-texts

# The files of the fast tests lie in memory where it has 2 GB for them: a commit of SQLite then waits for no disk.
IN_MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 {print "TMPDIR=/dev/shm"}')

check-room: TRANSFORM := $(or $(TRANSFORM),examples.home_security)
check-room: $(VENV)/dev.done ## Check the room of TRANSFORM=apps.orders in seconds: its own tests, and the suite of rooms on it
	@room=$$($(BIN)/python -m tests.rooms.found "$(TRANSFORM)") || exit; own=$$(echo $$room | tr . /)/tests; [ -d $$own ] || own=; \
	ROOM=$$room $(IN_MEMORY) $(BIN)/python -m pytest -n 0 -rs --hypothesis-profile=quick tests/rooms --ignore=tests/rooms/test_planted.py $$own

SUITES ?= bookworm trixie forky
check-fresh: ## Follow the pages of a newcomer on bare Debians, where root and debootstrap are: SUITES="bookworm trixie forky"
	@for suite in $(SUITES); do bin/fresh $$suite python3 -m tests.acceptance.tutorial || exit; done

# The golden rows are what the real trigger gave for messages of every kind. The bench takes turns with bare SQL on one machine.
GOLDEN := tests/core/remote tests/handlers tests/local/functions_host
check-deployed: ## Read the golden rows of the trigger and bench the ingest on the deployed Python: on a bare Debian 13, where root and debootstrap are
	@bin/fresh trixie sh -c 'make --silent $(VENV)/dev.done && $(BIN)/python -m pytest -n 0 -rs -m "not slow" $(GOLDEN) && $(BIN)/python -m bench ingest decode'

check-types:
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache > $(VENV)/imports.log 2>&1 || { cat $(VENV)/imports.log; exit 1; }

check-texts:
	@$(IN_MEMORY) $(BIN)/python -m pytest -n 0 --assert=plain -m "not soak" tests/repo

test-spark41: $(VENV)/spark41/done ## Run the tests of the Spark jobs on Spark 4.1
	@$(VENV)/spark41/bin/python -m pytest -rs tests/spark tests/jobs

check-bicep: ## Compile and lint the templates where bicep is on the PATH; any diagnostic fails, because bicep returns 0 for warnings
	@if ! command -v bicep >/dev/null; then \
	  echo "check-bicep: bicep is not on the PATH, so no compiler has read the templates: syntax and policies only"; \
	elif said="$$(bicep build infra/main.bicep --stdout 2>&1 >/dev/null && bicep lint infra/main.bicep 2>&1)" && test -z "$$said"; then \
	  echo "check-bicep: no diagnostic"; \
	else printf '%s\n' "$$said" >&2; exit 1; fi

check-infra: check-bicep $(VENV)/dev.done ## Compile Bicep, print the plan of resources, compare the snapshots, and make the package
	@$(BIN)/python -m tests.infra.plan
	@$(BIN)/python -m tests.infra.snapshots
	@$(BIN)/python -m infra.hooks package --to $(VENV)/package.zip | tail -n 1

simulate: $(VENV)/dev.done ## Run SEEDS=20000 worlds from FIRST=0, in which everything fails, against the oracle, and print the faults by kind
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --first $(FIRST)

explore: $(VENV)/dev.done ## Run every interleaving of the configurations of docs/proof.md; with STORIES=1 plant bugs, and print the shortest schedule of each; ONLY=erasure
	@$(BIN)/python -m tests.exploration --only "$(ONLY)" $(if $(filter 1,$(STORIES)),--stories)

house: | $(VENV)/bin/python ## Print the shape of the code: rooms, floors, cycles, walks, and lines by feature; ROOTS="OLD ." compares checkouts
	@$(BIN)/python -m tests.repo.house $(foreach root,$(ROOTS),--root $(root))

mutants: $(VENV)/dev.done ## Plant known bugs one by one and check that tests kill each; ONLY="part of a name"
	@$(BIN)/python -m tests.mutants $(if $(ONLY),--only "$(ONLY)")

smoke: $(VENV)/dev.done ## Smoke the app at SMOKE_BASE_URL, or one started here (docs/run-with-func.md)
	@$(BIN)/python -m pytest -rs tests/smoke

format: $(VENV)/dev.done ## Format the code and correct the faults that the linter can correct
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

test-sqlserver: $(VENV)/dev.done ## Run the store's contract on the T-SQL server that MSSQL_CONNECTION names, in a separate schema
	@if [ -z "$$MSSQL_CONNECTION" ]; then echo "test-sqlserver: skipped, MSSQL_CONNECTION names no T-SQL server"; \
	else $(BIN)/python -m pytest -rs -k "sqlserver or test_on_server" tests/core tests/sql; fi

# Microsoft's parser for the syntax gate: a DLL in a package of PyPI, under Microsoft's licence, x86-64 Linux only. Never
# needed: without it the gate is sqlfluff.
scriptdom: $(VENV)/scriptdom/done ## Install Microsoft's T-SQL parser, so that the syntax gate of `make test` uses it

$(VENV)/scriptdom/done: | $(VENV)/bin/python
	@echo "installing the T-SQL parser (45 MB)"
	@$(PYTHON) -m venv $(VENV)/scriptdom
	@$(VENV)/scriptdom/bin/python -m pip install --quiet --disable-pip-version-check pythonnet==3.0.5 dotnetcore2==3.1.23
	@$(VENV)/scriptdom/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --dest $(VENV)/scriptdom mssql-cli==1.0.0
	@cd $(VENV)/scriptdom && bin/python -c 'import glob, zipfile; wheel = zipfile.ZipFile(glob.glob("mssql_cli-*.whl")[0]); open("Microsoft.SqlServer.TransactSql.ScriptDom.dll", "wb").write(wheel.read("mssqlcli/mssqltoolsservice/bin/Microsoft.SqlServer.TransactSql.ScriptDom.dll"))'
	@rm $(VENV)/scriptdom/mssql_cli-*.whl
	@touch $@

azurite: $(VENV)/azurite/node_modules/.bin/azurite ## Install Azurite with npm, so that `make test` runs the tests of the host's storage

$(VENV)/azurite/node_modules/.bin/azurite: | $(VENV)/bin/python
	@command -v npm >/dev/null || { echo "make: npm is missing: install Node.js 20 or newer" >&2; exit 1; }
	@echo "installing Azurite (186 MB)"
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/azurite azurite@3.35.0

javascript: $(VENV)/javascript/node_modules/@azure/event-hubs ## Install Microsoft's JavaScript client of Event Hubs with npm, so that `make test-all` runs it on the emulator

$(VENV)/javascript/node_modules/@azure/event-hubs: | $(VENV)/bin/python
	@command -v npm >/dev/null || { echo "make: npm is missing: install Node.js 20 or newer" >&2; exit 1; }
	@echo "installing the JavaScript client of Event Hubs (19 MB)"
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/javascript @azure/event-hubs@6.0.4

screenshots: $(VENV)/dev.done ## Make the pictures of docs/images/ again with Chromium, and of each state in .local-run/screenshots/
	@SCREENSHOTS=1 $(BIN)/python -m pytest -rs tests/browser

# Azurite, for the part `peers`, is installed where npm is found; without it this part says that it is skipped.
OF_BENCH = $(VENV)/local.done $(VENV)/spark.done $(if $(shell command -v npm),$(VENV)/azurite/node_modules/.bin/azurite)

bench: $(OF_BENCH) ## Measure the figures of docs/benchmarks.md in 15 to 30 minutes, and make the pages that show them
	@$(BENCH) $(if $(STORE),sqlserver local peers,--quick); $(THEN_PAGES)

bench-full: $(OF_BENCH) ## Measure all figures of docs/benchmarks.md at their large sizes
	@$(BENCH) --full; $(THEN_PAGES)

bench-readme: $(VENV)/local.done ## Make the pages and pictures of the stored results again
	@$(BIN)/python -m bench.report

# The pages are made whatever the figures are; the exit code is that of the figures.
BENCH = $(BIN)/python -m bench --results bench/results.json
THEN_PAGES = code=$$?; $(BIN)/python -m bench.report && exit $$code

docs: $(VENV)/docs.done ## Build the site of docs/ into .local-run/site; a dead link fails
	@said="$$(NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build 2>&1)" || { printf '%s\n' "$$said" | grep -v '^INFO' >&2; exit 1; }
	@echo "the site is in .local-run/site/index.html"

clean: ## Remove the files of local runs
	@if [ -d .local-run ]; then echo "removing .local-run: $$(du -sh .local-run | cut -f1)"; rm -rf .local-run; else echo "there are no files of local runs"; fi
