Kinds that trying again does not mend are given up at once: of a turn, and of a message that could not be sent (T3, T5, T12).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t0","cause":"message"}
3 turn.failed {"turn":"t0","error":{"kind":"authentication","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t0","attempt":0,"reason":"authentication"}
-- facts --
5 turn.started {"turn":"t1","cause":"message"}
6 turn.failed {"turn":"t1","error":{"kind":"quota","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t1","attempt":0,"reason":"quota"}
-- facts --
8 turn.started {"turn":"t2","cause":"message"}
9 turn.failed {"turn":"t2","error":{"kind":"model_not_found","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t2","attempt":0,"reason":"model_not_found"}
-- facts --
11 turn.started {"turn":"t3","cause":"message"}
12 turn.failed {"turn":"t3","error":{"kind":"aborted","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t3","attempt":0,"reason":"aborted"}
-- facts --
14 turn.started {"turn":"t4","cause":"message"}
15 turn.failed {"turn":"t4","error":{"kind":"runtime_not_ready","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t4","attempt":0,"reason":"runtime_not_ready"}
-- facts --
17 turn.started {"turn":"t5","cause":"message"}
18 turn.failed {"turn":"t5","error":{"kind":"model_refusal","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t5","attempt":0,"reason":"model_refusal"}
-- facts --
20 turn.started {"turn":"t6","cause":"message"}
21 turn.failed {"turn":"t6","error":{"kind":"api_key_not_found","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t6","attempt":0,"reason":"api_key_not_found"}
-- facts --
23 turn.started {"turn":"t7","cause":"message"}
24 turn.failed {"turn":"t7","error":{"kind":"oauth_not_connected","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t7","attempt":0,"reason":"oauth_not_connected"}
-- facts --
26 turn.started {"turn":"t8","cause":"message"}
27 turn.failed {"turn":"t8","error":{"kind":"provider_disabled","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t8","attempt":0,"reason":"provider_disabled"}
-- facts --
29 turn.started {"turn":"t9","cause":"message"}
30 turn.failed {"turn":"t9","error":{"kind":"provider_not_supported","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t9","attempt":0,"reason":"provider_not_supported"}
-- facts --
32 turn.started {"turn":"t10","cause":"message"}
33 turn.failed {"turn":"t10","error":{"kind":"model_not_available","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t10","attempt":0,"reason":"model_not_available"}
-- facts --
35 turn.started {"turn":"t11","cause":"message"}
36 turn.failed {"turn":"t11","error":{"kind":"invalid_model_string","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t11","attempt":0,"reason":"invalid_model_string"}
-- facts --
38 turn.started {"turn":"t12","cause":"message"}
39 turn.failed {"turn":"t12","error":{"kind":"incompatible_workspace","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t12","attempt":0,"reason":"incompatible_workspace"}
-- facts --
41 turn.started {"turn":"t13","cause":"message"}
42 turn.failed {"turn":"t13","error":{"kind":"policy_denied","text":"x"},"had_output":false}
-- decide --
retry.abandoned {"turn":"t13","attempt":0,"reason":"policy_denied"}
-- state --
idle last=t13,failed retry=abandoned,attempt=0,same=1,resumes=0,reason=policy_denied
