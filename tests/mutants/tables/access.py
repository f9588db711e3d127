"""Mutants of access: the trust in headers, the rights and limits of each level, and the check of a link."""

from tests.mutants.mutant import in_file

HANDLERS = "tests/unit/handlers"
ACCESS = f"{HANDLERS}/test_access.py"

MUTANTS = (
    *in_file(
        "handlers/api.py",
        f"{HANDLERS}/test_api.py",
        ("monitors may read letters", '"dead-letters", READING', '"dead-letters", COUNTING'),
        ("a reader may discard", '"redrives", CHANGING', '"redrives", READING'),
    ),
    *in_file(
        "examples/home_security/routes.py",
        f"{HANDLERS}/test_api.py",
        ("the role for reading shows a home", 'activity", REVEALING', 'activity", OPEN'),
        ("anybody makes links", '"homes/{home_id}/links", LINKING', '"homes/{home_id}/links", OPEN'),
        ("the home of a link needs no link", 'own-activity", linked(LINK)', 'own-activity", OPEN'),
    ),
    *in_file(
        "handlers/room.py",
        f"{HANDLERS}/test_room.py",
        ("a room takes an address of the app", "    if faults:\n", "    if not own:\n"),
        (
            "a fault in the routes of a room is silent",
            "if isinstance(error, ModuleNotFoundError) and ",
            "if isinstance(error, Exception) or ",
        ),
        ("a room takes requests of the app by an address with a placeholder", 'b.startswith("{")', "False"),
        ("a room takes requests of the app by an address in capitals", "other.lower().split", "other.split"),
    ),
    *in_file(
        "core/api/route.py",
        f"{HANDLERS}/test_api.py",
        ("the role for reading opens a revealing route", 'role="Hubledger.Reveal"', 'role="Hubledger.Read"'),
        ("a change needs no key", 'Level("changing", needs_key=True', 'Level("changing", needs_key=False'),
    ),
    *in_file(
        "handlers/web/identity.py",
        f"{HANDLERS}/web/test_identity.py",
        ("a forged header is trusted", "    if not _is_trusted(headers, access):\n        return UNVERIFIED\n", ""),
        ("a front door is trusted without its id", "return bool(door) and compare_digest(", "return bool(door) or ("),
        (
            "a header that contains the front door's id is trusted",
            'compare_digest(headers.get(FRONT_DOOR, "").lower().encode("utf-8", "replace"), door)',
            'door in headers.get(FRONT_DOOR, "").lower().encode("utf-8", "replace")',
        ),
        ("the end of a claim's type makes a role", "if claim.typ in ROLE_CLAIMS)", 'if claim.typ.endswith("/role"))'),
        ("a similar type of claim makes a role", 'ROLE_CLAIMS = {"roles",', 'ROLE_CLAIMS = {"role", "roles",'),
        ("an object id of any form is recorded", " and GUID.fullmatch(one.val)", ""),
        ("an object id is not recorded", "ids[0] if ids else", "'' if ids else"),
        ("a header that is not ASCII raises", "except (ValueError, ", "except (KeyError, "),
        ("a header that is nested deep raises", "except (ValueError, RecursionError):", "except ValueError:"),
        (
            "a header of any length is read",
            "if len(principal) > LARGEST_PRINCIPAL:",
            "if principal == LARGEST_PRINCIPAL:",
        ),
        ("a line break stays in a name", "if letter.isprintable() and", "if"),
        ("a name is longer than its column", "[:MOST_NAME].strip()", ".strip()"),
        ("a letter beyond U+FFFF stays in a name", ' and letter <= "\\uffff"', ""),
        ("a role is never required", "and role not in caller.roles:", "and role is caller.roles:"),
        ("a role is required without sign-in", "if access.signs_in and role and", "if role and"),
        ("the role for changes opens every level", "if level is CHANGING else None) or", "if level else None) or"),
        ("the setting does not rename the role for changes", "access.operator_role if level", "None if level"),
    ),
    *in_file(
        "core/api/links.py",
        f"{HANDLERS}/web/test_links.py",
        ("a link opens every home", '{link.purpose}\\n{subject}\\n{expires}"', '{link.purpose}\\n{expires}"'),
        ("the end of a link is not signed", '{link.purpose}\\n{subject}\\n{expires}"', '{link.purpose}\\n{subject}"'),
        ("a link has no purpose", 'f"{link.purpose}\\n{subject}', 'f"{subject}'),
        ("a link never ends", "if now >= datetime.fromtimestamp(int(expires), UTC):", "if not expires:"),
        ("a link works a moment too long", "if now >= datetime", "if now > datetime"),
        ("any signature is accepted", "if form is None or not any(right):", "if form is None:"),
        ("all secrets must have signed", "not any(right)", "not all(right)"),
        ("a link may have more text after it", "_LINK.fullmatch(given)", "_LINK.match(given)"),
        (
            "a link has several texts",
            "hmac.compare_digest(_signature(link, subject, expires, secret), signature)",
            "_signature(link, subject, expires, secret)[:42] == signature[:42]",
        ),
        (
            "a forged link gets the answer of an ended one",
            "if form is None or not any(right):",
            "if form is None or (not any(right) and now < datetime.fromtimestamp(int(expires), UTC)):",
        ),
        ("the secret is not used", "hmac.digest(key, signed", "hmac.digest(signed, signed"),
    ),
    *in_file(
        "handlers/web/answering.py",
        ACCESS,
        ("no caller is checked", "    _admit(req, route, caller, at)\n", ""),
        (
            "a link is not required",
            "    if (link := route.level.link) is not None:",
            "    if (link := route.level.link) is not None and not req.headers:",
        ),
        (
            "a revealing answer is not logged",
            "if route.level is REVEALING or route.level.link is not None:",
            "if route.level.link is not None:",
        ),
        (
            "the home of a link is not logged",
            "if route.level is REVEALING or route.level.link is not None:",
            "if route.level is REVEALING:",
        ),
        ("a log line lacks the letter", "**_logged(call.path), ", ""),
        ("a log line lacks the caller", '{"who": call.who, **', '{"who": "", **'),
        ("a text of any length or form is logged", "name: clipped(str(value)) for", "name: str(value) for"),
        ("an open route needs the settings", "AccessPolicy() if route.level is OPEN else ", ""),
    ),
    *in_file(
        "handlers/operations/letters.py",
        ACCESS,
        (
            "a reader sees errors",
            "replace(letter, error=None, partition_key=None)",
            "replace(letter, partition_key=None)",
        ),
        (
            "a reader sees partition keys",
            "replace(letter, error=None, partition_key=None)",
            "replace(letter, error=None)",
        ),
        ("a reader sees errors of attempts", "replace(one, error=None) for one", "replace(one) for one"),
        ("a reader sees properties", "letter=letter, properties=None, history", "letter=letter, history"),
        ("a reader sees the error of a sample", "sample=hide_letter(group.sample)", "sample=group.sample"),
        ("a reader filters by partition key", "class LettersQuery(HidingChoice):", "class LettersQuery(LetterChoice):"),
    ),
    *in_file(
        "core/aggregation/store/commits.py",
        f"{HANDLERS}/test_access.py",
        (
            "to look at an aggregation opens its cut",
            "        found = decoder(_CutRow)(cut[0]) if cut else",
            '        write(self._database, job, "open_cut", job=job, levels="")\n'
            "        found = decoder(_CutRow)(cut[0]) if cut else",
        ),
    ),
    *in_file(
        "core/aggregation/store/commits.py",
        "tests/unit/core/aggregation/test_tick.py",
        ("the first run has no cut", "if run.number == 1:", "if run.number == 0:"),
    ),
    *in_file(
        "handlers/operations/letters.py",
        f"{HANDLERS}/operations/test_causes.py",
        ("a reader sees the values of a cause", "examples=None, ", ""),
        (
            "a filter by one value chooses its whole cause",
            "fingerprint=given.fingerprint,",
            "fingerprint=given.fingerprint and given.fingerprint[:16],",
        ),
    ),
    *in_file(
        "handlers/operations/ledger.py",
        ACCESS,
        ("a reader sees rows", "replace(found, rows=None, letter=letter,", "replace(found, letter=letter,"),
        ("a reader sees the letter of a number", "hide_letter(found.letter)", "found.letter"),
        ("a reader sees the attempts of a number", "history=hide_history(found.history))", "history=found.history)"),
    ),
    *in_file(
        "handlers/operations/aggregation_shapes.py",
        "tests/unit/handlers/operations/test_run_quality.py",
        ("a reader sees the largest key", "replace(shown.quality, largest_key=None)", "replace(shown.quality)"),
    ),
    *in_file(
        "handlers/operations/revealed.py",
        "tests/unit/handlers/operations/test_run_quality.py",
        (
            "the revealing route hides the largest key",
            "replace(detail_of(run), run=revealed_run(run))",
            "replace(detail_of(run))",
        ),
    ),
    *in_file(
        "handlers/operations/revealed.py",
        "tests/unit/handlers/operations/test_letter_bodies.py",
        ("a body of a different hub is shown", "event.enqueued_at != letter.enqueued_at", "not event.body"),
    ),
    *in_file(
        "handlers/operations/audit.py",
        "tests/unit/handlers/operations/test_audit.py",
        (
            "audits at the same time read the ledger",
            "not _auditing.acquire(blocking=False):",
            "_auditing.acquire(timeout=0) == 7:",
        ),
    ),
    *in_file(
        "handlers/operations/stops.py",
        ACCESS,
        (
            "a monitor sees the errors of an outage",
            '{"incarnation", "held", "trigger"}',
            '{"incarnation", "held", "trigger", "outage"}',
        ),
        (
            "a monitor sees the words of the database",
            '{"incarnation", "held", "trigger"}',
            '{"incarnation", "held", "trigger", "store"}',
        ),
        (
            "the reason of a held partition is hidden",
            '{"incarnation", "held", "trigger"}',
            '{"incarnation", "trigger"}',
        ),
    ),
    *in_file(
        "core/api/links.py",
        ACCESS,
        ("the former secret signs", "self.secrets[0]", "self.secrets[-1]"),
    ),
    *in_file(
        "examples/home_security/views.py",
        ACCESS,
        ("a missing home gets a link", "find_home(home_id) is None", "find_home(home_id) is call"),
    ),
    *in_file(
        "core/model/access.py",
        "tests/unit/core/test_settings.py",
        (
            "a role is accepted without sign-in",
            "if self.operator_role is not None and not self.signs_in:",
            "if False:",
        ),
        (
            "a front door of any name is taken",
            "if self.front_door is not None and not",
            "if self.front_door is None and not",
        ),
        (
            "a front door does not sign callers in",
            "return self.platform_signs_in or self.front_door is not None",
            "return self.platform_signs_in",
        ),
        ("a short secret signs", "< LEAST_SECRET:", "< 8:"),
        (
            "the text of an unresolved reference signs",
            'if secret.startswith("@Microsoft.KeyVault("):',
            'if secret.startswith("@@"):',
        ),
        (
            "a secret is printed",
            'link_secret: str = field(default="", repr=False)\n    former',
            'link_secret: str = field(default="")\n    former',
        ),
        ("the former secret signs alone", "if self.former_link_secret and not self.link_secret:", "if False:"),
    ),
)
