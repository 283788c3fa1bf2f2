In the log, order is the log's, whatever the writers' clocks say (P6).

-- facts --
1 session.opened {"incarnation":"17"}
2 time=2026-01-01T09:00:00Z prompt.requested {"prompt":"p1","kind":"question","delivery":"callback"}
3 time=2026-01-01T08:00:00Z prompt.withdrawn {"prompt":"p1","reason":"shutdown"}
4 time=2026-01-01T08:30:00Z prompt.requested {"prompt":"p2","kind":"question","delivery":"callback"}
-- pending --
p2
-- endings --
3 prompt p1 withdrawn (shutdown)
-- blocker p2 armed_at --
armed_at: "@4s"
