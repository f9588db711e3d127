"""The sizes of Event Hubs, function app and Azure SQL that a load needs, by published limits and our measurements."""
