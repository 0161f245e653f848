/* Generators and chats. What a text becomes goes to one callable: tell(kind, text, ...); what it
 * raises ends the run. */
#include <string.h>

#include "py_common.h"

static void release_generator(void *handle) {
    sifr_generator_free(handle);
}

static void release_chat(void *handle) {
    sifr_chat_free(handle);
}

static void release_template(void *handle) {
    sifr_chat_template_free(handle);
}

/* Numbers that the caller may leave out, as None. */

static const double *take_real(PyObject *from, double *value) {
    if (from == Py_None) return NULL;
    *value = PyFloat_AsDouble(from);
    return value;
}

static const int64_t *take_whole(PyObject *from, int64_t *value) {
    if (from == Py_None) return NULL;
    *value = PyLong_AsLongLong(from);
    return value;
}

/* The texts of a tuple; free with PyMem_Free. They live as long as the tuple. */
static const char **take_texts(PyObject *tuple, size_t *count) {
    Py_ssize_t size = PyTuple_Size(tuple);
    if (size < 0) return NULL;
    const char **texts = PyMem_Calloc((size_t)size + 1, sizeof *texts);
    if (!texts) return (const char **)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        Py_ssize_t bytes;
        texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), &bytes);
        if (texts[i] && (size_t)bytes == strlen(texts[i])) continue;
        if (texts[i]) PyErr_SetString(PyExc_ValueError, "stop: a text with a NUL in it");
        PyMem_Free(texts);
        return NULL;
    }
    *count = (size_t)size;
    return texts;
}

static PyObject *open_generator(py_state *state, const sifr_generator_options *options) {
    sifr_generator *generator = NULL;
    sifr_error error = {0};
    py_call call;
    sifr_context *context = py_context(state);
    if (!context || py_enter(NULL, &call) < 0) return NULL;
    sifr_status status = sifr_generator_open(context, options, &generator, &error);
    py_leave(&call);
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->generator_type, generator, release_generator, NULL);
}

/* generator(model, adapter, precision, threads, temperature, top_k, top_p, min_p,
 * repetition_penalty, seed, max_new_tokens, stop, samples, batch_size) */
static PyObject *generator_open(PyObject *module, PyObject *args) {
    PyObject *model, *temperature, *top_k, *top_p, *min_p, *penalty, *seed, *most, *stop;
    sifr_generator_options o = {.size = sizeof o};
    long long threads, samples, batch;
    double real[4];
    int64_t whole[3];
    if (!PyArg_ParseTuple(args, "O&zzLOOOOOOOO!LL", PyUnicode_FSConverter, &model, &o.adapter,
                          &o.precision, &threads, &temperature, &top_k, &top_p, &min_p, &penalty,
                          &seed, &most, &PyTuple_Type, &stop, &samples, &batch))
        return NULL;
    o.model = PyBytes_AsString(model);
    o.threads = threads, o.samples = samples, o.batch_size = batch;
    o.temperature = take_real(temperature, &real[0]);
    o.top_p = take_real(top_p, &real[1]);
    o.min_p = take_real(min_p, &real[2]);
    o.repetition_penalty = take_real(penalty, &real[3]);
    o.top_k = take_whole(top_k, &whole[0]);
    o.seed = take_whole(seed, &whole[1]);
    o.max_new_tokens = take_whole(most, &whole[2]);
    const char **texts = PyErr_Occurred() ? NULL : take_texts(stop, &o.stop_count);
    o.stop = texts;
    PyObject *out = texts ? open_generator(PyModule_GetState(module), &o) : NULL;
    PyMem_Free(texts);
    Py_DECREF(model);
    return out;
}

/* add(text, special, template or None, whether the text is JSON of messages) */
static PyObject *generator_add(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    sifr_prompt prompt = {.size = sizeof prompt};
    PyObject *template;
    Py_ssize_t size;
    int special, messages;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s#pOp", &prompt.text, &size, &special, &template, &messages) ||
        (template != Py_None && !py_expect(template, state->template_type, "a chat template")) ||
        (template != Py_None && py_take(template) < 0))
        return NULL;
    prompt.text_size = (size_t)size;
    prompt.no_special_tokens = !special;
    prompt.chat = template == Py_None ? NULL : py_get(template);
    prompt.messages = messages != 0;
    sifr_status status = SIFR_FAILED;
    int entered = py_enter(self, &call);
    if (entered == 0) {
        status = sifr_generator_add(py_get(self), &prompt, &error);
        py_leave(&call);
    }
    if (template != Py_None) py_give(template);
    return entered < 0 ? NULL : py_none_or_raise(state, status, &error);
}

static PyObject *generator_clear(PyObject *self, PyObject *none) {
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    sifr_generator_clear(py_get(self));
    py_leave(&call);
    Py_RETURN_NONE;
}

/* --- runs --- */

typedef struct texts {
    py_call call;
    PyObject *tell;
    PyObject *kind, *value, *trace; /* what it raised */
} texts;

/* Takes the arguments over. */
static sifr_status tell(texts *t, PyObject *arguments, sifr_error *error) {
    PyObject *answer = NULL;
    if (arguments && PyErr_CheckSignals() == 0) answer = PyObject_CallObject(t->tell, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(answer);
    if (answer) return SIFR_OK;
    PyErr_Fetch(&t->kind, &t->value, &t->trace);
    error->status = SIFR_FAILED;
    strcpy(error->message, "a callback raised an exception");
    return SIFR_FAILED;
}

static sifr_status on_piece(void *user, size_t text, const char *bytes, size_t size,
                            sifr_error *error) {
    texts *t = user;
    py_callback_begins(&t->call);
    PyObject *arguments =
        Py_BuildValue("(snN)", "piece", (Py_ssize_t)text, py_text_sized(bytes, size));
    sifr_status status = tell(t, arguments, error);
    py_callback_ends(&t->call);
    return status;
}

static sifr_status on_ended(void *user, const sifr_generated *g, sifr_error *error) {
    static const char *const ends[] = {
        [SIFR_END_LENGTH] = "length", [SIFR_END_EOS] = "eos", [SIFR_END_STOP] = "stop"};
    texts *t = user;
    py_callback_begins(&t->call);
    PyObject *arguments = Py_BuildValue("(snLNNnsd)", "ended", (Py_ssize_t)g->prompt,
                                        (long long)g->sample, py_text_sized(g->text, g->text_size),
                                        py_ids(g->ids, g->prompt_count + g->id_count),
                                        (Py_ssize_t)g->prompt_count, ends[g->end], g->seconds);
    sifr_status status = tell(t, arguments, error);
    py_callback_ends(&t->call);
    return status;
}

static PyObject *ended(PyObject *self, texts *t, sifr_status status, const sifr_error *error) {
    if (!t->kind) return py_none_or_raise(py_state_of(self), status, error);
    PyErr_Restore(t->kind, t->value, t->trace);
    return NULL;
}

/* run(tell) */
static PyObject *generator_run(PyObject *self, PyObject *args) {
    texts t = {.kind = NULL};
    sifr_error error = {0};
    sifr_generate_calls calls = {
        .size = sizeof calls, .user = &t, .piece = on_piece, .ended = on_ended};
    if (!PyArg_ParseTuple(args, "O", &t.tell) || py_enter(self, &t.call) < 0) return NULL;
    sifr_status status = sifr_generator_run(py_get(self), &calls, &error);
    py_leave(&t.call);
    return ended(self, &t, status, &error);
}

/* template(template or None, tools, variables) */
static PyObject *generator_template(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    sifr_chat_template_options o = {.size = sizeof o};
    sifr_chat_template *made = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "zzz", &o.chat_template, &o.tools, &o.variables) ||
        py_enter(self, &call) < 0)
        return NULL;
    sifr_status status = sifr_generator_template(py_get(self), &o, &made, &error);
    py_leave(&call);
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->template_type, made, release_template, NULL);
}

/* --- conversations; they keep the generator and the template --- */

/* chat(template, system or None, context) */
static PyObject *chat_open(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    PyObject *template;
    long long value;
    sifr_chat_options options = {.size = sizeof options};
    sifr_chat *chat = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "OzL", &template, &options.system, &value) ||
        !py_expect(template, state->template_type, "a chat template") || py_take(template) < 0)
        return NULL;
    options.context = value;
    sifr_status status = SIFR_FAILED;
    int entered = py_enter(self, &call);
    if (entered == 0) {
        status = sifr_chat_open(py_get(self), py_get(template), &options, &chat, &error);
        py_leave(&call);
    }
    py_give(template);
    if (entered < 0) return NULL;
    if (status != SIFR_OK) return py_raise(state, &error);
    PyObject *keeps = PyTuple_Pack(2, self, template);
    PyObject *out = NULL;
    if (keeps) out = py_handle_new(state->chat_type, chat, release_chat, keeps);
    if (!keeps) sifr_chat_free(chat);
    Py_XDECREF(keeps);
    return out;
}

/* answer(message, tell): the answer's text */
static PyObject *chat_answer(PyObject *self, PyObject *args) {
    const char *message, *answer = NULL;
    Py_ssize_t size;
    size_t answer_size = 0;
    texts t = {.kind = NULL};
    sifr_error error = {0};
    if (!PyArg_ParseTuple(args, "s#O", &message, &size, &t.tell) || py_enter(self, &t.call) < 0)
        return NULL;
    sifr_status status =
        sifr_chat_answer(py_get(self), message, (size_t)size, on_piece, &t, &error);
    if (status == SIFR_OK) answer = sifr_chat_last(py_get(self), &answer_size);
    py_return(&t.call);
    PyObject *out = answer ? py_text_sized(answer, answer_size) : ended(self, &t, status, &error);
    py_done(&t.call);
    return out;
}

int py_add_generator(PyObject *module, py_state *state) {
    static PyMethodDef of_generator[] = {{"add", generator_add, METH_VARARGS, NULL},
                                         {"clear", generator_clear, METH_NOARGS, NULL},
                                         {"run", generator_run, METH_VARARGS, NULL},
                                         {"template", generator_template, METH_VARARGS, NULL},
                                         {"chat", chat_open, METH_VARARGS, NULL},
                                         PY_CLOSE,
                                         {NULL, NULL, 0, NULL}};
    static PyMethodDef of_chat[] = {
        {"answer", chat_answer, METH_VARARGS, NULL}, PY_CLOSE, {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"generator", generator_open, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Generator", of_generator, NULL, &state->generator_type) <
            0 ||
        py_add_handle(module, "sifr._sifr.Chat", of_chat, NULL, &state->chat_type) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
