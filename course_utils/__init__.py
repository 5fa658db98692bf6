"""The helper package of the course "From Tool Calls to Agents".

Its modules are meant to be read. A good order, each building on those before it:

1.  messages    what goes to a model and what comes back
2.  schemas, arguments, tools    a typed function as a tool: schema, checked arguments, result
3.  parsing     from the text of a model to tool calls, or to a named error
4.  models      where replies come from: recordings, the live model, a server, a script
5.  events, trace, agent    the loop, and what it leaves behind
6.  retry, approval, guards    failures that pass, who may stop a call, limits and undoing
7.  react       the same loop for models that know no tool calls
8.  memory      counting and trimming a conversation
9.  world       the small world that the tools act on: clock, outbox, documents, …
    sandbox     where programs that a model wrote run
10. evaluation  counting outcomes, and how sure a count can be
11. injection, dojo    attacks, defences, and the gate on a public benchmark
12. code_trace, claims, otel    a run as data, held against its answer, sent to other tools
13. show, widgets, exercises    tables, charts and checks for the notebooks
14. course_map, minutes, selfcheck    the course about itself
15. cli         the commands behind `python -m course_utils`
"""
