"""Mutants of the values that AMQP brings: properties and bodies of every type."""

from tests.mutants.mutant import in_file

MUTANTS = (
    *in_file(
        "core/model/values.py",
        "tests/property/test_event_values.py",
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
        ("an object that looks like a tag is read as one", " and not looks_like_a_tag(value):", ":"),
        ("bytes come back as text", 'return {"$binary": _base64(bytes(value))}', "return _base64(bytes(value))"),
        (
            "a value of any depth is nested as it is",
            "if depth == MOST_NESTED and",
            "if depth == 1_000 * MOST_NESTED and",
        ),
    ),
    *in_file(
        "core/model/events.py",
        "tests/unit/core/model/test_events.py",
        (
            "a transform changes an event for those who read it next",
            "(msgspec.Struct, frozen=True)",
            "(msgspec.Struct)",
        ),
    ),
    *in_file(
        "core/remote/hub/consumer.py",
        "tests/unit/core/remote/hub/test_consumer.py",
        (
            "a worker commits a batch whose numbers fall",
            "enumerate(map(lt, numbers, numbers[1:]), 1) if not rises]",
            "enumerate(map(lt, numbers, numbers[1:]), 1) if not place]",
        ),
    ),
    *in_file(
        "core/remote/hub/host_values.py",
        "tests/unit/core/remote/hub/test_host_values.py",
        (
            "an impossible time among the properties ends the reading of a partition",
            "        except OverflowError:  # .NET",
            "        except KeyError:  # .NET",
        ),
    ),
    *in_file(
        "core/remote/hub/events.py",
        "tests/unit/core/remote/hub/test_events.py",
        (
            "properties that cannot be read are lost",
            "    except NotReadable:\n        return _unread(found)\n",
            "    except NotReadable:\n        return {}\n",
        ),
    ),
)
