How the last owner went is told once: an orphaning of a session that nobody owns only says what is held; who took its place is never taken back (§2, R16).

-- facts --
1 session.opened {"incarnation":"17"}
2 tool.started {"call":"c1","name":"task"}
3 session.released {}
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","superseded_by":"20","waits_for":[{"call":"c1","child":"s2"}]}
-- state owned left superseded_by waits_for phase --
owned: false
left: "released"
superseded_by: "20"
waits_for: [{"call":"c1","child":"s2"}]
phase: "waiting"
-- facts --
5 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17","superseded_by":"18"}
-- state owned left superseded_by waits_for phase --
owned: false
left: "released"
superseded_by: "20"
waits_for: (nothing)
phase: "idle"
