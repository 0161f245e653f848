#include "train/send/mlflow_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/heap.h"
#include "base/json.h"

enum { ID = 64, PLACE = 1024, PATH = 1536 };
#define API "/api/2.0/mlflow/"

struct train_mlflow {
    train_http *http;
    char *experiment_name, *experiment_id, *wanted_run; /* of the environment; NULL: none */
    char experiment[ID], run[ID];
    char at[ID];  /* the experiment of that run, as far as the server says it */
    char tag[ID]; /* sifr.run of the run, as far as it goes */
    char artifacts[PLACE];
};

/* --- opening --- */

/* NULL also where it is empty, as in MLflow. */
static const char *from_environment(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool is_true(const char *name) {
    const char *value = from_environment(name);
    return value && (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static sifr_status keep(const char *name, char **out, sifr_error *error) {
    const char *value = from_environment(name);
    return value ? base_copy_text(value, strlen(value), out, error) : SIFR_OK;
}

static sifr_status open_all(train_mlflow *m, const char *uri, sifr_error *error) {
    const train_http_login login = {
        .user = from_environment("MLFLOW_TRACKING_USERNAME"),
        .password = from_environment("MLFLOW_TRACKING_PASSWORD"),
        .token = from_environment("MLFLOW_TRACKING_TOKEN"),
        .certificates = from_environment("MLFLOW_TRACKING_SERVER_CERT_PATH"),
        .own_certificate = from_environment("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
        .insecure = is_true("MLFLOW_TRACKING_INSECURE_TLS")};
    BASE_TRY(keep("MLFLOW_EXPERIMENT_NAME", &m->experiment_name, error));
    BASE_TRY(keep("MLFLOW_EXPERIMENT_ID", &m->experiment_id, error));
    BASE_TRY(keep("MLFLOW_RUN_ID", &m->wanted_run, error));
    return train_http_open(uri, &login, &m->http, error);
}

/* Half of a login would be none, and the server's refusal would not say why. */
static sifr_status check_login(const char *uri, sifr_error *error) {
    bool user = from_environment("MLFLOW_TRACKING_USERNAME"),
         password = from_environment("MLFLOW_TRACKING_PASSWORD");
    if (user == password || from_environment("MLFLOW_TRACKING_TOKEN") || strchr(uri, '@'))
        return SIFR_OK;
    return base_fail(error, SIFR_USAGE,
                     "MLFLOW_TRACKING_%s is set without MLFLOW_TRACKING_%s; "
                     "set both, or none",
                     user ? "USERNAME" : "PASSWORD", user ? "PASSWORD" : "USERNAME");
}

/* The address is not shown as given: it may have a password. */
sifr_status train_mlflow_open(const char *uri, train_mlflow **out, sifr_error *error) {
    train_mlflow *m;
    sifr_error reason = {0};
    bool given = uri && *uri;
    if (!given) uri = from_environment("MLFLOW_TRACKING_URI");
    if (!uri)
        return base_fail(error, SIFR_USAGE,
                         "MLFLOW_TRACKING_URI is not set; give the address of MLflow's server");
    BASE_TRY(check_login(uri, error));
    BASE_TRY(base_alloc(1, sizeof *m, &m, error));
    sifr_status status = open_all(m, uri, &reason);
    if (status == SIFR_OK) {
        *out = m;
        return SIFR_OK;
    }
    train_mlflow_close(m);
    const char *colon = strchr(uri, ':');
    int scheme = colon && colon - uri < 20 && !memchr(uri, '@', (size_t)(colon - uri))
                     ? (int)(colon - uri)
                     : 0;
    if (status != SIFR_USAGE) return base_fail(error, status, "%s", reason.message);
    return base_fail(error, SIFR_USAGE, "%s%s%.*s%s %s", given ? "--to" : "MLFLOW_TRACKING_URI",
                     scheme ? " (" : "", scheme, uri, scheme ? ":…)" : "", reason.message);
}

void train_mlflow_close(train_mlflow *m) {
    if (!m) return;
    train_http_close(m->http);
    free(m->experiment_name);
    free(m->experiment_id);
    free(m->wanted_run);
    free(m);
}

train_http *train_mlflow_http(train_mlflow *m) {
    return m->http;
}

const char *train_mlflow_run_id(const train_mlflow *m) {
    return m->run;
}

const char *train_mlflow_artifacts(const train_mlflow *m) {
    return m->artifacts;
}

/* --- calls --- */

/* What the server says in a refusal: its code and message, where it is MLflow's. */
static void describe(const train_mlflow *m, const train_http_reply *reply, const json_t *answer,
                     char *out, size_t size) {
    const char *code = json_string_value(json_object_get(answer, "error_code"));
    const char *message = json_string_value(json_object_get(answer, "message"));
    char text[700], tame[400];
    snprintf(text, sizeof text, "%s%s%s", code ? code : "", code && message ? ": " : "",
             message ? message : "");
    train_http_tame(m->http, text, tame, sizeof tame);
    snprintf(out, size, "HTTP %d%s%s", reply->status, *tame ? ": " : "", tame);
}

static sifr_status refuse(const train_mlflow *m, const train_http_reply *reply,
                          const json_t *answer, sifr_error *error) {
    char why[512];
    const char *shown = train_http_shown(m->http), *advice = "";
    describe(m, reply, answer, why, sizeof why);
    if (reply->status == 403 && train_http_has_login(m->http))
        advice = "; the login that was given may not do this";
    else if (reply->status == 401 && train_http_has_login(m->http))
        advice = "; the login that was given is not accepted";
    else if (reply->status == 401 || reply->status == 403)
        advice = "; set MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and "
                 "MLFLOW_TRACKING_PASSWORD (other logins are not supported yet)";
    else if (reply->status >= 300 && reply->status < 400)
        advice = "; redirections are not followed: give the address that this one leads to";
    const char *message = json_string_value(json_object_get(answer, "message"));
    bool deleted = message && strstr(message, "must be in the 'active' state");
    bool wrong = reply->status == 400 && json_is_object(answer) && !deleted;
    return base_fail(error, wrong ? SIFR_USAGE : SIFR_FAILED, "%s: %s%s", shown, why, advice);
}

/* *code (may be NULL): the error code of an answer that is no success; such is an error where code
 * is NULL or has another. */
static sifr_status call(train_mlflow *m, const char *path, const json_t *body, const char *expected,
                        json_t **out, sifr_error *error) {
    train_http_reply reply;
    sifr_error reason = {0};
    json_t *answer = NULL;
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    *out = NULL;
    if (body && !text) return base_fail_alloc(error, 4096);
    sifr_status status = train_http_call(m->http, path, text, &reply, error);
    free(text);
    BASE_TRY(status);
    bool read = base_json_parse(reply.text, reply.size, "the answer", &answer, &reason) == SIFR_OK;
    const char *code = json_string_value(json_object_get(answer, "error_code"));
    if (reply.status == 200 && read && json_is_object(answer)) {
        *out = answer;
        return SIFR_OK;
    }
    if (reply.status == 200)
        status = base_fail(error, SIFR_FAILED, "%s: the answer is not one of MLflow's",
                           train_http_shown(m->http));
    else if (!expected || !code || strcmp(code, expected) != 0)
        status = refuse(m, &reply, answer, error);
    json_decref(answer);
    return status;
}

/* A call whose answer has nothing of use. Takes the body. */
static sifr_status tell(train_mlflow *m, const char *path, json_t *body, sifr_error *error) {
    json_t *answer = NULL;
    sifr_status status =
        body ? call(m, path, body, NULL, &answer, error) : base_fail_alloc(error, 4096);
    json_decref(answer);
    json_decref(body);
    return status;
}

static sifr_status wrong_answer(const train_mlflow *m, const char *lacks, sifr_error *error) {
    return base_fail(error, SIFR_FAILED, "%s: the answer has no %s, so it is not one of MLflow's",
                     train_http_shown(m->http), lacks);
}

/* An id of the server, which goes into paths and messages. */
static bool is_id(const char *text) {
    size_t size = text ? strlen(text) : 0;
    return size && size < ID &&
           strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == size;
}

/* --- the experiment --- */

static sifr_status take_experiment(train_mlflow *m, const json_t *answer, const char *name,
                                   sifr_error *error) {
    const json_t *experiment = json_object_get(answer, "experiment");
    const char *stage = json_string_value(json_object_get(experiment, "lifecycle_stage"));
    const char *id =
        json_string_value(json_object_get(experiment ? experiment : answer, "experiment_id"));
    if (!is_id(id)) return wrong_answer(m, "experiment_id", error);
    if (stage && strcmp(stage, "active") != 0)
        return base_fail(error, SIFR_FAILED,
                         "%s: the experiment %.100s is deleted; restore it, or set "
                         "MLFLOW_EXPERIMENT_NAME to another",
                         train_http_shown(m->http), name);
    snprintf(m->experiment, sizeof m->experiment, "%s", id);
    return SIFR_OK;
}

static sifr_status look_up(train_mlflow *m, const char *name, json_t **out, sifr_error *error) {
    char path[PATH] = API "experiments/get-by-name?experiment_name=";
    if (!train_http_escape(name, false, path, sizeof path))
        return base_fail(error, SIFR_USAGE, "MLFLOW_EXPERIMENT_NAME: more than %d bytes",
                         PATH / 3 - 60);
    return call(m, path, NULL, "RESOURCE_DOES_NOT_EXIST", out, error);
}

/* Another run may make it at the same time. */
static sifr_status make_experiment(train_mlflow *m, const char *name, json_t **out,
                                   sifr_error *error) {
    json_t *body = json_pack("{s:s}", "name", name);
    if (!body) return base_fail_alloc(error, 256);
    sifr_status status =
        call(m, API "experiments/create", body, "RESOURCE_ALREADY_EXISTS", out, error);
    json_decref(body);
    if (status == SIFR_OK && !*out) status = look_up(m, name, out, error);
    return status;
}

static sifr_status find_by_name(train_mlflow *m, const char *name, sifr_error *error) {
    json_t *answer = NULL;
    BASE_TRY(look_up(m, name, &answer, error));
    if (!answer) BASE_TRY(make_experiment(m, name, &answer, error));
    sifr_status status = take_experiment(m, answer, name, error);
    json_decref(answer);
    return status;
}

static sifr_status find_by_id(train_mlflow *m, const char *id, sifr_error *error) {
    char path[PATH] = API "experiments/get?experiment_id=";
    json_t *answer = NULL;
    if (!is_id(id) || !train_http_escape(id, false, path, sizeof path))
        return base_fail(error, SIFR_FAILED, "MLFLOW_EXPERIMENT_ID: no id of an experiment");
    BASE_TRY(call(m, path, NULL, "RESOURCE_DOES_NOT_EXIST", &answer, error));
    if (!answer)
        return base_fail(error, SIFR_FAILED,
                         "%s: MLFLOW_EXPERIMENT_ID: there is no experiment %s; set the id of one "
                         "that is there, or MLFLOW_EXPERIMENT_NAME",
                         train_http_shown(m->http), id);
    sifr_status status = take_experiment(m, answer, id, error);
    json_decref(answer);
    return status;
}

/* As MLflow's client: a name and an id have to be those of one experiment. */
static sifr_status find_experiment(train_mlflow *m, const train_mlflow_run *run,
                                   sifr_error *error) {
    bool now = m->experiment_name || m->experiment_id;
    const char *name = now ? m->experiment_name : run->experiment;
    const char *id = now ? m->experiment_id : run->experiment_id;
    char found[ID];
    if (m->experiment[0]) return SIFR_OK;
    if (id && !name) return find_by_id(m, id, error);
    BASE_TRY(find_by_name(m, name ? name : "Default", error));
    if (!id || strcmp(id, m->experiment) == 0) return SIFR_OK;
    snprintf(found, sizeof found, "%s", m->experiment);
    m->experiment[0] = '\0';
    return base_fail(error, SIFR_FAILED,
                     "%s: MLFLOW_EXPERIMENT_ID is not %s, the id of the experiment that "
                     "MLFLOW_EXPERIMENT_NAME names; set one of the two",
                     train_http_shown(m->http), found);
}

/* --- the run --- */

/* The value of the tag sifr.run; "" where there is none. */
static const char *tag_of(const json_t *run) {
    const json_t *tags = json_object_get(json_object_get(run, "data"), "tags"), *tag;
    size_t i;
    json_array_foreach(tags, i, tag) {
        const char *key = json_string_value(json_object_get(tag, "key"));
        const char *value = json_string_value(json_object_get(tag, "value"));
        if (key && value && strcmp(key, "sifr.run") == 0) return value;
    }
    return "";
}

static sifr_status take_run(train_mlflow *m, const json_t *run, sifr_error *error) {
    const json_t *info = json_object_get(run, "info");
    const char *id = json_string_value(json_object_get(info, "run_id"));
    const char *place = json_string_value(json_object_get(info, "artifact_uri"));
    if (!is_id(id)) return wrong_answer(m, "run_id", error);
    snprintf(m->run, sizeof m->run, "%s", id);
    snprintf(m->tag, sizeof m->tag, "%.60s", tag_of(run));
    const char *experiment = json_string_value(json_object_get(info, "experiment_id"));
    snprintf(m->at, sizeof m->at, "%s", experiment && is_id(experiment) ? experiment : "");
    m->artifacts[0] = '\0';
    if (place && strlen(place) < sizeof m->artifacts)
        snprintf(m->artifacts, sizeof m->artifacts, "%s", place);
    return SIFR_OK;
}

static bool is_active(const json_t *run) {
    const char *stage =
        json_string_value(json_object_get(json_object_get(run, "info"), "lifecycle_stage"));
    return !stage || strcmp(stage, "active") == 0;
}

/* *found: there is a run with this id, and it is not deleted. */
static sifr_status get_run(train_mlflow *m, const char *id, bool *found, sifr_error *error) {
    char path[PATH] = API "runs/get?run_id=";
    json_t *answer = NULL;
    *found = false;
    if (!is_id(id) || !train_http_escape(id, false, path, sizeof path)) return SIFR_OK;
    BASE_TRY(call(m, path, NULL, "RESOURCE_DOES_NOT_EXIST", &answer, error));
    const json_t *run = json_object_get(answer, "run");
    sifr_status status = SIFR_OK;
    *found = run && is_active(run);
    if (*found) status = take_run(m, run, error);
    json_decref(answer);
    return status;
}

static sifr_status search_run(train_mlflow *m, const char *id, bool *found, sifr_error *error) {
    char filter[128];
    json_t *answer = NULL;
    snprintf(filter, sizeof filter, "tags.`sifr.run` = '%.64s'", id);
    json_t *body = json_pack("{s:[s], s:s, s:s, s:i}", "experiment_ids", m->experiment, "filter",
                             filter, "run_view_type", "ACTIVE_ONLY", "max_results", 1);
    *found = false;
    if (!body) return base_fail_alloc(error, 256);
    sifr_status status = call(m, API "runs/search", body, NULL, &answer, error);
    json_decref(body);
    BASE_TRY(status);
    const json_t *run = json_array_get(json_object_get(answer, "runs"), 0);
    *found = run != NULL;
    if (run) status = take_run(m, run, error);
    json_decref(answer);
    return status;
}

static sifr_status make_run(train_mlflow *m, const train_mlflow_run *run, sifr_error *error) {
    json_t *answer = NULL;
    json_t *body = json_pack("{s:s, s:s, s:I, s:[{s:s, s:s}]}", "experiment_id", m->experiment,
                             "run_name", run->name, "start_time", (json_int_t)run->began, "tags",
                             "key", "sifr.run", "value", run->id);
    if (!body) return base_fail_alloc(error, 256);
    sifr_status status = call(m, API "runs/create", body, NULL, &answer, error);
    json_decref(body);
    if (status == SIFR_OK) status = take_run(m, json_object_get(answer, "run"), error);
    json_decref(answer);
    return status;
}

/* The run that the user names gets the tag too, and goes on, as one that MLflow's client takes. */
static sifr_status take_wanted(train_mlflow *m, const train_mlflow_run *run, sifr_error *error) {
    bool found;
    BASE_TRY(get_run(m, m->wanted_run, &found, error));
    if (!found)
        return base_fail(error, SIFR_FAILED,
                         "%s: MLFLOW_RUN_ID: no run with this id that is not "
                         "deleted",
                         train_http_shown(m->http));
    if (strcmp(m->tag, run->id) == 0) return SIFR_OK;
    BASE_TRY(train_mlflow_state(m, "RUNNING", 0, error));
    return tell(m, API "runs/set-tag",
                json_pack("{s:s, s:s, s:s}", "run_id", m->run, "key", "sifr.run", "value", run->id),
                error);
}

/* A run stays in the experiment that it was made in. Nothing is made here. */
static sifr_status check_experiment(train_mlflow *m, sifr_error *error) {
    json_t *answer = NULL;
    bool same = !m->experiment_id || strcmp(m->experiment_id, m->at) == 0;
    if ((!m->experiment_name && !m->experiment_id) || !m->at[0]) return SIFR_OK;
    if (same && m->experiment_name) {
        BASE_TRY(look_up(m, m->experiment_name, &answer, error));
        sifr_status status =
            answer ? take_experiment(m, answer, m->experiment_name, error) : SIFR_OK;
        same = answer && strcmp(m->experiment, m->at) == 0;
        json_decref(answer);
        BASE_TRY(status);
    }
    if (same) return SIFR_OK;
    m->experiment[0] = '\0';
    return base_fail(error, SIFR_FAILED,
                     "%s: the run is there in experiment %s, which is not the one that "
                     "MLFLOW_EXPERIMENT_%s names; unset that, or remove the run's spool.sent.json "
                     "to send all of it there as a new run",
                     train_http_shown(m->http), m->at, m->experiment_name ? "NAME" : "ID");
}

sifr_status train_mlflow_find(train_mlflow *m, const train_mlflow_run *run, sifr_error *error) {
    bool found = false;
    if (m->wanted_run) return take_wanted(m, run, error);
    if (run->known) BASE_TRY(get_run(m, run->known, &found, error));
    if (found) return check_experiment(m, error);
    BASE_TRY(find_experiment(m, run, error));
    BASE_TRY(search_run(m, run->id, &found, error));
    return found ? SIFR_OK : make_run(m, run, error);
}

/* --- what it gets --- */

sifr_status train_mlflow_metrics(train_mlflow *m, const char *metrics, sifr_error *error) {
    size_t size = strlen(metrics) + ID + 64;
    train_http_reply reply;
    char *body;
    json_t *answer = NULL;
    BASE_TRY(base_alloc(size, 1, &body, error));
    snprintf(body, size, "{\"run_id\":\"%s\",\"metrics\":[%s]}", m->run, metrics);
    sifr_status status = train_http_call(m->http, API "runs/log-batch", body, &reply, error);
    free(body);
    BASE_TRY(status);
    if (reply.status == 200) return SIFR_OK;
    status = base_json_parse(reply.text, reply.size, "the answer", &answer, NULL);
    status = refuse(m, &reply, answer, error);
    json_decref(answer);
    return status;
}

static sifr_status log_pairs(train_mlflow *m, const char *as, json_t *values, sifr_error *error) {
    json_t *list = json_array(), *value;
    const char *key;
    bool whole = list;
    json_object_foreach(values, key, value) whole =
        whole &&
        json_array_append_new(list, json_pack("{s:s, s:O}", "key", key, "value", value)) == 0;
    if (!whole) {
        json_decref(list);
        return base_fail_alloc(error, 4096);
    }
    return tell(m, API "runs/log-batch", json_pack("{s:s, s:o}", "run_id", m->run, as, list),
                error);
}

sifr_status train_mlflow_parameters(train_mlflow *m, json_t *parameters, sifr_error *error) {
    return log_pairs(m, "params", parameters, error);
}

sifr_status train_mlflow_tags(train_mlflow *m, json_t *tags, sifr_error *error) {
    return log_pairs(m, "tags", tags, error);
}

sifr_status train_mlflow_state(train_mlflow *m, const char *state, int64_t time,
                               sifr_error *error) {
    bool ends = strcmp(state, "RUNNING") != 0;
    json_t *body = json_pack("{s:s, s:s}", "run_id", m->run, "status", state);
    if (body && ends) json_object_set_new(body, "end_time", json_integer(time));
    return tell(m, API "runs/update", body, error);
}

/* "mlflow-artifacts:/1/abc/artifacts", or with the server's own name, "mlflow-artifacts://host/1".
 * The part behind; NULL: another store. */
static const char *inside_proxy(const train_mlflow *m) {
    static const char scheme[] = "mlflow-artifacts:";
    const char *at = m->artifacts, *shown = strstr(train_http_shown(m->http), "://") + 3;
    if (strncmp(at, scheme, sizeof scheme - 1) != 0) return NULL;
    at += sizeof scheme - 1;
    if (at[0] == '/' && at[1] == '/' && at[2] != '/') {
        size_t host = strcspn(at + 2, "/");
        if (strlen(shown) < host || strncmp(at + 2, shown, host) != 0) return NULL;
        at += 2 + host;
    }
    return at + strspn(at, "/");
}

sifr_status train_mlflow_artifact(train_mlflow *m, const char *name, int file, uint64_t bytes,
                                  sifr_error *error) {
    char path[PATH] = "/api/2.0/mlflow-artifacts/artifacts/", store[80];
    const char *inside = inside_proxy(m);
    train_http_reply reply;
    json_t *answer = NULL;
    snprintf(store, sizeof store, "%.*s", (int)strcspn(m->artifacts, ":"), m->artifacts);
    train_http_tame(m->http, store[0] ? store : "no store", store, sizeof store);
    if (!inside)
        return base_fail(error, SIFR_USAGE,
                         "artefacts of the run are kept in %s, which is not supported yet "
                         "(supported: mlflow-artifacts, of `mlflow server --serve-artifacts`)",
                         store);
    if (!train_http_escape(inside, true, path, sizeof path - 2) || !strcat(path, "/") ||
        !train_http_escape(name, true, path, sizeof path))
        return base_fail(error, SIFR_USAGE, "%.100s…: name too long", name);
    BASE_TRY(train_http_put(m->http, path, file, (size_t)bytes, &reply, error));
    if (reply.status == 200) return SIFR_OK;
    sifr_status status = base_json_parse(reply.text, reply.size, "the answer", &answer, NULL);
    status = refuse(m, &reply, answer, error);
    json_decref(answer);
    return status;
}
