"""Two apps in the form that yours have in `apps/`: a home-security company, and changes of flights."""
