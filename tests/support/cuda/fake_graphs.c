/* Graphs of the fake: the work of captured streams, in the order in which it was given. That order
 * keeps every wait, because a wait is given after what it waits for. */
#include <stdlib.h>
#include <string.h>

#include "support/cuda/fake_parts.h"

static void free_work(struct CUgraph_st *graph) {
    for (size_t i = 0; i < graph->count; i++) free(graph->work[i].arguments);
    free(graph->work);
    *graph = (struct CUgraph_st){0};
}

static void *copy_of(const fake_work *work) {
    if (!work->arguments) return NULL;
    const size_t bytes = work->launch.kernel->argument_bytes;
    void *arguments = fake_take(bytes ? bytes : 1);
    memcpy(arguments, work->arguments, bytes);
    return arguments;
}

static cuda_result begin(cuda_stream stream, unsigned mode) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!stream || !stream->tail || mode > 2 || stream->capture)
        return fake_leave(CUDA_INVALID_VALUE);
    stream->capture = fake_take(sizeof *stream->capture);
    return fake_leave(CUDA_OK);
}

static cuda_result end(cuda_stream stream, cuda_graph *graph) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!stream || !stream->capture) return fake_leave(CUDA_CAPTURE_UNMATCHED);
    *graph = stream->capture;
    for (cuda_stream s = fake.streams; s; s = s->next)
        if (s->capture == *graph) s->capture = NULL;
    for (cuda_event e = fake.events; e; e = e->next)
        if (e->capture == *graph) e->capture = NULL;
    return fake_leave(CUDA_OK);
}

static cuda_result instantiate(cuda_graph_program *program, cuda_graph graph,
                               unsigned long long flags) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!graph || flags != 0) return fake_leave(CUDA_INVALID_VALUE);
    *program = fake_take(sizeof **program);
    struct CUgraph_st *copy = &(*program)->graph;
    copy->count = graph->count;
    copy->work = fake_take((graph->count + 1) * sizeof *copy->work);
    for (size_t i = 0; i < graph->count; i++) {
        copy->work[i] = graph->work[i];
        copy->work[i].arguments = copy_of(&graph->work[i]);
    }
    return fake_leave(CUDA_OK);
}

static cuda_result launch(cuda_graph_program program, cuda_stream stream) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!program || !stream || !stream->tail || stream->capture)
        return fake_leave(CUDA_INVALID_VALUE);
    for (size_t i = 0; i < program->graph.count; i++) {
        fake_work work = program->graph.work[i];
        work.arguments = copy_of(&work);
        fake_submit(stream, &work);
    }
    return fake_leave(CUDA_OK);
}

static cuda_result destroy_program(cuda_graph_program program) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!program) return fake_leave(CUDA_INVALID_HANDLE);
    free_work(&program->graph);
    free(program);
    return fake_leave(CUDA_OK);
}

static cuda_result destroy_graph(cuda_graph graph) {
    cuda_result result = fake_enter(true);
    if (result != CUDA_OK) return result;
    if (!graph) return fake_leave(CUDA_INVALID_HANDLE);
    free_work(graph);
    free(graph);
    return fake_leave(CUDA_OK);
}

void fake_fill_graphs(cuda_driver *out) {
    out->cuStreamBeginCapture = begin;
    out->cuStreamEndCapture = end;
    out->cuGraphInstantiate = instantiate;
    out->cuGraphLaunch = launch;
    out->cuGraphExecDestroy = destroy_program;
    out->cuGraphDestroy = destroy_graph;
}
