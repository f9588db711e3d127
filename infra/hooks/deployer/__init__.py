"""The deployer, a person or a pipeline: its sign-in, address, rights on the database, and its own run of the app."""
