"""The Dockerfile as plain values, and its policies: each takes the instructions and yields each violation."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

SECRET = re.compile(r"password|secret|token|accountkey|sharedaccess", re.IGNORECASE)
PORT = re.compile(r":(\d+)$")
FINGERPRINT = (
    "BC528686B50D79E339D3721CEB3E94ADBE1229CF"  # of Microsoft's repository: learn.microsoft.com/linux/packages
)


@dataclass(frozen=True)
class Instruction:
    """One instruction, with its continued lines joined, and the stage that it belongs to."""

    name: str
    text: str
    stage: int

    @property
    def words(self) -> list[str]:
        """The words of the exec form; none for the shell form."""
        try:
            return [str(word) for word in json.loads(self.text)]
        except ValueError:
            return []


Policy = Callable[[Sequence[Instruction]], Iterator[str]]


def read(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    found: list[Instruction] = []
    stage = -1
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        stage += name == "FROM"
        if name:
            found.append(Instruction(name, rest.strip(), stage))
    return found


def last(instructions: Sequence[Instruction], name: str) -> Instruction:
    """Return the last instruction of a name in the last stage; an empty one when there is none."""
    stage = instructions[-1].stage
    found = [one for one in instructions if one.name == name and one.stage == stage]
    return found[-1] if found else Instruction(name, "", stage)


def copied(instructions: Sequence[Instruction]) -> dict[str, str]:
    """Return what the last stage copies from the project: each source with its destination."""
    stage = instructions[-1].stage
    given = (one.text.split() for one in instructions if one.name == "COPY" and one.stage == stage)
    return {words[0]: words[1] for words in given if not words[0].startswith("--")}


def health_check(instructions: Sequence[Instruction]) -> list[str]:
    """Return the command that asks for the health of the container."""
    return Instruction("CMD", last(instructions, "HEALTHCHECK").text.partition("CMD ")[2], 0).words


def base_is_one_version(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Require a slim base by its patch version, the same in each stage."""
    bases = {one.text.partition(" AS ")[0] for one in instructions if one.name == "FROM"}
    yield from (f"{base} names no version" for base in bases if not re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base))
    if len(bases) != 1:
        yield f"the stages have {len(bases)} bases"


def nobody_is_root(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Require a user by number, which Kubernetes can see is not root, and nothing that runs after it."""
    user = last(instructions, "USER")
    if not re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user.text):
        yield f"USER must be a number above 999 with its group, not {user.text!r}"
    elif any(one.name in ("RUN", "COPY") for one in instructions[list(instructions).index(user) :]):
        yield "the user owns the files of a RUN or COPY after USER"


def nothing_unknown_is_fetched(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Forbid ADD and scripts from the network; require the fingerprint of the key, signed packages, pinned wheels."""
    runs = " ".join(one.text for one in instructions if one.name == "RUN")
    yield from ("ADD fetches or unpacks: use COPY" for one in instructions if one.name == "ADD")
    if re.search(r"\|\s*(sudo )?(ba|da)?sh\b", runs) or "http://" in runs:
        yield "nothing is piped into a shell or fetched by plain HTTP"
    if f"grep -q '^fpr:::::::::{FINGERPRINT}:$'" not in runs or "[signed-by=" not in runs:
        yield "the key of Microsoft's repository must be known by its fingerprint, and sign the packages"
    if "--only-binary=:all: --requirement requirements-worker.txt" not in runs:
        yield "packages must be the wheels of requirements-worker.txt"
    if re.search(r"trusted=yes|--allow-unauthenticated|--no-check-certificate|--insecure|-k\b", runs):
        yield "a check of what is fetched is off"


def the_image_is_small(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Require that no lists of apt, no cache of pip and no recommended package stay."""
    for one in instructions:
        if "apt-get update" in one.text and "rm -rf /var/lib/apt/lists/*" not in one.text:
            yield "the lists of apt stay in the image"
        if "apt-get install" in one.text and "--no-install-recommends" not in one.text:
            yield "apt-get installs recommended packages"
        if "pip install" in one.text and "--no-cache-dir" not in one.text:
            yield "the cache of pip stays in the image"
        if (
            one.name == "RUN"
            and one.stage == instructions[-1].stage
            and re.search(r"\b(pip install|curl|gnupg)", one.text)
        ):
            yield "tools of the build belong into its stage"
    yield from (f"COPY {source} copies too much" for source in copied(instructions) if source in (".", "./"))


def nothing_holds_a_secret(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Forbid build arguments, and variables whose name or value sounds like a secret."""
    yield from (f"ARG {one.text} stays in the history" for one in instructions if one.name == "ARG")
    yield from (
        f"ENV {one.text} sounds like a secret" for one in instructions if one.name == "ENV" and SECRET.search(one.text)
    )


def signals_arrive(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Require the exec form, because a shell keeps signals to itself, and SIGTERM."""
    yield from (
        f"{name} must have the exec form" for name in ("ENTRYPOINT", "CMD") if not last(instructions, name).words
    )
    if last(instructions, "STOPSIGNAL").text != "SIGTERM":
        yield "STOPSIGNAL must be SIGTERM"


def health_is_asked_where_it_is_answered(instructions: Sequence[Instruction]) -> Iterator[str]:
    """Require that HEALTHCHECK asks at the port where the worker answers, which is exposed."""
    asked, answered = health_check(instructions), last(instructions, "CMD").words
    ports = [PORT.search(words[-1]) for words in (asked, answered) if words]
    found = {port[1] for port in ports if port} | {last(instructions, "EXPOSE").text}
    if asked[:3] != ["python", "-m", "core.worker.health"] or answered[:1] != ["--health"] or len(found) != 1:
        yield f"health is asked by {asked} and answered by {answered}, exposed at {last(instructions, 'EXPOSE').text}"


POLICIES: tuple[Policy, ...] = (
    base_is_one_version,
    nobody_is_root,
    nothing_unknown_is_fetched,
    the_image_is_small,
    nothing_holds_a_secret,
    signals_arrive,
    health_is_asked_where_it_is_answered,
)
