"""The helper package of the course "From Tool Calls to Agents".

Its modules are meant to be read. A good order, each building on those before it:

1.  messages    what goes to a model and what comes back
2.  schemas, arguments, tools    a typed function as a tool: schema, checked arguments, result
3.  parsing     from the text of a model to tool calls, or to a named error
4.  models      where replies come from: recordings, the live model, a server, a script
5.  trace, agent, approval    the loop, what it leaves behind, and who may stop it
6.  memory      counting and trimming a conversation
7.  world       the small world that the tools act on: clock, outbox, documents, …
8.  sandbox, injection    where model-written code runs, and what attacks look like
9.  evaluation  counting outcomes, and how sure a count can be
10. show, widgets, exercises    tables, charts and checks for the notebooks
11. cli         the commands behind `python -m course_utils`

A module that is not there yet comes with the notebook that needs it.
"""
