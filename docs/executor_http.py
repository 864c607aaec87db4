"""What the executor of this guide sends, and how: to the console, and as a contract says to a business system."""
import http.client, json, os, re, time, urllib.parse

CONSOLE, KEY = os.environ["COUNTERSIGN_URL"], os.environ["COUNTERSIGN_KEY"]
LARGEST = 16 << 20  # bytes of an answer


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
            connection.request(method, url.path.rstrip("/") + path, body, {name: value.encode() for name, value in headers.items()})
            answer = connection.getresponse()
            text = answer.read(LARGEST)
            if answer.length:
                raise NoAnswer("the answer was cut off")
            return answer.status, text, answer.headers
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(str(error))
    finally:
        connection.close()


def console(method, path, body=None, tries=8, timeout=15):
    """Calls the console, again when an answer is lost: the ids in the body make it the same call."""
    headers = {"Authorization": "Bearer " + KEY, "Content-Type": "application/json"}
    try:
        sent = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:  # half a character, or a number that is none
        raise Refused({"code": "malformed", "detail": str(error)})
    for n in range(tries):
        time.sleep(min(5, 0.1 * 2**n) if n else 0)
        try:
            status, text, _ = exchange(CONSOLE, method, path, headers, sent, timeout)
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


def report(path, said, instead, **how):
    """Reports what a system said; without it where the console cannot keep that, as half a character or a number beyond all."""
    try:
        return console("POST", path, said, **how)
    except Refused as no:
        if no.code not in ("malformed", "invalid-argument", "invalid-payload", "too-large"):
            raise
    for name in ("snapshot", "body", "object_version_after"):
        said.pop(name, None)
    said.update(instead)
    return console("POST", path, said, **how)


def decoded(text):
    """What a JSON text says; ValueError for what is none, such as NaN, or is nested beyond all reading."""
    def no_number(name):
        raise ValueError(f"{name} is no number")

    try:
        return json.loads(text, parse_constant=no_number)
    except RecursionError as error:
        raise ValueError(str(error))


def canonical(value):
    """The text that is hashed and sent: RFC 8785."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if not isinstance(value, float):
        return json.dumps(value, ensure_ascii=False)
    digits, _, exponent = repr(value).partition("e")  # as short as in JavaScript, and written a little differently
    if exponent and -7 < int(exponent) < 21:
        return f"{value:.{max(0, len(digits.replace('.', '').lstrip('-')) - 1 - int(exponent))}f}"
    return digits.removesuffix(".0") + (f"e{int(exponent):+d}" if exponent else "")


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
    return how["method"], path, headers, canonical(content).encode()


def for_step(contract, step):
    """The contract as if one of its steps were all of it."""
    if step is None:
        return contract
    own = next(s for s in contract["execution"]["steps"] if s["name"] == step["name"])
    terms = {name: own[name] for name in ("proves", "definite_failures", "conflicts")}
    return {**contract, "http": own["http"], "execution": {**contract["execution"], **terms, "postconditions": own.get("postconditions")}}


def seconds(text):
    """A duration such as 10s, 1m30s or 500ms."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    return sum(float(n) * units[unit] for n, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))
