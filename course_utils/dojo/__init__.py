"""The course's gate against AgentDojo, a benchmark of prompt injection that others wrote.

An obedient agent does the user's task, then the injection's, call by call through a gate. No model
is needed: the calls are the benchmark's own, and so are the judges of what happened.

Reading order: `effects` and `knowledge` (what a policy must be told about tools), `derive` and
`records` (what follows from a request), `gates` (the policies), `people` (who answers), `suites`
(AgentDojo), `benchmark` (every pair, counted), `results` (the committed outcome).
"""
