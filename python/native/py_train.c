/* A whole run. Its events go to one callable: call(kind, *values); what it returns is whether to
 * stop, and what it raises stops the run as well, and comes out when the run has saved. */
#include "py_common.h"

enum { ASKED = 1, RAISED = 2 }; /* how a callback stops a run, for all ranks to hear */

typedef struct run {
    py_call call;
    PyObject *tell;
    bool every_step;                /* progress is told, too */
    PyObject *kind, *value, *trace; /* what a callback raised */
    py_loss loss;                   /* of the caller's */
} run;

static int note_raised(run *r) {
    PyErr_Fetch(&r->kind, &r->value, &r->trace);
    return RAISED;
}

/* Takes the arguments over, which may be NULL with an exception. */
static int tell(run *r, PyObject *arguments) {
    PyObject *answer = arguments ? PyObject_CallObject(r->tell, arguments) : NULL;
    int stop = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_XDECREF(arguments);
    if (stop < 0) return note_raised(r);
    return stop ? ASKED : 0;
}

static int on_progress(void *user, const sifr_train_progress *p) {
    run *r = user;
    if (r->kind) return RAISED;
    py_callback_begins(&r->call);
    int answer = PyErr_CheckSignals() < 0 ? note_raised(r) : 0;
    if (!answer && r->every_step)
        answer = tell(r, Py_BuildValue("(sNLL)", "progress", PyBool_FromLong(p->begins),
                                       (long long)p->step, (long long)p->total_steps));
    py_callback_ends(&r->call);
    return answer;
}

static int on_step(void *user, const sifr_train_step *s) {
    run *r = user;
    if (r->kind) return RAISED;
    py_callback_begins(&r->call);
    int answer =
        tell(r, Py_BuildValue("(sLLdLddddN)", "step", (long long)s->step, (long long)s->total_steps,
                              s->loss, (long long)s->labelled, s->gradient_norm, s->loss_scale,
                              s->learning_rate, s->seconds, PyBool_FromLong(s->updated)));
    py_callback_ends(&r->call);
    return answer;
}

static PyObject *scores_of(const sifr_train_evaluation *e) {
    PyObject *scores = PyDict_New();
    for (int i = 0; i < e->score_count; i++)
        py_put_score(&scores, e->scores[i].name, e->scores[i].value);
    return scores;
}

static int on_evaluation(void *user, const sifr_train_evaluation *e) {
    run *r = user;
    if (r->kind) return RAISED;
    py_callback_begins(&r->call);
    int answer =
        tell(r, Py_BuildValue("(sLLLddN)", "evaluation", (long long)e->step, (long long)e->windows,
                              (long long)e->tokens, e->loss, e->seconds, scores_of(e)));
    py_callback_ends(&r->call);
    return answer;
}

static int on_saved(void *user, const sifr_train_save *s) {
    run *r = user;
    if (r->kind) return RAISED;
    py_callback_begins(&r->call);
    PyObject *path = PyUnicode_DecodeFSDefault(s->path);
    int answer = tell(
        r, Py_BuildValue("(sNLN)", "saved", PyBool_FromLong(s->model), (long long)s->step, path));
    py_callback_ends(&r->call);
    return answer;
}

static void on_line(void *user, const char *text) {
    run *r = user;
    if (r->kind) return;
    py_callback_begins(&r->call);
    (void)tell(r, Py_BuildValue("(sN)", "line", py_text(text)));
    py_callback_ends(&r->call);
}

static PyObject *describe(const sifr_train_outcome *o) {
    PyObject *report = o->report ? py_text(o->report) : Py_NewRef(Py_None);
    return Py_BuildValue("{sisisLsLsLsLsLsdsdsNsdsdsLsLsLsN}", "ranks", o->ranks, "stopped",
                         o->stopped, "first_step", (long long)o->first_step, "steps",
                         (long long)o->steps, "total_steps", (long long)o->total_steps, "tokens",
                         (long long)o->tokens, "skipped", (long long)o->skipped, "loss", o->loss,
                         "eval_loss", o->eval_loss, "has_perplexity",
                         PyBool_FromLong(o->has_perplexity), "seconds", o->seconds, "step_seconds",
                         o->step_seconds, "planned_bytes", (long long)o->planned_bytes,
                         "measured_bytes", (long long)o->measured_bytes, "baseline_bytes",
                         (long long)o->baseline_bytes, "report", report);
}

/* What a callback raised comes first, unless the run failed: then it is the context of that. */
static PyObject *end(py_state *state, run *r, sifr_status status, const sifr_train_outcome *o,
                     const sifr_error *error) {
    if (status == SIFR_OK && r->kind) {
        PyErr_Restore(r->kind, r->value, r->trace);
        return NULL;
    }
    if (status == SIFR_OK) return describe(o);
    if (!py_loss_raises(&r->loss)) py_raise(state, error);
    if (!r->kind) return NULL;
    PyObject *kind, *value, *trace;
    PyErr_Fetch(&kind, &value, &trace);
    PyErr_NormalizeException(&kind, &value, &trace);
    PyErr_NormalizeException(&r->kind, &r->value, &r->trace);
    PyException_SetContext(value, r->value); /* takes it over */
    Py_XDECREF(r->kind);
    Py_XDECREF(r->trace);
    PyErr_Restore(kind, value, trace);
    return NULL;
}

/* The config is the caller's own, and has the loss for this run alone. */
static sifr_status train(run *r, sifr_context *context, sifr_config *config, sifr_ranks *ranks,
                         const sifr_train_options *options, sifr_train_outcome *outcome,
                         sifr_error *error) {
    if (!r->loss.function) return sifr_train(context, config, ranks, options, outcome, error);
    sifr_status status = sifr_config_set_loss(config, py_loss_compute, &r->loss, error);
    if (status == SIFR_OK) status = sifr_train(context, config, ranks, options, outcome, error);
    (void)!sifr_config_set_loss(config, NULL, NULL, NULL);
    return status;
}

/* train(config, ranks or None, tell, progress, line, report, loss or None) */
PyObject *py_train(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *config, *ranks, *loss;
    int progress, line, report;
    run r = {.call = {.of = NULL}};
    sifr_error error = {0};
    if (!PyArg_ParseTuple(args, "OOOpppO", &config, &ranks, &r.tell, &progress, &line, &report,
                          &loss) ||
        !py_expect(config, state->config_type, "a config") ||
        (ranks != Py_None && !py_expect(ranks, state->ranks_type, "ranks")))
        return NULL;
    r.every_step = progress;
    r.loss = (py_loss){.state = state, .call = &r.call, .function = loss == Py_None ? NULL : loss};
    sifr_train_options options = {.size = sizeof options,
                                  .user = &r,
                                  .line = line ? on_line : NULL,
                                  .progress = on_progress,
                                  .step = on_step,
                                  .evaluation = on_evaluation,
                                  .saved = on_saved,
                                  .report = report};
    sifr_train_outcome outcome = {.size = sizeof outcome};
    sifr_context *context = py_context(state);
    if (!context || (ranks != Py_None && py_take(ranks) < 0)) return NULL;
    PyObject *out = NULL;
    if (py_enter(config, &r.call) == 0) {
        sifr_status status =
            train(&r, context, py_get(config), ranks == Py_None ? NULL : py_get(ranks), &options,
                  &outcome, &error);
        py_leave(&r.call);
        out = end(state, &r, status, &outcome, &error);
    }
    if (ranks != Py_None) py_give(ranks);
    sifr_text_free(outcome.report);
    return out;
}
