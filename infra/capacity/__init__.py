"""What a load needs of Event Hubs, the function app and Azure SQL, by published limits and our own measurements."""
