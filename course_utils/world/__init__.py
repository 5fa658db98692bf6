"""The small world that the tools of the course act on."""
