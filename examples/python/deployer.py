"""The deployer in Python: it survives SIGKILL at every step. `holdfast sidecar` runs beside it and keeps its state."""
import itertools, json, os, shutil, sys
from subprocess import PIPE, Popen, check_output

holdfast = shutil.which(os.environ.get("HOLDFAST", "holdfast")) or sys.exit("install holdfast, or set HOLDFAST to it")
sidecar = Popen([holdfast, "sidecar", "--parent", str(os.getpid())], stdin=PIPE, stdout=PIPE, encoding="utf-8")


class Refused(Exception): pass  # the error of a reply


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), file=sidecar.stdin, flush=True)


def call(method, ids=itertools.count(1), **params):
    send(id=(mine := next(ids)), method=method, params=params)
    for line in sidecar.stdout:
        m = json.loads(line)
        if m.get("method") == "turn":
            try:
                send(id=m["id"], result=deploy({k: m["params"][k] for k in ("session", "turn")}))
            except Exception as e:  # fails the turn; its kind decides whether it is tried again
                send(id=m["id"], error=e.args[0] if isinstance(e, Refused) else {"code": 1, "message": repr(e)})
        elif "error" in m: raise Refused(m["error"])  # of this call; with the id null, of a line that cannot be read
        elif m.get("id") == mine: return m["result"]
    sys.exit("the sidecar has ended")


def step(turn, name, run):  # runs once for a message, and keeps its result
    begun = call("turn.step_begin", **turn, name=name)
    if not begun["run"]: return begun["result"]
    try:
        result = run()
    except Exception as e:  # the next attempt runs it again
        call("turn.step_end", step=begun["step"], error={"message": repr(e)})
        raise
    call("turn.step_end", step=begun["step"], result=result)
    return result


def deploy(turn):
    env = call("turn.ask_once", **turn, name="which-env", questions=[{"id": "env", "question": "Deploy where?",
               "options": [{"label": "staging"}, {"label": "production"}]}])["choice"]
    may = env and call("turn.ask_once", **turn, name="may-deploy", kind="permission", title="Run ./deploy.sh " + env)
    if not may or may["status"] != "answered": return  # declined, or skipped
    try:
        print(step(turn, "deploy", lambda: check_output(["./deploy.sh", env], text=True)))
    except Refused as e:  # killed while it ran: ask, and do not run it again
        if e.args[0]["data"]["error"] != "outcome_unknown": raise
        call("turn.ask_once", **turn, name="is-it-up", questions=[{"id": "up", "question": f"Cut off. Is {env} up?"}])


try:
    call("connect", id="deployer")
    call("open", session="shop", title="Deploy the shop")  # continues what was cut off
    call("ready")
    call("work", turns_max=1)  # returns when this process may do nothing more
except Refused as e: sys.exit(e.args[0]["message"])
except KeyboardInterrupt: sys.exit(print("Stopped. The next process continues.", file=sys.stderr) or 130)
