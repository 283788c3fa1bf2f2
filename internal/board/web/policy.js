// Changes of a session's policy. All functions are pure.
//
// A draft is what a person has written and the document does not have: {name: {text, was, stored}}. was is the value of
// the field when the person began to write; stored is the place of the log at which the ledger has stored the text.

// settings are the fields of a policy, with their default values, as `holdfast configure` explains them.
export const settings = [
  { name: "auto_retry", normal: true, choices: [true, false], what: "retry failed turns" },
  { name: "retry_max", normal: 0, what: "attempts; 0: no limit while there is progress" },
  { name: "resume", normal: "auto", choices: ["auto", "hold"], what: "continue after a crash, or wait for a person" },
  { name: "resume_max", normal: 10, what: "continuations after crashes without progress" },
  { name: "compaction_threshold", normal: 0.7, what: "part of the context limit, 0.1 to 1.0; 1.0 is off" },
  { name: "context_limit", normal: 0, what: "tokens; 0: what the harness reports" },
  { name: "idle_compaction_after_s", normal: 0, what: "compact an idle session after so many seconds; 0: off" },
  { name: "stall_after_s", normal: 600, what: "end a silent turn after so many seconds; 0: off" },
];

// wanted returns the value that a text means: null for the default, undefined for none.
function wanted({ choices }, text) {
  const trimmed = text.trim();
  if (trimmed === "") return null;
  if (choices) return choices.find((c) => String(c) === trimmed);
  const number = /^-?[0-9]+(\.[0-9]+)?$/.test(trimmed) ? Number(trimmed) : NaN;
  return Number.isFinite(number) ? number : undefined;
}

// edited returns the draft after a person has written a text into a field.
export function edited(draft, policy, name, text) {
  const before = draft[name];
  const setting = settings.find((s) => s.name === name);
  const was = before === undefined
    ? policy[name]
    : before.stored === undefined ? before.was : wanted(setting, before.text) ?? setting.normal;
  return { ...draft, [name]: { text, was } };
}

// kept returns the draft after the person has seen what the fields are now: the texts stand against these values.
export function kept(draft, policy) {
  return Object.fromEntries(Object.entries(draft).map(([name, d]) => [name, { ...d, was: policy[name] }]));
}

// stored returns the draft after the ledger has stored a patch at a place of the log, 0 for no change. A text that was
// written meanwhile is not stored.
export function stored(draft, sent, patch, seq) {
  return Object.fromEntries(Object.entries(draft).map(([name, d]) =>
    [name, Object.hasOwn(patch, name) && d === sent[name] ? { ...d, stored: seq } : d]));
}

// pending returns the part of a draft that a document at a place of the log does not have.
export function pending(draft, seq) {
  return Object.fromEntries(Object.entries(draft).filter(([, d]) => d.stored === undefined || d.stored > seq));
}

// policyForm returns the fields of the form: {name, what, choices, text, now, changed, stored, wrong, overtaken}. now
// is the value of the document as text; overtaken says that another person has changed the field since the text was
// begun.
export function policyForm(policy, draft) {
  return settings.map((setting) => {
    const { name, what, choices } = setting;
    const now = policy[name];
    const own = draft[name];
    const row = { name, what, choices: choices?.map(String), text: own?.text ?? String(now), now: String(now),
      normal: String(setting.normal), changed: false, stored: own?.stored !== undefined, wrong: "", overtaken: false };
    if (!own || row.stored) return row;
    const value = wanted(setting, own.text);
    if (value === undefined) return { ...row, wrong: "it is no number" };
    row.changed = (value ?? setting.normal) !== now;
    row.overtaken = row.changed && own.was !== now;
    return row;
  });
}

// changedPolicy returns the patch that a draft asks for, with the changed fields alone, so that another person's
// changes of other fields stand. It is undefined when nothing is changed, or when a field is wrong or overtaken.
export function changedPolicy(policy, draft) {
  const rows = policyForm(policy, draft);
  const changed = rows.filter((r) => r.changed);
  if (changed.length === 0 || rows.some((r) => r.wrong || r.overtaken)) return undefined;
  return Object.fromEntries(changed.map((r) => [r.name, wanted(settings.find((s) => s.name === r.name), r.text)]));
}
