A turn that comes again carries what the person had said, so a harness that was restarted needs nothing of its own to start it (T13).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m1","content":"paint it","by":"ada"}
2 by=compaction turn.requested {"turn":"t1","cause":"message","message":"m1"}
3 turn.started {"turn":"t1","cause":"message","options":{"model":"small"}}
4 turn.failed {"turn":"t1","error":{"kind":"server_error","text":"overloaded"},"had_output":false}
5 by=retry retry.scheduled {"turn":"t1","attempt":1,"delay_ms":2000,"due_at":"@6s","error":{"kind":"server_error","text":"overloaded"}}
6 by=retry turn.requested {"turn":"t2","cause":"retry","of_turn":"t1","message":"m1","attempt":1,"options":{"model":"small"}}
-- work turn --
turn: {"turn":"t2","cause":"retry","of_turn":"t1","message":"m1","content":"paint it","options":{"model":"small"},"attempt":1}
