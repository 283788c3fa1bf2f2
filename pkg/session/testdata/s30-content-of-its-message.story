Of several messages that were accepted in one commit the work shows the content of the one that its turn is about (§3, C7).

-- facts --
1 session.opened {"incarnation":"17"}
2 by=compaction message.accepted {"message":"m1","content":"one","synthetic":false,"by":"ada"}
2 message.accepted {"message":"m2","content":"two","synthetic":true,"by":"ada"}
2 message.accepted {"message":"m3","content":"three","synthetic":false,"by":"ada"}
3 by=compaction turn.requested {"turn":"t1","cause":"message","message":"m2"}
-- work turn --
turn: {"turn":"t1","cause":"message","message":"m2","content":"two","synthetic":true,"attempt":1}
