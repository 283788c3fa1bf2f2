An owner is exclusive by default; a root counts only with a parent (§2.5).

-- facts --
1 session.opened {"incarnation":"17","exclusive":true,"root":"r"}
-- state exclusive root parent --
exclusive: true
root: "s"
parent: ""
-- facts --
2 session.claimed {"incarnation":"18","exclusive":true}
-- ignored --
(none)
-- state epoch exclusive --
epoch: 2
exclusive: true
