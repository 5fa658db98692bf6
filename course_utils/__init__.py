"""The helper package of the course "From Tool Calls to Agents"."""
