How the last owner left is recorded once: an orphaning of a session without an owner only records held calls; a
superseding incarnation is never removed (§2, R16).

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
