"""What the record says of flight changes, and how the app's tables of flights are counted against it."""

COLUMNS = (
    "carrier TEXT",
    "flight_number INTEGER",
    "departure_date TEXT",
    "status TEXT",
    "departure_gate TEXT",
    "departs_us INTEGER",  # microseconds since 1970, UTC
    "arrives_us INTEGER",
    "changed_us INTEGER",
)
ROW_TABLES = ("flight_change",)

# A multiset against another: the record says how many there may be, the store how many there are.
_CHANGES = """
SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
    SUM(at_least), SUM(at_most), SUM(found)
FROM (
    SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
        at_least, at_most, 0 AS found
    FROM record.event WHERE outcome = 'written'
    UNION ALL
    SELECT carrier, flight_number, departure_date, status, departure_gate,
        instant(departs_at), instant(arrives_at), instant(changed_at), 0, 0, 1
    FROM flight_change
) GROUP BY carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us
HAVING SUM(found) NOT BETWEEN SUM(at_least) AND SUM(at_most)
"""
# The last published change of each flight and day stands; one whose answer was lost may stand or not.
_STATUSES = """
SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
    SUM(expected), SUM(expected), SUM(found)
FROM (
    SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
        1 AS expected, 0 AS found
    FROM record.event WHERE number IN (
        SELECT MAX(number) FROM record.event WHERE outcome = 'written'
        GROUP BY carrier, flight_number, departure_date
    )
    UNION ALL
    SELECT carrier, flight_number, departure_date, status, departure_gate,
        instant(departs_at), instant(arrives_at), instant(changed_at), 0, 1
    FROM flight_status
) GROUP BY carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us
HAVING SUM(found) <> SUM(expected) AND (carrier, flight_number, departure_date) NOT IN (
    SELECT carrier, flight_number, departure_date FROM record.event WHERE outcome = 'written' AND at_least = 0
)
"""
MULTISETS = {"flight_change": _CHANGES, "flight_status": _STATUSES}
