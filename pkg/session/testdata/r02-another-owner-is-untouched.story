Liveness is per owner: an orphaning meant for another incarnation touches nothing (R2).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"16"}
-- ignored --
3: 1, the last session.orphaned by reconciler: source
-- state phase owned --
phase: "running"
owned: true
-- facts --
4 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
5 session.claimed {"incarnation":"18"}
6 by=reconciler epoch=1 session.orphaned {"reason":"owner-lost","incarnation":"17"}
7 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
-- ignored --
6: 1, the last session.orphaned by reconciler: epoch
7: 1, the last session.orphaned by reconciler: source
-- state phase owned incarnation --
phase: "interrupted"
owned: true
incarnation: "18"
