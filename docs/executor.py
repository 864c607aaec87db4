#!/usr/bin/env python3
"""A complete executor for the console, in nothing but Python's standard library.

    export COUNTERSIGN_URL=… COUNTERSIGN_KEY=…     # the console, a key with the role executor
    export SYSTEM_URL=… SYSTEM_READ_TOKEN=… SYSTEM_WRITE_TOKEN=…     # the business system
    python3 executor.py 'refunds.*'                # the tools that it serves

It keeps nothing: killed at any moment and started again it finds out first what
became of what it sent, because the console has it ask before anything is sent
once more. What is approved is sent at most once per attempt, within the time
that the console gave for it, and what is not known is reported as not known.

Left out, to stay short: tools in several steps, renewing a lease (a run here is
shorter than one), checking the signature of the claim's token (Ed25519 is not in
the standard library), and leaving a system alone that does not answer.
"""
import concurrent.futures, datetime, functools, hashlib, http.client, json, os, re, secrets, sys, time, urllib.parse

CONSOLE, KEY = os.environ["COUNTERSIGN_URL"], os.environ["COUNTERSIGN_KEY"]
SYSTEM = os.environ["SYSTEM_URL"]
READ_TOKEN, WRITE_TOKEN = os.environ.get("SYSTEM_READ_TOKEN"), os.environ.get("SYSTEM_WRITE_TOKEN")
LARGEST, EVIDENCE = 16 << 20, 256 << 10  # bytes of an answer: at all, and for the console to keep


class NotSent(Exception):
    """It never left this machine."""


class NoAnswer(Exception):
    """Nobody here knows whether it took effect."""


class Refused(Exception):
    """The console said no; nothing was done."""

    def __init__(self, problem):
        super().__init__(f"{problem.get('code')}: {problem.get('detail')}")
        self.code = problem.get("code")


class GiveBack(Exception):
    """The claim is given back unused; with a code the action can never run."""

    def __init__(self, why, code=None):
        super().__init__(why)
        self.code = code


def exchange(base, method, path, headers, body, timeout, send_by=None):
    """Sends one request and reads its answer: no redirect, no kept connection, no second try."""
    url = urllib.parse.urlsplit(base)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.netloc, timeout=timeout)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise NotSent(str(error))
        if send_by is not None and time.monotonic() >= send_by:
            raise NotSent("the time to send is over")
        try:
            connection.request(method, url.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            text = answer.read(LARGEST)
            if answer.length:
                raise NoAnswer("the answer was cut off")
            return answer.status, text
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(str(error))
    finally:
        connection.close()


def console(method, path, body=None, tries=8, wait=0):
    """Calls the console, again when an answer is lost: the ids in the body make it the same call."""
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
    sent = None if body is None else json.dumps(body, ensure_ascii=False).encode()
    for n in range(tries):
        time.sleep(min(5, 0.1 * 2**n) if n else 0)
        try:
            status, text = exchange(CONSOLE, method, path, headers, sent, 15 + wait)
        except (NotSent, NoAnswer):
            continue
        try:
            said = json.loads(text)
        except ValueError:  # it comes from something in between
            said = None
        if status < 300 and said is not None:
            return said
        definite = isinstance(said, dict) and said.get("code") in ("paused", "tool-unavailable")
        if definite or 300 <= status < 500 and status != 429:
            raise Refused(said if isinstance(said, dict) else {"code": f"status {status}"})
    raise NoAnswer("the console does not answer")


def first(pointer):
    return pointer.lstrip("/").split("/")[0]


def at(document, pointer):
    """The value at a JSON Pointer, or at a top-level field; None when there is none."""
    for name in pointer[1:].split("/") if pointer.startswith("/") else [pointer]:
        name = name.replace("~1", "/").replace("~0", "~")
        document = document.get(name) if isinstance(document, dict) else None
    return document


def words(value):
    """A value as it is written in an address."""
    return value if isinstance(value, str) else json.dumps(value)


def call(contract, payload, key, version=None):
    """What a contract says to send: method, path, headers, body. What neither path nor body carries is the query."""
    how, rest = contract["http"], {name: value for name, value in payload.items() if value is not None}

    def fill(place):
        rest.pop(first(place[1]), None)
        value = at(payload, place[1])
        if value is None or words(value) in ("", ".", ".."):
            raise GiveBack("its address cannot be made", "INVALID_ARGUMENT")
        return urllib.parse.quote(words(value), safe="")

    path = re.sub(r"{([^}]+)}", fill, how["path"])
    if how["body"] == "none":
        content = None
    elif how["body"] == "payload":
        content, rest = dict(payload), {}
    elif isinstance(how["body"], str):  # one part of the payload
        content = at(payload, how["body"])
        rest.pop(first(how["body"]), None)
    else:  # some of its fields
        content = {name: payload[name] for name in how["body"] if name in payload}
        rest = {name: value for name, value in rest.items() if name not in content}
    if rest:
        path += "?" + urllib.parse.urlencode([(name, words(v)) for name, value in sorted(rest.items()) for v in (value if isinstance(value, list) else [value])])
    headers = {"Accept": "application/json", **how.get("headers", {})}
    if how["idempotency"] == "header" and key:
        headers["Idempotency-Key"] = key
    elif how["idempotency"].startswith("/"):
        content[how["idempotency"][1:]] = key
    if version is not None and contract["object_version"] != "none":
        headers["If-Match"] = version if version.startswith(('"', "W/")) else f'"{version}"'
    if content is None:
        return how["method"], path, headers, None
    headers["Content-Type"] = "application/json"
    return how["method"], path, headers, json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def seconds(text):
    """A duration such as 10s, 1m30s or 500ms."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))


@functools.lru_cache(maxsize=500)
def contract_of(tool, version):
    return console("GET", f"/v1/tools/{tool}?version={version}")["contract"]


def observation_id(work, tool):
    """Executors that are at the same piece of work report it under one id, so that it counts once."""
    if work["kind"] in ("execute", "retry"):
        return secrets.token_hex(16)  # only one of them has the claim
    return hashlib.sha256(f"{work['kind']} {work['action_id']} {work['version']} {tool}".encode()).hexdigest()[:32]


def read(tool, work, payload):
    """Reads with a tool that changes nothing, and reports what it showed. The console judges it."""
    contract = console("GET", "/v1/tools/" + tool)["contract"]
    target = work["target"] or {"type": "", "id": ""}
    known = {**payload, "actor_id": work["actor"]["id"], "execution_key": work["execution_key"],
             "idempotency_key": work["execution_key"], "target_type": target["type"], "target_id": target["id"]}
    own = (contract.get("target") or {}).get("id")
    if isinstance(own, str):
        known.setdefault(own[1:], target["id"])
    asked = {name: known[name] for name in contract["input_schema"].get("properties", {}) if known.get(name) is not None}
    seen = {"observation_id": observation_id(work, tool), "tool": tool, "observed_at": datetime.datetime.now(datetime.timezone.utc).isoformat()}
    try:
        method, path, headers, body = call(contract, asked, "")
        if READ_TOKEN:
            headers["Authorization"] = "Bearer " + READ_TOKEN
        status, text = exchange(SYSTEM, method, path, headers, body, seconds(contract["execution"]["timeout"]))
        if contract["mode"] == "read" and 200 <= status < 206 and len(text) <= EVIDENCE:
            seen["snapshot"] = json.loads(text)
        else:
            seen["error"] = f"status {status}"
    except (NotSent, NoAnswer, GiveBack, ValueError) as error:
        seen["error"] = "it cannot be read: " + (str(error) or "no answer")
    after = console("POST", f"/v1/actions/{work['action_id']}/observations", seen)
    holds = next((o["holds"] for o in after["observations"] if o["observation_id"] == seen["observation_id"]), None)
    return after["state"], seen.get("snapshot"), holds


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
        state, snapshot, holds = read(tool, work, payload)
        if state != "executing" or snapshot is None or tool in conditions and holds is not True:
            raise GiveBack(f"{tool} does not show that it may run")


def execute(work):
    """Claims, looks again, records an attempt, sends once, reports, reads back."""
    path, claim = "/v1/actions/" + work["action_id"], secrets.token_hex(16)
    claimed = console("POST", f"/v1/confirmations/{work['confirmation_ref']}/claim",
                      {"claim_id": claim, "proposal_hash": work["proposal_hash"], "object_version": work["object_version"]})
    contract, payload, key = claimed["contract"], claimed["payload"], claimed["execution_key"]
    try:
        recheck(work, contract, payload)
        method, where, headers, body = call(contract, payload, key, work["object_version"])
    except (GiveBack, Refused, NoAnswer) as why:
        never = isinstance(why, GiveBack) and why.code  # it cannot run at all, and fails
        console("POST", path + "/release", {"claim_id": claim, **({"code": never} if never else {})})
        raise
    fingerprint = hashlib.sha256(repr((method, where, sorted(headers.items()), body)).encode()).hexdigest()
    receipt = {"receipt_id": secrets.token_hex(16), "attempt_id": secrets.token_hex(16), "claim_id": claim}
    asked = time.monotonic()  # the time to send counts from here: an answer may be late
    try:
        leave = console("POST", path + "/attempts", {"attempt_id": receipt["attempt_id"], "claim_id": claim, "fingerprint": "sha256:" + fingerprint})
    except NoAnswer:  # it may be recorded, and nothing was sent
        console("POST", path + "/receipts", {**receipt, "outcome": "FAILURE", "code": "NOT_SENT"})
        raise
    except Refused as no:  # lease-lost, attempt-open, …: nothing was recorded, nothing is sent
        if no.code not in ("lease-lost", "attempt-open"):
            console("POST", path + "/release", {"claim_id": claim})
        raise
    if WRITE_TOKEN:
        headers["Authorization"] = "Bearer " + WRITE_TOKEN
    send_by = asked + leave["send_within_ms"] / 1000
    receipt.update(attempted(contract, leave["number"], method, where, headers, body, send_by))
    after = console("POST", path + "/receipts", receipt, tries=40)  # evidence, also when the lease is lost meanwhile
    if receipt["outcome"] == "SUCCESS" and after["state"] in ("executing", "accepted"):
        verify({**work, "kind": "verify", "version": after["version"]}, contract, payload)


def attempted(contract, number, method, where, headers, body, send_by):
    """Sends the one request of an attempt, and says what is known of it."""
    execution = contract["execution"]
    try:
        status, text = exchange(SYSTEM, method, where, headers, body, seconds(execution["timeout"]), send_by)
    except NotSent:
        return {"outcome": "FAILURE", "code": "NOT_SENT"}
    except NoAnswer:
        return {"outcome": "UNKNOWN", "code": "EXECUTION_ERROR"}
    known, readable = {"http_status": status}, True
    try:
        if text and len(text) <= EVIDENCE:
            known["body"] = json.loads(text)
    except ValueError:
        readable = False
    if status in execution["definite_failures"] or number == 1 and status in execution["conflicts"]:
        return {**known, "outcome": "FAILURE"}
    if 200 <= status < 206 and readable:
        return {**known, "outcome": "SUCCESS", "proves": "completed"}  # the console takes no more than the contract allows
    return {**known, "outcome": "UNKNOWN", "code": "EXECUTION_ERROR"}


def verify(work, contract, payload):
    """Reads back whether what was promised is there."""
    for tool in reads_of(contract["execution"].get("postconditions")):
        read(tool, work, payload)


def perform(work):
    """Does one piece of work. What fails is offered again; the console keeps count."""
    try:
        contract, payload = contract_of(work["tool"], work["tool_version"]), work["payload"]
        if "http" not in contract or contract["execution"].get("steps"):
            return False
        if work["kind"] == "observe":
            for tool in filter(None, [contract["execution"].get("permission"), work["read"]]):
                read(tool, work, payload)
        elif work["kind"] == "ask":  # what became of it, by its key
            read(contract["execution"]["status_query"]["tool"], work, payload)
        elif work["kind"] == "verify":
            verify(work, contract, payload)
        elif work["kind"] in ("execute", "retry"):
            execute(work)
        else:
            return False
        return True
    except (Refused, GiveBack, NoAnswer) as why:
        print(work["kind"], work["action_id"], why, file=sys.stderr, flush=True)
        return False


def main():
    tools = urllib.parse.urlencode([("tool", pattern) for pattern in sys.argv[1:]])
    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        while True:
            try:
                work = console("GET", f"/v1/work?wait=20s&{tools}", wait=20)["items"]
            except NoAnswer:
                continue
            except Refused as no:
                sys.exit(f"the console gives no work: {no}")
            if not any(list(pool.map(perform, work))):
                time.sleep(0.5)


if __name__ == "__main__":
    main()
