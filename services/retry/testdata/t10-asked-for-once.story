A requested turn is left to the harness: a second decision returns nothing (T10, V7).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message","message":"m1"}
3 session.orphaned {"reason":"owner-lost","incarnation":"17"}
3 turn.interrupted {"turn":"t1","reason":"owner-lost"}
-- decide --
4 retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@5s","error":{"kind":"interrupted","text":"owner-lost"}}
-- decide @5s --
5 turn.requested {"turn":"turn-xvry7jgnky2udt6aoshg","cause":"resume","of_turn":"t1","message":"m1","attempt":1}
-- decide @6000s --
(none)
