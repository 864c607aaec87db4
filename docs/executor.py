#!/usr/bin/env python3
"""A complete executor for the console, in nothing but Python's standard library;
what it sends, and how, is in executor_http.py beside it.

    export COUNTERSIGN_URL=… COUNTERSIGN_KEY=…     # the console, a key with the role executor
    export SYSTEM_URL=… SYSTEM_READ_TOKEN=… SYSTEM_WRITE_TOKEN=…     # the business system
    python3 executor.py 'refunds.*'                # the tools that it serves

It keeps nothing: killed at any moment and started again it finds out first what
became of what it sent, because the console has it ask before anything is sent
once more, and of a contract in steps it takes only what is missing. What is
approved is sent at most once per attempt, within the time that the console gave
for it, and what is not known is reported as not known.

The claim's token is compared with what is about to be sent, but Ed25519, which it
is signed with, is not in the standard library: the console is asked whether the
confirmation stands, which is as good as the connection to it. Use https, or check
the signature with a library against /.well-known/jwks.json. Left out: work of the
kind list, which an executor may leave to others, and telling a system that answers
no writes from one that answers nothing.
"""
import base64, concurrent.futures, datetime, functools, hashlib, json, os, secrets, sys, threading, time, urllib.parse

from executor_http import GiveBack, NoAnswer, NotSent, Refused, at, call, canonical, console, decoded, exchange, for_step, report, seconds, words

SYSTEM = os.environ["SYSTEM_URL"]
READ_TOKEN, WRITE_TOKEN = os.environ.get("SYSTEM_READ_TOKEN"), os.environ.get("SYSTEM_WRITE_TOKEN")
ACTOR_HEADER = os.environ.get("SYSTEM_ACTOR_HEADER")  # names the actor to the system
EVIDENCE = 256 << 10  # bytes of an answer that the console keeps
BREAK_AFTER, PROBE_AFTER = 5, 10  # requests in a row without an answer; seconds until a read looks again
PAUSED_FOR = 5  # seconds that a paused tool is left alone


@functools.lru_cache(maxsize=500)
def contract_of(tool, version):
    return console("GET", f"/v1/tools/{tool}?version={version}")["contract"]


class Breaker:
    """Leaves the business system alone after failures in a row. Only a read finds out whether it is back."""

    def __init__(self):
        self.failed, self.probed = 0, 0.0

    def away(self):
        return self.failed >= BREAK_AFTER

    def tell(self, answered):
        self.failed = 0 if answered else self.failed + 1

    def look(self, read):
        """Reads now and then while it is away, and refuses what would change something until an answer came."""
        if self.away() and time.monotonic() >= self.probed + PROBE_AFTER:
            self.probed = time.monotonic()
            read()
        if self.away():
            raise NoAnswer("the business system does not answer")


breaker = Breaker()


def system(work, contract, request, token, send_by=None):
    """Sends one request to the business system; with a time to send by it is one that may change something."""
    method, path, headers, body = request
    actor = work["actor"]["id"]
    if not (actor.isascii() and actor.isprintable()):  # a header has no other characters
        actor = urllib.parse.quote(actor, safe="$&+=:@")
    extra = {"Authorization": token and "Bearer " + token, ACTOR_HEADER: actor, "traceparent": work["traceparent"]}
    headers = {**headers, **{name: value for name, value in extra.items() if name and value}}
    try:
        answer = exchange(SYSTEM, method, path, headers, body, seconds(contract["execution"]["timeout"]), send_by)
    except (NotSent, NoAnswer):
        breaker.tell(False)
        raise
    breaker.tell(answer[0] not in (502, 503, 504))
    return answer


def query(tool, work, payload, step=None):
    """Calls a tool that changes nothing: its snapshot, or why there is none."""
    contract = console("GET", "/v1/tools/" + tool)["contract"]
    target, key = work["target"] or {"type": "", "id": ""}, (step or work)["execution_key"]
    known = {**payload, "actor_id": work["actor"]["id"], "execution_key": key, "idempotency_key": key,
             "target_type": target["type"], "target_id": target["id"]}
    own = (contract.get("target") or {}).get("id")
    if isinstance(own, str):
        known.setdefault(own[1:], target["id"])
    asked = {name: known[name] for name in contract["input_schema"].get("properties", {}) if known.get(name) is not None}
    try:
        status, text, _ = system(work, contract, call(contract, asked, ""), READ_TOKEN)
        if contract["mode"] == "read" and 200 <= status < 206 and len(text) <= EVIDENCE:
            return {"snapshot": decoded(text), "http_status": status}
        return {"error": f"status {status}", "http_status": status}
    except (NotSent, GiveBack) as error:
        return {"error": f"it cannot be read: {error}", "code": "NOT_SENT"}
    except (NoAnswer, ValueError) as error:
        return {"error": "it cannot be read: " + (str(error) or "no answer"), "code": "EXECUTION_ERROR"}


def observation_id(work, tool, step):
    """Executors that are at the same piece of work report it under one id, so that it counts once."""
    if work["kind"] in ("execute", "retry"):
        return secrets.token_hex(16)  # only one of them has the claim
    piece = f"{work['kind']} {work['action_id']} {work['version']} {tool} {step['name'] if step else ''}"
    return hashlib.sha256(piece.encode()).hexdigest()[:32]


def read(tool, work, payload, step=None):
    """Reads, of a step under its key, and reports what it showed. The console judges it."""
    seen = {"observation_id": observation_id(work, tool, step), "tool": tool, **({"step": step["name"]} if step else {}),
            "observed_at": datetime.datetime.now(datetime.timezone.utc).isoformat(), **query(tool, work, payload, step)}
    unkept = {"error": "the console cannot keep what was read", "code": "EXECUTION_ERROR"}
    after = report(f"/v1/actions/{work['action_id']}/observations", seen, unkept)
    holds = next((o["holds"] for o in after["observations"] if o["observation_id"] == seen["observation_id"]), None)
    return after, seen.get("snapshot"), holds


def reads_of(conditions):
    return list(dict.fromkeys(c["read"] for c in conditions or ()))


def recheck(work, contract, payload):
    """Looks again at all that may have changed since people said yes: approval never replaces permission."""
    execution, before = contract["execution"], contract["approval"].get("before")
    if execution.get("permission"):
        _, said, _ = read(execution["permission"], work, payload)
        if not isinstance(said, dict) or said.get("allowed") is not True:
            denied = isinstance(said, dict) and said.get("allowed") is False
            raise GiveBack("the actor may not do this", "FORBIDDEN" if denied else None)
    if work["kind"] == "retry":
        return  # the first request may have moved the object itself
    conditions = reads_of(execution.get("preconditions"))
    for tool in ([before] if before and before not in conditions else []) + conditions:
        after, snapshot, holds = read(tool, work, payload)
        if after["state"] != "executing" or snapshot is None or tool in conditions and holds is not True:
            raise GiveBack(f"{tool} does not show that it may run")


def approved(work, claimed):
    """Compares the token with what was claimed, and asks the console whether the confirmation stands."""
    try:
        head, said = (json.loads(base64.urlsafe_b64decode(part + "==")) for part in claimed["token"].split(".")[:2])
    except ValueError:
        raise GiveBack("its token cannot be read")
    target = work["target"] or {"type": None, "id": None}
    bound = {"jti": work["confirmation_ref"], "actor": work["actor"]["id"], "target_type": target["type"], "target_id": target["id"],
             "payload_hash": "sha256:" + hashlib.sha256(canonical(claimed["payload"]).encode()).hexdigest(),
             **{name: work[name] for name in ("action_id", "tool", "tool_version", "object_version", "execution_key", "proposal_hash")}}
    other = [name for name, value in bound.items() if said.get(name) != value]
    if head.get("typ") != "countersign-confirmation+jwt" or claimed["execution_key"] != work["execution_key"] or other:
        raise GiveBack(f"it is not what was approved: {other}")
    asked = {"proposal_hash": work["proposal_hash"], "object_version": work["object_version"]}
    stands = console("POST", f"/v1/confirmations/{work['confirmation_ref']}/verify", asked)
    if not stands["valid"]:
        raise GiveBack(f"the confirmation does not stand: {stands['reason']}")


class Lease:
    """Renews a claim in the background, and knows by this machine's own clock whether it still runs."""

    def __init__(self, path, claim, asked, granted):
        self.path, self.claim, self.over = path, claim, threading.Event()
        self.ttl, self.until = granted["ttl_ms"] / 1000, asked + granted["ttl_ms"] / 1000

    def __enter__(self):
        threading.Thread(target=self.renew, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()

    def live(self):
        return time.monotonic() < self.until

    def renew(self):
        while self.live() and not self.over.wait(self.ttl / 3):
            asked = time.monotonic()
            try:
                granted = console("POST", self.path + "/lease", {"claim_id": self.claim}, tries=1, timeout=self.ttl)
                self.ttl, self.until = granted["ttl_ms"] / 1000, asked + granted["ttl_ms"] / 1000
            except NoAnswer:
                continue  # it keeps the time that is left
            except Refused:
                self.until = 0.0


def one_line(why):
    """An error in at most 256 bytes, without what a line of a log cannot hold."""
    return "".join(c for c in str(why) if c.isprintable()).encode()[:256].decode(errors="ignore")


def execute(work):
    """Claims, and carries out what is left to do."""
    claim, asked = secrets.token_hex(16), time.monotonic()
    claimed = console("POST", f"/v1/confirmations/{work['confirmation_ref']}/claim",
                      {"claim_id": claim, "proposal_hash": work["proposal_hash"], "object_version": work["object_version"]})
    path, payload = "/v1/actions/" + work["action_id"], claimed["payload"]
    with Lease(path, claim, asked, claimed["lease"]) as lease:
        try:
            approved(work, claimed)
            recheck(work, claimed["contract"], payload)
            run(work, claimed, path, claim)
        except (GiveBack, Refused, NoAnswer) as why:
            kept = isinstance(why, Refused) and why.code in ("lease-lost", "attempt-open")
            if lease.live() and not kept:  # with a code it can never run, and fails
                never = isinstance(why, GiveBack) and why.code
                console("POST", path + "/release", {"claim_id": claim, "reason": one_line(why), **({"code": never} if never else {})})
            raise


def run(work, claimed, path, claim):
    """Makes the request, or in a contract in steps every one that is left, in the order that the console says; reads back."""
    contract, payload, step = claimed["contract"], claimed["payload"], claimed["step"]
    while True:
        one, version = for_step(contract, step), (step or work)["object_version"]
        outcome, after = attempt(work, one, call(one, payload, (step or claimed)["execution_key"], version), path, claim, step)
        if outcome != "SUCCESS" or after["state"] not in ("executing", "accepted"):
            return
        following = after["next_step"]
        if step and not following and after["state"] == "executing":
            following = read_back(work, one, payload, step)
        if not following:
            return verify({**work, "kind": "verify", "version": after["version"]}, contract, payload)
        step = following


def read_back(work, one, payload, step):
    """Reads a step's post-conditions back, as often as the contract says. The next one may not begin before."""
    often = one["execution"]["verify"]
    for n in range(often["tries"]):
        time.sleep(seconds(often["window"]) / often["tries"] if n else 0)
        for tool in reads_of(one["execution"]["postconditions"]):
            after, _, _ = read(tool, work, payload, step)
            if after["next_step"]:
                return after["next_step"]
            if after["state"] != "executing":
                raise GiveBack("the action does not go on")
    raise GiveBack(f"step {step['name']} was not read back")


def attempt(work, contract, request, path, claim, step):
    """Records an attempt, sends once, and reports what is known of it."""
    if breaker.away():
        raise NoAnswer("the business system does not answer")
    method, where, headers, body = request
    fingerprint = "sha256:" + hashlib.sha256(repr((method, where, sorted(headers.items()), body)).encode()).hexdigest()
    receipt = {"receipt_id": secrets.token_hex(16), "attempt_id": secrets.token_hex(16), "claim_id": claim}
    recorded = {"attempt_id": receipt["attempt_id"], "claim_id": claim, "fingerprint": fingerprint, **({"step": step["name"]} if step else {})}
    asked = time.monotonic()  # the time to send counts from here: an answer may be late
    try:
        leave = console("POST", path + "/attempts", recorded)
    except NoAnswer:  # it may be recorded, and nothing was sent
        console("POST", path + "/receipts", {**receipt, "outcome": "FAILURE", "code": "NOT_SENT"})
        raise
    receipt.update(send(work, contract, leave["number"], request, asked + leave["send_within_ms"] / 1000))
    after = report(path + "/receipts", receipt, {}, tries=40)  # evidence, also when the lease is lost meanwhile
    return receipt["outcome"], after


def send(work, contract, number, request, send_by):
    """Sends the one request of an attempt, and says what is known of it."""
    execution = contract["execution"]
    try:
        status, text, headers = system(work, contract, request, WRITE_TOKEN, send_by)
    except NotSent:
        return {"outcome": "FAILURE", "code": "NOT_SENT"}
    except NoAnswer:
        return {"outcome": "UNKNOWN", "code": "EXECUTION_ERROR"}
    known, readable = {"http_status": status}, True
    try:
        if text and len(text) <= EVIDENCE:
            known["body"] = decoded(text)
    except ValueError:
        readable = False
    if status in execution["definite_failures"] or number == 1 and status in execution["conflicts"]:
        return {**known, "outcome": "FAILURE"}
    if not 200 <= status < 206 or not readable:
        return {**known, "outcome": "UNKNOWN", "code": "EXECUTION_ERROR"}
    version = headers.get("ETag", "").removeprefix("W/").strip('"') or at(known.get("body"), "version")
    if version is not None:
        known["object_version_after"] = words(version)
    return {**known, "outcome": "SUCCESS", "proves": "completed"}  # the console takes no more than the contract allows


def verify(work, contract, payload, step=None):
    """Reads back whether what was promised is there."""
    for tool in reads_of(for_step(contract, step)["execution"].get("postconditions")):
        read(tool, work, payload, step)


class Pace:
    """Keeps what failed from being tried at once again: the wait grows. Forgetting it is harmless."""

    def __init__(self):
        self.holds = {}

    def due(self, work):
        return all(time.monotonic() >= self.holds.get(about, (0, 0))[1] for about in (work["tool"], (work["kind"], work["action_id"])))

    def hold(self, about, wait=None):
        if len(self.holds) > 10_000:
            self.holds.clear()
        n = self.holds.get(about, (0, 0))[0] + 1
        self.holds[about] = n, time.monotonic() + (wait or 2 ** min(n, 6) * (0.75 + secrets.randbelow(500) / 1000))

    def forget(self, about):
        self.holds.pop(about, None)


pace = Pace()


def probe(work, contract, payload):
    """Reads with a tool of the contract that changes nothing; nothing is reported of it."""
    execution = contract["execution"]
    tools = [contract["approval"].get("before"), execution.get("permission"), (execution.get("status_query") or {}).get("tool"),
             *reads_of(execution.get("preconditions")), *reads_of(execution.get("postconditions"))]
    tool = next(filter(None, tools), None)
    try:
        query(tool, work, payload) if tool else system(work, contract, ("HEAD", "/", {}, None), READ_TOKEN)
    except (NotSent, NoAnswer):
        pass  # it is still away


def perform(work):
    """Does one piece of work. What fails is offered again, and waits longer every time."""
    about = (work["kind"], work["action_id"])
    if not pace.due(work):
        return False
    try:
        contract, payload, step = contract_of(work["tool"], work["tool_version"]), work["payload"], work["step"]
        if "http" not in contract and not contract["execution"].get("steps") or work["kind"] not in ("observe", "ask", "verify", "execute", "retry"):
            pace.hold(about, 300)
            return False
        if work["kind"] in ("execute", "retry"):
            breaker.look(lambda: probe(work, contract, payload))
            execute(work)
        elif work["kind"] == "observe":
            for tool in filter(None, [contract["execution"].get("permission"), work["read"]]):
                read(tool, work, payload)
        elif work["kind"] == "ask":  # what became of it, by its key
            read(work["read"], work, payload, step)
        else:
            verify(work, contract, payload, step)
        pace.forget(about)
        return True
    except Exception as why:  # whatever it is, other work goes on
        said = one_line(why) if isinstance(why, (Refused, GiveBack, NoAnswer)) else one_line(repr(why))
        sys.stderr.write(f"{work['kind']} {work['action_id']} {said}\n")  # whole: threads write there
        if isinstance(why, Refused) and why.code == "paused":
            pace.hold(work["tool"], PAUSED_FOR)  # a person has stopped it: nothing of it is claimed or sent
        else:
            pace.hold(about)
        return False


def main():
    tools, idle = urllib.parse.urlencode([("tool", pattern) for pattern in sys.argv[1:]]), 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        while True:
            try:
                work = console("GET", f"/v1/work?wait=20s&{tools}", timeout=35)["items"]
            except NoAnswer:
                continue
            except Refused as no:
                sys.exit(f"the console gives no work: {no}")
            idle = 0 if any(list(pool.map(perform, work))) else min(idle + 1, 4)
            time.sleep(0.15 * 2**idle if idle else 0)


if __name__ == "__main__":
    main()
