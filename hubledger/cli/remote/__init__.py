"""The only door to an app: its address, its sign-in, its answers and its problems, over HTTP."""
