"""Mutants of the values that AMQP brings: properties and bodies of every type."""

from tests.mutants.mutant import in_file

MUTANTS = (
    *in_file(
        "core/model/property_values.py",
        "tests/core/model/test_property_values.py",
        (
            "a float that is not finite stops the partition",
            "return float(value) if math.isfinite(value) else",
            "return float(value) if value else",
        ),
        (
            "a large number loses digits",
            "return int(value) if abs(value) <= EXACT else",
            "return float(value) if abs(value) > EXACT else int(value) if value else",
        ),
        ("bytes come back as text", 'return {"$binary": _base64(bytes(value))}', "return _base64(bytes(value))"),
    ),
    *in_file(
        "core/model/events.py",
        "tests/core/model/test_events.py",
        (
            "a transform changes an event for those who read it next",
            "(msgspec.Struct, frozen=True)",
            "(msgspec.Struct)",
        ),
    ),
    *in_file(
        "core/remote/hub/client.py",
        "tests/core/remote/hub/test_client.py",
        (
            "a worker commits a batch whose numbers fall",
            "enumerate(map(lt, numbers, numbers[1:]), 1) if not rises]",
            "enumerate(map(lt, numbers, numbers[1:]), 1) if not place]",
        ),
    ),
    *in_file(
        "core/remote/hub/host_values.py",
        "tests/core/remote/hub/test_host_values.py",
        (
            "an impossible time among the properties ends the reading of a partition",
            "        except OverflowError:  # .NET",
            "        except KeyError:  # .NET",
        ),
    ),
)
