A start that does not repeat what its request said still takes the message, the prompt and the options along, and continues the turn it was to continue (R13).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 by=compaction message.accepted {"message":"m1","content":"Fix it","synthetic":true}
3 by=compaction turn.requested {"turn":"t2","cause":"message","of_turn":"t1","message":"m1","options":{"model":"big"},"attempt":3}
4 turn.started {"turn":"t2"}
-- state turn queue pending --
turn: {"id":"t2","cause":"message","synthetic":true,"of_turn":"t1","message":"m1","message_seq":3,"since":"@4s","attempt":3,"epoch":1,"options":{"model":"big"}}
queue: (nothing)
pending: (nothing)
-- endings --
4 turn t1 continued
4 message m1 delivered
