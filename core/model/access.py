"""The policy of access: the sign-in of callers, and the secrets that sign residents' links."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

LEAST_SECRET = 32  # octets
GUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """The parties that the app trusts to name a caller, and the secrets of residents' links.

    With `platform_signs_in`, App Service authentication signs callers in. Otherwise the Azure Front Door with the id
    `front_door` does, if there is one. `operator_role` replaces the name of the role for changes. `link_secret` signs
    links, and links that `former_link_secret` signed still work; without a secret there are no links.
    """

    platform_signs_in: bool = False
    front_door: str | None = None
    operator_role: str | None = None
    link_secret: str = field(default="", repr=False)
    former_link_secret: str = field(default="", repr=False)
    link_life: timedelta = timedelta(hours=1)

    @property
    def signs_in(self) -> bool:
        """True if callers sign in, at the platform or at a front door: then routes need roles."""
        return self.platform_signs_in or self.front_door is not None

    @property
    def link_secrets(self) -> tuple[str, ...]:
        """The secrets whose links work; the first one signs."""
        return tuple(secret for secret in (self.link_secret, self.former_link_secret) if secret)

    @property
    def faults(self) -> list[str]:
        """The faults of these settings; no fault quotes a secret."""
        found = []
        if self.front_door is not None and not GUID.fullmatch(self.front_door):
            found.append("TRUSTED_FRONT_DOOR must be the id of an Azure Front Door, which its X-Azure-FDID carries")
        if self.operator_role is not None and not self.signs_in:
            found.append(
                "OPERATOR_ROLE needs sign-in: turn on App Service authentication"
                " (WEBSITE_AUTH_ENABLED), name TRUSTED_FRONT_DOOR, or leave OPERATOR_ROLE empty"
            )
        if self.former_link_secret and not self.link_secret:
            found.append("RESIDENT_LINK_SECRET must be set where RESIDENT_LINK_SECRET_PREVIOUS is")
        return found + secret_faults(
            {"RESIDENT_LINK_SECRET": self.link_secret, "RESIDENT_LINK_SECRET_PREVIOUS": self.former_link_secret}
        )


def secret_faults(secrets: Mapping[str, str]) -> list[str]:
    """Name the secrets that could be guessed: short ones, and a reference's own text, which the platform leaves there
    when it cannot resolve the reference."""
    found = []
    for name, secret in secrets.items():
        if secret.startswith("@Microsoft.KeyVault("):
            found.append(f"{name} is a Key Vault reference that the platform could not resolve")
        elif secret and len(secret.encode("utf-8", "surrogatepass")) < LEAST_SECRET:
            found.append(f"{name} must have at least {LEAST_SECRET} octets")
    return found
