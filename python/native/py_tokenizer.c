/* Tokenizers, their decoders, and chat templates. */
#include <string.h>

#include "py_common.h"

static void release_tokenizer(void *handle) {
    sifr_tokenizer_free(handle);
}

static void release_decoder(void *handle) {
    sifr_decoder_free(handle);
}

static void release_template(void *handle) {
    sifr_chat_template_free(handle);
}

static PyObject *tokenizer_open(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *path;
    sifr_tokenizer *tokenizer = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return NULL;
    sifr_context *context = py_context(state);
    sifr_status status = SIFR_FAILED;
    bool entered = context && py_enter(NULL, &call) == 0;
    if (entered) {
        status = sifr_tokenizer_open(context, PyBytes_AsString(path), &tokenizer, &error);
        py_leave(&call);
    }
    Py_DECREF(path);
    if (!entered) return NULL;
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->tokenizer_type, tokenizer, release_tokenizer, NULL);
}

static PyObject *tokenizer_encode(PyObject *self, PyObject *args) {
    const char *text;
    Py_ssize_t size;
    int special;
    const int32_t *ids;
    size_t count;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s#p", &text, &size, &special) || py_enter(self, &call) < 0)
        return NULL;
    sifr_status status =
        sifr_tokenizer_encode(py_get(self), text, (size_t)size, special != 0, &ids, &count, &error);
    py_return(&call);
    PyObject *out = status == SIFR_OK ? py_ids(ids, count) : py_raise(py_state_of(self), &error);
    py_done(&call);
    return out;
}

/* The ids of a sequence as numbers; free with PyMem_Free. NULL with an exception. */
static int32_t *take_ids(PyObject *sequence, size_t *count) {
    Py_ssize_t size = PySequence_Size(sequence);
    if (size < 0) return NULL;
    int32_t *ids = PyMem_Calloc((size_t)size + 1, sizeof *ids);
    if (!ids) return (int32_t *)PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < size; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        PyObject *index = item ? PyNumber_Index(item) : NULL;
        long id = index ? PyLong_AsLong(index) : -1;
        Py_XDECREF(index);
        Py_XDECREF(item);
        if (!PyErr_Occurred() && (id < INT32_MIN || id > INT32_MAX))
            PyErr_Format(PyExc_OverflowError, "%ld is no id of a token", id);
        if (PyErr_Occurred()) {
            PyMem_Free(ids);
            return NULL;
        }
        ids[i] = (int32_t)id;
    }
    *count = (size_t)size;
    return ids;
}

static PyObject *tokenizer_decode(PyObject *self, PyObject *args) {
    PyObject *sequence;
    int skip;
    const char *text;
    size_t count = 0, size;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "Op", &sequence, &skip)) return NULL;
    int32_t *ids = take_ids(sequence, &count);
    if (!ids) return NULL;
    if (py_enter(self, &call) < 0) {
        PyMem_Free(ids);
        return NULL;
    }
    sifr_status status =
        sifr_tokenizer_decode(py_get(self), ids, count, skip != 0, &text, &size, &error);
    py_return(&call);
    PyObject *out =
        status == SIFR_OK ? py_text_sized(text, size) : py_raise(py_state_of(self), &error);
    py_done(&call);
    PyMem_Free(ids);
    return out;
}

/* vocab_size, bos, eos */
static PyObject *tokenizer_facts(PyObject *self, PyObject *none) {
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    const sifr_tokenizer *t = py_get(self);
    long long size = sifr_tokenizer_vocab_size(t);
    int bos = sifr_tokenizer_bos(t), eos = sifr_tokenizer_eos(t);
    py_leave(&call);
    return Py_BuildValue("(Lii)", size, bos, eos);
}

static PyObject *tokenizer_id(PyObject *self, PyObject *args) {
    const char *token;
    py_call call;
    if (!PyArg_ParseTuple(args, "s", &token) || py_enter(self, &call) < 0) return NULL;
    int32_t id = sifr_tokenizer_id(py_get(self), token);
    py_leave(&call);
    return PyLong_FromLong(id);
}

static PyObject *tokenizer_is_special(PyObject *self, PyObject *args) {
    int id;
    py_call call;
    if (!PyArg_ParseTuple(args, "i", &id) || py_enter(self, &call) < 0) return NULL;
    bool is = sifr_tokenizer_is_special(py_get(self), id);
    py_leave(&call);
    return PyBool_FromLong(is);
}

static PyObject *tokenizer_decoder(PyObject *self, PyObject *args) {
    py_state *state = py_state_of(self);
    int continues;
    sifr_decoder *decoder = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "p", &continues) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_decoder_create(py_get(self), continues != 0, &decoder, &error);
    py_leave(&call);
    if (status != SIFR_OK) return py_raise(state, &error);
    PyObject *keeps = PyTuple_Pack(1, self), *out = NULL;
    if (keeps) out = py_handle_new(state->decoder_type, decoder, release_decoder, keeps);
    if (!keeps) sifr_decoder_free(decoder);
    Py_XDECREF(keeps);
    return out;
}

static PyObject *decoder_push(PyObject *self, PyObject *args) {
    int id;
    const char *text;
    size_t size;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "i", &id) || py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_decoder_push(py_get(self), id, &text, &size, &error);
    py_return(&call);
    PyObject *out =
        status == SIFR_OK ? py_text_sized(text, size) : py_raise(py_state_of(self), &error);
    py_done(&call);
    return out;
}

static PyObject *decoder_end(PyObject *self, PyObject *none) {
    const char *text;
    size_t size;
    sifr_error error = {0};
    py_call call;
    (void)none;
    if (py_enter(self, &call) < 0) return NULL;
    sifr_status status = sifr_decoder_end(py_get(self), &text, &size, &error);
    py_return(&call);
    PyObject *out =
        status == SIFR_OK ? py_text_sized(text, size) : py_raise(py_state_of(self), &error);
    py_done(&call);
    return out;
}

/* chat_template(folder, template or None, tools as JSON or None, variables as JSON or None) */
static PyObject *template_open(PyObject *module, PyObject *args) {
    py_state *state = PyModule_GetState(module);
    PyObject *folder;
    sifr_chat_template_options options = {.size = sizeof options};
    sifr_chat_template *chat = NULL;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "O&zzz", PyUnicode_FSConverter, &folder, &options.chat_template,
                          &options.tools, &options.variables))
        return NULL;
    sifr_context *context = py_context(state);
    sifr_status status = SIFR_FAILED;
    bool entered = context && py_enter(NULL, &call) == 0;
    if (entered) {
        status =
            sifr_chat_template_open(context, PyBytes_AsString(folder), &options, &chat, &error);
        py_leave(&call);
    }
    Py_DECREF(folder);
    if (!entered) return NULL;
    if (status != SIFR_OK) return py_raise(state, &error);
    return py_handle_new(state->template_type, chat, release_template, NULL);
}

static PyObject *template_render(PyObject *self, PyObject *args) {
    const char *messages, *text;
    Py_ssize_t messages_size;
    int prompt;
    size_t size;
    sifr_error error = {0};
    py_call call;
    if (!PyArg_ParseTuple(args, "s#p", &messages, &messages_size, &prompt) ||
        py_enter(self, &call) < 0)
        return NULL;
    sifr_status status = sifr_chat_template_render(py_get(self), messages, (size_t)messages_size,
                                                   prompt != 0, &text, &size, &error);
    py_return(&call);
    PyObject *out =
        status == SIFR_OK ? py_text_sized(text, size) : py_raise(py_state_of(self), &error);
    py_done(&call);
    return out;
}

int py_add_tokenizer(PyObject *module, py_state *state) {
    static PyMethodDef of_tokenizer[] = {{"encode", tokenizer_encode, METH_VARARGS, NULL},
                                         {"decode", tokenizer_decode, METH_VARARGS, NULL},
                                         {"facts", tokenizer_facts, METH_NOARGS, NULL},
                                         {"id", tokenizer_id, METH_VARARGS, NULL},
                                         {"is_special", tokenizer_is_special, METH_VARARGS, NULL},
                                         {"decoder", tokenizer_decoder, METH_VARARGS, NULL},
                                         PY_CLOSE,
                                         {NULL, NULL, 0, NULL}};
    static PyMethodDef of_decoder[] = {{"push", decoder_push, METH_VARARGS, NULL},
                                       {"end", decoder_end, METH_NOARGS, NULL},
                                       PY_CLOSE,
                                       {NULL, NULL, 0, NULL}};
    static PyMethodDef of_template[] = {
        {"render", template_render, METH_VARARGS, NULL}, PY_CLOSE, {NULL, NULL, 0, NULL}};
    static PyMethodDef functions[] = {{"tokenizer", tokenizer_open, METH_VARARGS, NULL},
                                      {"chat_template", template_open, METH_VARARGS, NULL},
                                      {NULL, NULL, 0, NULL}};
    if (py_add_handle(module, "sifr._sifr.Tokenizer", of_tokenizer, NULL, &state->tokenizer_type) <
            0 ||
        py_add_handle(module, "sifr._sifr.Decoder", of_decoder, NULL, &state->decoder_type) < 0 ||
        py_add_handle(module, "sifr._sifr.ChatTemplate", of_template, NULL, &state->template_type) <
            0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
