The end of a turn has its outcome: interrupted, because its process died (R4).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=reconciler session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 by=reconciler turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- state phase last_turn owned left --
phase: "interrupted"
last_turn: {"id":"t1","outcome":"interrupted","reason":"owner-lost","at":"@3s","cause":"message","attempt":1,"synthetic":false,"had_output":false,"seq":3}
owned: false
left: "orphaned"
