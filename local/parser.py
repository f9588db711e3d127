"""The parser of the programs of make: a refusal names the settings of make where make has called the program."""

import argparse
import os
import re
from typing import NoReturn

BY_MAKE = "ASKED_BY_MAKE"  # set in the environment by the targets whose settings are the options of a program
_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_ARGUMENT = re.compile(r"^argument (--[a-z-]+)[^:]*:")


def asked_as(text: str) -> str:
    """Return a text with its options named as the caller has named them: --hub-port, or HUB_PORT= of make."""
    if BY_MAKE not in os.environ:
        return text
    return _OPTION.sub(lambda found: f"{found[1].replace('-', '_').upper()}=", text)


class Parser(argparse.ArgumentParser):
    """Refuses in one line where make has called, because nobody has typed an option; else after the usage."""

    def error(self, message: str) -> NoReturn:
        """Print why the options are refused, and end with 2."""
        if BY_MAKE in os.environ:
            said = asked_as(_ARGUMENT.sub(r"\1:", message)).replace("=:", ":", 1)
            self.exit(2, f"{self.prog.rpartition('.')[2]}: {said}\n")
        super().error(message)
