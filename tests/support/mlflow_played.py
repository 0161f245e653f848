"""MLflow's server, played: mlflow_played.py FOLDER [PORT]

Answers as MLflow 3.17.2 on SQLite does (tests/soak/test_soak_mlflow.sh runs the real one), on a
port of 127.0.0.1 that it writes into FOLDER/port. FOLDER/server.json has what it keeps, after each
call; FOLDER/calls a line for each call. FOLDER/mood, if there, says how it is wrong: a word, and
perhaps how many calls more it answers first.
"""

import base64
import http.server
import json
import os
import ssl
import sys
import time
import urllib.parse

folder = sys.argv[1]
kept = {"experiments": {"0": "Default"}, "runs": {}, "files": {}}
LOGIN = os.environ.get("PLAYED_LOGIN")  # the only Authorization that it takes


def mood():
    """The word, once its calls are used up."""
    try:
        with open(folder + "/mood") as file:
            word, _, calls = file.read().strip().partition(" ")
    except FileNotFoundError:
        return ""
    if calls and int(calls) > 0:
        with open(folder + "/mood.new", "w") as file:
            file.write(f"{word} {int(calls) - 1}")
        os.rename(folder + "/mood.new", folder + "/mood")
        return ""
    return word


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.answer = status, {"error_code": code, "message": message}


def no_run(run_id):
    return Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Run with id={run_id} not found")


def run_of(body):
    if body["run_id"] not in kept["runs"]:
        raise no_run(body["run_id"])
    return kept["runs"][body["run_id"]]


def shown(run):
    return {"info": {key: run[key] for key in ("run_id", "experiment_id", "artifact_uri",
                                             "lifecycle_stage")},
            "data": {"tags": [{"key": k, "value": v} for k, v in run["tags"].items()]}}


def get_experiment(body):
    name = body["experiment_name"]
    for key, value in kept["experiments"].items():
        if value == name:
            return {"experiment": {"experiment_id": key, "name": name, "lifecycle_stage": "active"}}
    raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Could not find experiment with name '{name}'")


def get_experiment_by_id(body):
    key = body["experiment_id"]
    if key not in kept["experiments"]:
        raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"No Experiment with id={key} exists")
    return {"experiment": {"experiment_id": key, "name": kept["experiments"][key],
                           "lifecycle_stage": "active"}}


def create_experiment(body):
    key = str(len(kept["experiments"]))
    kept["experiments"][key] = body["name"]
    return {"experiment_id": key}


def get_run(body):
    return {"run": shown(run_of(body))}


def search(body):
    wanted = body["filter"].split("'")[1]
    assert body["filter"] == f"tags.`sifr.run` = '{wanted}'", body
    found = [run for run in kept["runs"].values()
             if run["tags"].get("sifr.run") == wanted and run["lifecycle_stage"] == "active"
             and run["experiment_id"] in body["experiment_ids"]]
    return {"runs": [shown(run) for run in found]} if found else {}


def create_run(body):
    run_id = f"{len(kept['runs']) + 1:032x}"
    store = os.environ.get("PLAYED_STORE", "mlflow-artifacts:")
    kept["runs"][run_id] = run = {
        "run_id": run_id, "experiment_id": body["experiment_id"], "name": body["run_name"],
        "artifact_uri": f"{store}/{body['experiment_id']}/{run_id}/artifacts",
        "lifecycle_stage": "active", "states": ["RUNNING"], "start_time": body["start_time"],
        "tags": {tag["key"]: tag["value"] for tag in body["tags"]}, "params": {}, "metrics": []}
    return {"run": shown(run)}


def set_tag(body):
    run_of(body)["tags"][body["key"]] = body["value"]
    return {}


def log_batch(body):
    run = run_of(body)
    metrics, params = body.get("metrics", []), body.get("params", [])
    if len(metrics) > 1000 or len(params) > 100 or len(body.get("tags", [])) > 100:
        raise Refused(400, "INVALID_PARAMETER_VALUE", "A batch logging request can contain at most")
    for param in params:
        old = run["params"].get(param["key"], param["value"])
        if old != param["value"]:
            raise Refused(400, "INVALID_PARAMETER_VALUE",
                          "Changing param values is not allowed. Params were already logged="
                          f"'[{{'key': '{param['key']}', 'old_value': '{old}', 'new_value': "
                          f"'{param['value']}'}}]' for run ID='{run['run_id']}'.")
    for tag in body.get("tags", []):
        run["tags"][tag["key"]] = tag["value"]
    for param in params:
        run["params"][param["key"]] = param["value"]
    for metric in metrics:  # no NaN equals another: MLflow inserts it again, which its data base refuses
        if metric["value"] == "NaN" and \
                [metric["key"], metric["step"], "NaN", metric["timestamp"]] in run["metrics"]:
            raise Refused(400, "BAD_REQUEST", "(sqlite3.IntegrityError) UNIQUE constraint failed: "
                                              "metrics.key, metrics.timestamp, metrics.step")
    for metric in metrics:
        if metric["key"] in os.environ.get("PLAYED_REFUSES", "").split():
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"No metric {metric['key']} is taken")
        if not isinstance(metric["value"], (int, float)) and \
                metric["value"] not in ("NaN", "Infinity", "-Infinity"):
            raise Refused(400, "INVALID_PARAMETER_VALUE", f"Invalid value {metric['value']}")
        row = [metric["key"], metric["step"], metric["value"], metric["timestamp"]]
        if row not in run["metrics"]:
            run["metrics"].append(row)
    return {}


def update(body):
    run = run_of(body)
    run["states"].append(body["status"])
    run["end_time"] = body.get("end_time")
    return {}


CALLS = {"experiments/get-by-name": get_experiment, "experiments/get": get_experiment_by_id,
         "experiments/create": create_experiment,
         "runs/get": get_run, "runs/search": search, "runs/create": create_run,
         "runs/set-tag": set_tag, "runs/log-batch": log_batch, "runs/update": update}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, text, more=()):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def be_wrong(self, word):
        """Whether the mood has answered."""
        if word == "slow":
            time.sleep(3600)
        elif word == "huge":
            try:
                self.reply(200, b'{"runs": [' + b" " * (4 << 20) + b"]}")
            except ConnectionError:
                pass
        elif word == "deep":
            self.reply(200, b"[" * 100000)
        elif word == "page":
            self.reply(200, b"<html>Welcome</html>")
        elif word == "odd":
            self.reply(200, b'{"run": {"info": {"run_id": "../../x"}}, "runs": [7],'
                            b' "experiment": []}')
        elif word == "echo":  # shows the login in a message, and turns the terminal red
            secret = self.headers.get("Authorization", "").split(" ")[-1]
            self.reply(500, json.dumps({"error_code": "\x1b[31mINTERNAL_ERROR",
                                        "message": "You sent " + secret}).encode())
        elif word == "moved":
            self.reply(302, b"", [("Location", "http://127.0.0.1:1/")])
        elif word == "torn":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            self.close_connection = True
        elif word == "busy":
            self.reply(429, b'{"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "Slow down"}')
        elif word == "away":
            self.close_connection = True
        else:
            return False
        return True

    def answer(self, body):
        url = urllib.parse.urlparse(self.path)
        with open(folder + "/calls", "a") as file:
            file.write(f"{self.command} {url.path} {len(body)}\n")
        if LOGIN and self.headers.get("Authorization") != LOGIN:
            return self.reply(401, b"You are not authenticated.")
        if self.be_wrong(mood()):
            return None
        try:
            if self.command == "PUT":
                kept["files"][url.path.rpartition("/artifacts/")[0].split("/")[-1] + "/" +
                              url.path.rpartition("/artifacts/")[2]] = base64.b64encode(
                                  body).decode()
                answer = {}
            else:
                assert len(body) <= 1000000
                asked = json.loads(body) if body else dict(urllib.parse.parse_qsl(url.query))
                answer = CALLS[url.path.removeprefix("/api/2.0/mlflow/")](asked)
            status = 200
        except Refused as refused:
            status, answer = refused.status, refused.answer
        with open(folder + "/server.new", "w") as file:
            json.dump(kept, file)
        os.rename(folder + "/server.new", folder + "/server.json")
        return self.reply(status, json.dumps(answer).encode())

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    do_PUT = do_POST


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if sys.argv[2:] else 0),
                                         Server)
server.daemon_threads = True
if os.environ.get("PLAYED_TLS"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*os.environ["PLAYED_TLS"].split(":"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.handle_error = lambda *_: None  # clients that leave
with open(folder + "/port.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(folder + "/port.new", folder + "/port")
server.serve_forever()
