Several prompts of one session are answered in any order: ids decide, never position (P18).

-- facts --
1 session.opened {"incarnation":"17"}
2 turn.started {"turn":"t1","cause":"message"}
3 prompt.requested {"prompt":"a","turn":"t1","kind":"question","delivery":"callback","questions":[{"id":"q","question":"First?"}]}
3 prompt.requested {"prompt":"b","turn":"t1","kind":"question","delivery":"callback","questions":[{"id":"q","question":"Second?"}]}
3 prompt.requested {"prompt":"c","turn":"t1","kind":"question","delivery":"callback","questions":[{"id":"q","question":"Third?"}]}
-- request @4s --
answer {"prompt":"b","answers":[{"question":"q","selected":[],"text":"two"}],"by":"ada"}
-- result --
4 prompt.answered {"prompt":"b","answers":[{"question":"q","selected":[],"text":"two"}],"by":"ada","owed":true}
-- request @5s --
answer {"prompt":"c","answers":[{"question":"q","selected":[],"text":"three"}],"by":"bob"}
-- result --
5 prompt.answered {"prompt":"c","answers":[{"question":"q","selected":[],"text":"three"}],"by":"bob","owed":true}
-- pending --
a
-- work prompts --
prompts: {"b":{"status":"answered","answers":[{"question":"q","selected":[],"text":"two"}],"by":"ada"},"c":{"status":"answered","answers":[{"question":"q","selected":[],"text":"three"}],"by":"bob"}}
-- request @6s --
answer {"prompt":"a","answers":[{"question":"q","selected":[],"text":"one"}],"by":"ada"}
-- result --
6 prompt.answered {"prompt":"a","answers":[{"question":"q","selected":[],"text":"one"}],"by":"ada","owed":true}
-- work prompts --
prompts: {"a":{"status":"answered","answers":[{"question":"q","selected":[],"text":"one"}],"by":"ada"},"b":{"status":"answered","answers":[{"question":"q","selected":[],"text":"two"}],"by":"ada"},"c":{"status":"answered","answers":[{"question":"q","selected":[],"text":"three"}],"by":"bob"}}
-- facts --
7 prompt.delivered {"prompt":"c"}
8 prompt.delivered {"prompt":"a"}
-- work prompts --
prompts: {"b":{"status":"answered","answers":[{"question":"q","selected":[],"text":"two"}],"by":"ada"}}
-- endings --
4 prompt b answered
5 prompt c answered delivered @7s
6 prompt a answered delivered @8s
