"""Proof that a run survives anything: real processes are killed, frozen and cut off, and what is left must be true.

How it works, from the outside in:

`fleet`       starts one PostgreSQL for this package and several arenas, and hands schedules out to them
`cases`       what the written schedules have in common; the tests of this package look at how each came out
`arena`       a process with a database and a Valkey of its own; performs one schedule after another, reports on each
`warm`        statements that an arena compiles once for all processes that are forked from it
`script`      what a schedule is: actions of people, faults, and points at which a process meets its end; plain data
`draw`        makes a schedule from a seed: the same seed, the same schedule
`play`        performs a schedule, then ends all faults and waits, with a bound, until nothing moves any more
`servers`     an arena's PostgreSQL and Valkey, taken away and brought back
`commands`    what people have asked a web process for, and what they were told
`crew`        the processes of an arena, forked from it: workers, webs, a sweeper; restarted as a supervisor would
`roles`       what each of these processes does: the product's own `main`s, with the times of `scale`
`desk`        what the web process does for people and customers: the product's own services
`ports`       the agent's ports in a worker, and how they go wrong
`points`      places in a process where a fault strikes: around each statement, in each skill, around a commit
`witness`     triggers that write down every move of a run, a ticket and a reply, and who wrote it
`invariants`  what must hold afterwards, each a function over what `story` has read; `replies` and `records` have more
              of them, and a name of its own stands before whatever does not hold
`mutants`     faults put into the product on purpose, in the forked process only: each must be noticed

Processes don't run in lockstep, so a seed fixes what is done and when, not how the processes interleave. A seed that
has failed is worth running again a few times: `FAULT_SEED=123 pytest tests/faults -k seed`, or with a count,
`python -m tests.faults --seed 123 --times 20`. `make faults` runs ten thousand of them.
"""
