/* Plans and exports: a call each, without an object that stays. */
#include <string.h>

#include "py_common.h"

/* What a plan's calls made. */
typedef struct planned {
    sifr_plan *plan;
    sifr_config *chosen;
    sifr_plan_figures figures;
    char *json, *text;
    sifr_error misfit; /* why it does not fit */
} planned;

static sifr_status make_plan(sifr_context *context, const sifr_config *config,
                             const sifr_plan_options *options, planned *out, sifr_error *error) {
    sifr_status status = sifr_plan_create(context, config, options, &out->plan, error);
    if (status == SIFR_OK && options->fit) status = sifr_plan_fit(out->plan, &out->chosen, error);
    if (status != SIFR_OK) return status;
    sifr_plan_get(out->plan, &out->figures);
    if (!options->fit && sifr_plan_fits(out->plan, &out->misfit) == SIFR_OK)
        out->misfit.message[0] = 0;
    status = sifr_plan_json(out->plan, false, &out->json, error);
    sifr_plan_part part = options->fit ? SIFR_PLAN_CHOSEN : SIFR_PLAN_OWN;
    if (status == SIFR_OK) status = sifr_plan_text(out->plan, part, &out->text, error);
    return status;
}

static PyObject *classes_of(const sifr_plan *plan) {
    PyObject *list = PyList_New(0);
    sifr_plan_class c = {.size = sizeof c};
    for (size_t i = 0; list && sifr_plan_class_at(plan, i, &c); i++) {
        PyObject *row =
            Py_BuildValue("(sLLLL)", c.name, (long long)c.bytes, (long long)c.most_bytes,
                          (long long)c.host_bytes, (long long)c.nvme_bytes);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *figures_of(const sifr_plan_figures *f) {
    return Py_BuildValue(
        "{sLsLsLsLsLsLsLsLsLsLsLsdsdsN}", "parameters", (long long)f->parameters, "bytes",
        (long long)f->bytes, "host_bytes", (long long)f->host_bytes, "nvme_bytes",
        (long long)f->nvme_bytes, "baseline_bytes", (long long)f->baseline_bytes, "room_bytes",
        (long long)f->room_bytes, "ranks_per_host", (long long)f->ranks_per_host,
        "checkpoint_bytes", (long long)f->checkpoint_bytes, "micro_batch_size",
        (long long)f->micro_batch_size, "gradient_accumulation_steps",
        (long long)f->gradient_accumulation_steps, "seq_length", (long long)f->seq_length,
        "step_seconds", f->step_seconds, "tokens_per_second", f->tokens_per_second, "fits",
        PyBool_FromLong(f->fits));
}

static void release_config(void *handle) {
    sifr_config_free(handle);
}

static PyObject *describe(py_state *state, planned *p) {
    PyObject *chosen = Py_NewRef(Py_None);
    if (p->chosen) {
        Py_DECREF(chosen);
        chosen = py_handle_new(state->config_type, p->chosen, release_config, NULL);
        p->chosen = NULL;
    }
    return Py_BuildValue("(NNNNNN)", figures_of(&p->figures), classes_of(p->plan),
                         py_text(p->misfit.message), py_text(p->json), py_text(p->text), chosen);
}

/* plan(config, ranks, rank, ranks per host, machine, device memory, host memory, nvme, fit):
 * figures, classes, why it does not fit, JSON, text, and the chosen config or None */
PyObject *py_plan(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *config, *out = NULL;
    long long ranks, rank, per_host, device, host;
    int fit;
    sifr_plan_options options = {.size = sizeof options};
    planned p = {.figures = {.size = sizeof p.figures}};
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "OLLLzLLzp", &config, &ranks, &rank, &per_host, &options.machine,
                          &device, &host, &options.nvme, &fit) ||
        !py_expect(config, state->config_type, "a config"))
        return NULL;
    options.ranks = ranks, options.rank = rank, options.ranks_per_host = per_host;
    options.device_memory = device, options.host_memory = host;
    options.fit = fit != 0;
    sifr_context *context = py_context(state);
    if (!context || py_enter(config, &call) < 0) return NULL;
    sifr_status status = make_plan(context, py_get(config), &options, &p, &error);
    py_leave(&call);
    out = status == SIFR_OK ? describe(state, &p) : py_raise(state, &error);
    sifr_plan_free(p.plan);
    sifr_config_free(p.chosen);
    sifr_text_free(p.json);
    sifr_text_free(p.text);
    return out;
}

static sifr_status export(sifr_context *context, PyObject *source, PyObject *destination,
                          sifr_export_options *options, sifr_exported *made, sifr_error *error) {
    options->source = PyBytes_AsString(source);
    options->destination = PyBytes_AsString(destination);
    return sifr_export(context, options, made, error);
}

/* export(source, destination, format, type, average, text_model): parameters, bytes, step, where it
 * is from */
PyObject *py_export(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *source = NULL, *destination = NULL, *out = NULL;
    int average, text_model;
    sifr_export_options options = {.size = sizeof options};
    sifr_exported made = {.size = sizeof made};
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&O&zzpp", PyUnicode_FSConverter, &source, PyUnicode_FSConverter,
                          &destination, &options.format, &options.type, &average, &text_model))
        return NULL;
    options.average = average != 0;
    options.text_model = text_model != 0;
    sifr_context *context = py_context(state);
    if (context && py_enter(NULL, &call) == 0) {
        sifr_status status = export(context, source, destination, &options, &made, &error);
        py_leave(&call);
        out = status == SIFR_OK
                  ? Py_BuildValue("(LLLN)", (long long)made.parameters, (long long)made.bytes,
                                  (long long)made.step, PyUnicode_DecodeFSDefault(made.from))
                  : py_raise(state, &error);
    }
    Py_DECREF(source);
    Py_DECREF(destination);
    return out;
}
